// SPDX-License-Identifier: Apache-2.0
// Forecasts of measured points by fits that did not see them: sizes, logs, counts of ranks and hosts left out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fit/band.hpp"
#include "fit/fit.hpp"

namespace fabricast::fit {

/// A count that was left out.
struct CountLeftOut {
  std::string name;  ///< "leave out 8 ranks"
  std::vector<Forecast> forecasts;
};

/// The 80 % interval of a fitted value whose logarithm has this deviation, within what the parameter may be.
void set_interval(double deviation, Parameter& parameter);

/// The table with `parameters` set last; without their intervals where the ends of those cannot be forecast.
std::optional<WorkloadPrediction> table_with_band(Dataset& data, std::size_t experiment, const Values& x,
                                                  const ParameterSet& parameters);

/// Free parameters at `x` with their 80 % intervals: those of the fit, or what they had before.
ParameterSet intervals_at(const Dataset& data, const FitResult& fit, const Values& x);

/// Free parameters at their starts, with the intervals they had before the fit.
ParameterSet intervals_before(const Dataset& data);

class LeaveOut {
 public:
  LeaveOut(Dataset& data, Fitter& fitter, const FitResult& result) : data_(data), fitter_(fitter), result_(result) {}

  /// Every point of a log at `x`.
  std::vector<Forecast> forecasts(std::size_t experiment, const Values& x);
  /// Fitted points, each predicted after a Gauss-Newton step without every other fitted size of all logs.
  std::vector<Forecast> sizes();
  /// Fitted points of each log after a Gauss-Newton step without the log. Empty when only one log is fitted.
  std::vector<Forecast> logs();
  /// Fits again without each count.
  std::vector<CountLeftOut> counts();
  /// Fits the smaller counts and forecasts the next, step by step; only benchmarks that the smaller counts have too.
  /// From one host to several is no step: adapters and network come in.
  std::vector<Forecast> steps();
  /// True when steps() would forecast some.
  [[nodiscard]] bool has_steps() const;

 private:
  using Count = int Experiment::*;
  /// Fitted points of a log at `x`, `doublings` beyond what `x` was fitted to.
  void add_fitted(std::size_t experiment, const Values& x, double doublings, std::vector<Forecast>& out);
  /// x fitted to the fitted points of these logs alone, from the fit of all. Different counts may leave the same logs:
  /// each set is fitted once.
  const Values& fit_of(const std::function<bool(const Experiment&)>& is_seen);
  void leave_out_counts(const char* what, Count count, std::vector<CountLeftOut>& out);
  void add_steps(Count count, bool is_several, std::vector<Forecast>& out);
  /// Logs of count `next` that smaller counts have the benchmark of, both in one host or both on several.
  [[nodiscard]] std::vector<std::size_t> next_logs(Count count, bool is_several, int next) const;
  [[nodiscard]] std::vector<int> counts_of(Count count, std::optional<bool> is_several = {}) const;
  /// Whether the fit of a forecast of log `e` has seen hosts enough: `is_left_out` of the fitted logs.
  [[nodiscard]] bool is_foreign(std::size_t e, const std::function<bool(const Experiment&)>& is_left_out) const;

  Dataset& data_;
  Fitter& fitter_;
  const FitResult& result_;
  std::map<std::vector<bool>, Values> refits_;  ///< by which logs take part
};

}  // namespace fabricast::fit
