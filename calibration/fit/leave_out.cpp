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
constexpr int k_refit_iterations = 20;
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

/// What a forecast without a fit has beside the intervals of its parameters.
void set_wide(const Experiment& experiment, const WorkloadPrediction& table, const Row& row, Forecast& forecast) {
  const auto& parameters = experiment.loaded.parameters;
  const double model = parameters.value_or("model.relative_error", 0);
  std::vector<std::string> names;
  for (const auto& term : row.terms) names.push_back(term.parameter);
  // Of a step only the exposed exchange scatters: left out, which makes the limit the narrower one.
  const double between =
      table.benchmark == Benchmark::training
          ? 0
          : between_systems(table.benchmark, experiment.num_hosts, parameters, names, !table.stand_ins.empty());
  forecast.wide_below = std::hypot(model, between / (1 + between));
  forecast.wide_above = std::hypot(model, between);
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

ParameterSet intervals_before(const Dataset& data) {
  ParameterSet set;
  for (const auto& free : data.parameters()) set.set(free.parameter);
  return set;
}

std::vector<Forecast> LeaveOut::forecasts(std::size_t e, const Values& x) {
  const auto& experiment = data_.experiments()[e];
  auto parameters = intervals_at(data_, result_, x);
  // The parameters' own share of the band only.
  for (const auto* name : {"model.relative_error", "model.fitted_error", "model.extrapolation_error"})
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
    set_wide(experiment, *table, row, one);
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

std::vector<int> LeaveOut::counts_of(Count count, std::optional<bool> is_several) const {
  std::set<int> counts;
  for (const auto& point : result_.points) {
    const auto& experiment = data_.experiments()[point.experiment];
    if (!is_several || *is_several == (experiment.num_hosts > 1)) counts.insert(experiment.*count);
  }
  return {counts.begin(), counts.end()};
}

bool LeaveOut::is_foreign(std::size_t e, const std::function<bool(const Experiment&)>& is_left_out) const {
  if (data_.experiments()[e].num_hosts < 2) return false;
  return std::ranges::none_of(result_.points, [&](const PointRef& point) {
    const auto& experiment = data_.experiments()[point.experiment];
    return experiment.num_hosts > 1 && !is_left_out(experiment);
  });
}

const Values& LeaveOut::fit_of(const std::function<bool(const Experiment&)>& is_seen) {
  std::vector<bool> seen;
  for (const auto& experiment : data_.experiments()) seen.push_back(is_seen(experiment));
  const auto [at, is_new] = refits_.try_emplace(seen);
  if (is_new)
    at->second = fitter_
                     .refit(
                         result_, [&](const Experiment& e, std::size_t row) { return e.is_fitted[row] && is_seen(e); },
                         k_refit_iterations)
                     .x;
  return at->second;
}

void LeaveOut::leave_out_counts(const char* what, Count count, std::vector<CountLeftOut>& out) {
  const auto all = counts_of(count);
  if (all.size() < 2) return;
  for (const int left_out : all) {
    const auto& without = fit_of([&](const Experiment& e) { return e.*count != left_out; });
    CountLeftOut one{fmt::format("leave out {} {}", left_out, what), {}};
    const auto below = std::lower_bound(all.begin(), all.end(), left_out);
    const double beyond = left_out == all.back() ? std::log2(left_out / static_cast<double>(*std::prev(below))) : 0;
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      if (data_.experiments()[e].*count != left_out || data_.experiments()[e].spec.is_held_out) continue;
      const auto first = one.forecasts.size();
      add_fitted(e, without, beyond, one.forecasts);
      const bool foreign = is_foreign(e, [&](const Experiment& other) { return other.*count == left_out; });
      for (auto i = first; i < one.forecasts.size(); ++i) one.forecasts[i].is_foreign = foreign;
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

std::vector<std::size_t> LeaveOut::next_logs(Count count, bool is_several, int next) const {
  std::set<Benchmark> known;
  for (const auto& point : result_.points) {
    const auto& experiment = data_.experiments()[point.experiment];
    if (experiment.*count < next && (experiment.num_hosts > 1) == is_several)
      known.insert(experiment.loaded.scenario.workloads.front().benchmark);
  }
  std::vector<std::size_t> logs;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    const auto& experiment = data_.experiments()[e];
    if (experiment.*count == next && (experiment.num_hosts > 1) == is_several && !experiment.spec.is_held_out &&
        known.contains(experiment.loaded.scenario.workloads.front().benchmark))
      logs.push_back(e);
  }
  return logs;
}

void LeaveOut::add_steps(Count count, bool is_several, std::vector<Forecast>& out) {
  const auto all = counts_of(count, is_several);
  for (std::size_t k = 1; k < all.size(); ++k) {
    const auto logs = next_logs(count, is_several, all[k]);
    if (logs.empty()) continue;
    const auto& small = fit_of([&](const Experiment& e) { return e.*count < all[k]; });
    for (const auto e : logs) add_fitted(e, small, std::log2(all[k] / static_cast<double>(all[k - 1])), out);
  }
}

std::vector<Forecast> LeaveOut::steps() {
  std::vector<Forecast> out;
  for (const bool is_several : {false, true}) add_steps(&Experiment::num_ranks, is_several, out);
  add_steps(&Experiment::num_hosts, true, out);
  return out;
}

bool LeaveOut::has_steps() const {
  for (const bool is_several : {false, true}) {
    for (const auto count : {&Experiment::num_ranks, &Experiment::num_hosts}) {
      const auto all = counts_of(count, is_several);
      for (std::size_t k = 1; k < all.size(); ++k) {
        if (!next_logs(count, is_several, all[k]).empty()) return true;
      }
    }
  }
  return false;
}

}  // namespace fabricast::fit
