// SPDX-License-Identifier: Apache-2.0
#include "fit/leave_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/assert.hpp"
#include "base/parameter_keys.hpp"
#include "fabricast/scatter.hpp"

namespace fabricast::fit {

namespace {

constexpr double k_eighty = 1.2816;  ///< deviations each side of an 80 % interval
constexpr int k_refit_iterations = 8;
constexpr int k_folds = 2;

/// The same values without their intervals.
ParameterSet values_alone(const ParameterSet& set) {
  ParameterSet out;
  for (const auto& [name, parameter] : set.all()) {
    auto alone = parameter;
    alone.low = alone.high = alone.value;
    out.set(std::move(alone));
  }
  return out;
}

}  // namespace

void set_interval(double deviation, Parameter& parameter) {
  const auto range = range_of(parameter.name, parameter.dimension);
  parameter.low = std::min(parameter.value, std::max(range.low, parameter.value * std::exp(-k_eighty * deviation)));
  parameter.high = std::max(parameter.value, std::min(range.high, parameter.value * std::exp(k_eighty * deviation)));
}

std::optional<WorkloadPrediction> table_with_band(Dataset& data, std::size_t experiment, const Values& x,
                                                  const ParameterSet& parameters) {
  auto table = data.predict_table(experiment, x, parameters);
  return table ? std::move(table) : data.predict_table(experiment, x, values_alone(parameters));
}

ParameterSet intervals_at(const Dataset& data, const FitResult& fit, const Values& x) {
  ParameterSet set;
  for (std::size_t i = 0; i < data.parameters().size(); ++i) {
    auto parameter = data.parameters()[i].parameter;
    const double value = std::exp(x[i]);
    const double ratio = parameter.value > 0 ? value / parameter.value : 0;
    parameter.low = ratio > 0 ? parameter.low * ratio : value;
    parameter.high = ratio > 0 ? parameter.high * ratio : value;
    parameter.value = value;
    if (fit.is_free[i]) {
      set_interval(fit.deviation[i], parameter);
      parameter.confidence = Confidence::fitted;
    }
    set.set(std::move(parameter));
  }
  return set;
}

std::vector<Forecast> LeaveOut::forecasts(std::size_t e, const Values& x) {
  const auto& experiment = data_.experiments()[e];
  auto parameters = intervals_at(data_, result_, x);
  // The parameters' own share of the band only.
  for (const auto* name : {"model.relative_error", "model.extrapolation_error"})
    parameters.set({name, 0, Dimension::number, 0, 0, Confidence::fitted, "", {}});
  parameters = without_scatter(std::move(parameters));
  auto table = table_with_band(data_, e, x, parameters);
  // A step without some points may end where nothing can be forecast: then it is not made.
  if (!table && x != result_.x) return forecasts(e, result_.x);
  FABRICAST_ASSERT(table.has_value(), "the fitted values of '{}' make no forecast", experiment.name);
  std::vector<Forecast> out;
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    const auto& row = table->rows[i];
    Forecast one;
    one.experiment = e;
    one.point.log = e;
    one.point.size = experiment.sizes[i];
    one.point.measured = from_seconds(experiment.seconds[i]);
    one.point.predicted = row.time;
    one.point.relative_error = row.time.seconds() / experiment.seconds[i] - 1;
    one.point.is_fitted = experiment.is_fitted[i];
    one.below = (row.time - row.low_time).seconds() / row.time.seconds();
    one.above = (row.high_time - row.time).seconds() / row.time.seconds();
    out.push_back(std::move(one));
  }
  return out;
}

void LeaveOut::add_fitted(std::size_t experiment, const Values& x, double doublings, std::vector<Forecast>& out) {
  for (auto& forecast : forecasts(experiment, x)) {
    if (!forecast.point.is_fitted) continue;
    forecast.doublings = doublings;
    out.push_back(std::move(forecast));
  }
}

std::vector<Forecast> LeaveOut::sizes() {
  std::vector<Forecast> out;
  std::vector<int> folds;  // of each fitted point: every other one of a log
  std::size_t before = data_.experiments().size();
  int next = 0;
  for (const auto& point : result_.points) {
    if (point.experiment != before) next = 0;
    before = point.experiment;
    folds.push_back(next++ % k_folds);
  }
  for (int fold = 0; fold < k_folds; ++fold) {
    std::vector<double> weights;
    for (const int of_point : folds) weights.push_back(of_point == fold ? 0 : 1);
    const auto x = fitter_.gauss_newton(result_, weights).value_or(result_.x);
    std::vector<std::vector<Forecast>> tables(data_.experiments().size());
    for (std::size_t k = 0; k < folds.size(); ++k) {
      if (folds[k] != fold) continue;
      const auto& point = result_.points[k];
      auto& table = tables[point.experiment];
      if (table.empty()) table = forecasts(point.experiment, x);
      out.push_back(table[point.row]);
    }
  }
  return out;
}

std::vector<Forecast> LeaveOut::logs() {
  std::vector<Forecast> out;
  std::set<std::size_t> fitted;
  for (const auto& point : result_.points) fitted.insert(point.experiment);
  if (fitted.size() < 2) return out;
  for (const auto e : fitted) {
    std::vector<double> weights;
    for (const auto& point : result_.points) weights.push_back(point.experiment == e ? 0 : 1);
    const auto table = forecasts(e, fitter_.gauss_newton(result_, weights).value_or(result_.x));
    for (const auto& point : result_.points) {
      if (point.experiment == e) out.push_back(table[point.row]);
    }
  }
  return out;
}

std::vector<int> LeaveOut::counts_of(Count count) const {
  std::set<int> counts;
  for (const auto& point : result_.points) counts.insert(data_.experiments()[point.experiment].*count);
  return {counts.begin(), counts.end()};
}

void LeaveOut::leave_out_counts(const char* what, Count count, std::vector<CountLeftOut>& out) {
  const auto all = counts_of(count);
  if (all.size() < 2) return;
  for (const int left_out : all) {
    const auto without = fitter_.refit(
        result_, [&](const Experiment& e, std::size_t row) { return e.is_fitted[row] && e.*count != left_out; },
        k_refit_iterations);
    CountLeftOut one{fmt::format("leave out {} {}", left_out, what), {}};
    const auto below = std::lower_bound(all.begin(), all.end(), left_out);
    const double beyond = left_out == all.back() ? std::log2(left_out / static_cast<double>(*std::prev(below))) : 0;
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      if (data_.experiments()[e].*count != left_out || data_.experiments()[e].spec.is_held_out) continue;
      add_fitted(e, without.x, beyond, one.forecasts);
    }
    out.push_back(std::move(one));
  }
}

std::vector<CountLeftOut> LeaveOut::counts() {
  std::vector<CountLeftOut> out;
  leave_out_counts("ranks", &Experiment::num_ranks, out);
  leave_out_counts("hosts", &Experiment::num_hosts, out);
  return out;
}

void LeaveOut::add_steps(Count count, std::vector<Forecast>& out) {
  const auto all = counts_of(count);
  for (std::size_t k = 1; k < all.size(); ++k) {
    const auto is_smaller = [&](const Experiment& e) { return e.*count < all[k]; };
    std::set<Benchmark> known;
    for (const auto& point : result_.points) {
      const auto& experiment = data_.experiments()[point.experiment];
      if (is_smaller(experiment)) known.insert(experiment.loaded.scenario.workloads.front().benchmark);
    }
    const auto is_next = [&](const Experiment& e) {
      return e.*count == all[k] && !e.spec.is_held_out && known.contains(e.loaded.scenario.workloads.front().benchmark);
    };
    if (std::none_of(data_.experiments().begin(), data_.experiments().end(), is_next)) continue;
    const auto small = fitter_.refit(
        result_, [&](const Experiment& e, std::size_t row) { return e.is_fitted[row] && is_smaller(e); },
        k_refit_iterations);
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      if (!is_next(data_.experiments()[e])) continue;
      add_fitted(e, small.x, std::log2(all[k] / static_cast<double>(all[k - 1])), out);
    }
  }
}

std::vector<Forecast> LeaveOut::steps() {
  std::vector<Forecast> out;
  add_steps(&Experiment::num_ranks, out);
  if (counts_of(&Experiment::num_hosts).size() > 1) add_steps(&Experiment::num_hosts, out);
  return out;
}

}  // namespace fabricast::fit
