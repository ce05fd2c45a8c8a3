// SPDX-License-Identifier: Apache-2.0
#include "fabricast/setting_hints.hpp"

#include <algorithm>
#include <cmath>

#include "fabricast/scatter.hpp"

namespace fabricast {

namespace {

constexpr double k_nominal_inside = 0.8;  ///< share of points that a band is made to hold
constexpr double k_clearly_nearer = 0.6;  ///< of the mean error may be left
constexpr double k_least_gain = 0.05;     ///< of the mean error: noise of a log moves it by less
constexpr double k_least_inside = 0.1;    ///< more points inside the band
constexpr double k_largest_error = 1.4;   ///< ln 4: farther points count like this
constexpr std::size_t k_fewest_points = 3;
constexpr std::size_t k_most_named = 5;

/// All points of all logs under one forecast.
std::vector<ValidationPoint> points_of(const WorkloadPrediction& prediction, const std::vector<MeasuredLog>& logs) {
  std::vector<ValidationPoint> points;
  for (const auto& log : logs) {
    for (auto& point : validate(prediction, log).points) points.push_back(std::move(point));
  }
  return points;
}

double mean_error(const std::vector<ValidationPoint>& points) {
  double sum = 0;
  for (const auto& point : points)
    sum += std::min(k_largest_error, std::abs(std::log(point.predicted.seconds() / point.measured.seconds())));
  return points.empty() ? 0 : sum / static_cast<double>(points.size());
}

bool explains(const SettingEffect& effect) {
  return effect.mean_after <= k_clearly_nearer * effect.mean_before &&
         effect.mean_before - effect.mean_after >= k_least_gain &&
         effect.inside_after >= effect.inside_before + k_least_inside;
}

/// The first workload at `sizes`, under the band of a known system.
std::optional<WorkloadPrediction> forecast_of(LoadedScenario& loaded, const std::vector<Bytes>& sizes,
                                              const SimulateOptions& options) {
  loaded.scenario.workloads.front().sizes = sizes;
  auto prediction = simulate(loaded.topology, loaded.scenario, without_scatter(loaded.parameters), options);
  if (!prediction || prediction->workloads.front().rows.empty()) return std::nullopt;
  return std::move(prediction->workloads.front());
}

}  // namespace

std::optional<WorkloadPrediction> forecast_as_known(const std::string& scenario_file,
                                                    const std::vector<std::string>& parameter_files,
                                                    const std::vector<Setting>& settings,
                                                    const std::vector<Bytes>& sizes, const SimulateOptions& options) {
  auto loaded = load_scenario(scenario_file, parameter_files, settings);
  if (!loaded) return std::nullopt;
  return forecast_of(*loaded, sizes, options);
}

std::vector<ChangedForecast> forecast_changes(const std::string& scenario_file,
                                              const std::vector<std::string>& parameter_files,
                                              const std::vector<Setting>& settings, const std::vector<Bytes>& sizes,
                                              const SimulateOptions& options) {
  std::vector<ChangedForecast> out;
  const auto present = load_scenario(scenario_file, parameter_files, settings);
  if (!present) return out;
  for (const auto& change : settings_to_try(present->scenario, present->topology.spec())) {
    if (options.stop != nullptr && options.stop->load()) break;
    auto changed = settings;
    changed.insert(changed.end(), change.settings.begin(), change.settings.end());
    auto loaded = load_scenario(scenario_file, parameter_files, changed);
    if (!loaded) continue;
    if (auto prediction = forecast_of(*loaded, sizes, options)) out.push_back({change.name, std::move(*prediction)});
  }
  return out;
}

std::vector<SettingEffect> explaining_settings(const WorkloadPrediction& present,
                                               const std::vector<ChangedForecast>& changed,
                                               const std::vector<MeasuredLog>& logs) {
  std::vector<SettingEffect> out;
  const auto before = points_of(present, logs);
  const auto summary = summarize(before);
  if (before.size() < k_fewest_points || summary.interval_coverage >= k_nominal_inside) return out;
  const double mean_before = mean_error(before);
  for (const auto& change : changed) {
    const auto after = points_of(change.prediction, logs);
    if (after.size() != before.size()) continue;
    const auto changed_summary = summarize(after);
    SettingEffect effect{change.setting,    summary.median_abs_error,  changed_summary.median_abs_error, mean_before,
                         mean_error(after), summary.interval_coverage, changed_summary.interval_coverage};
    if (explains(effect)) out.push_back(std::move(effect));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.mean_after < b.mean_after; });
  if (out.size() > k_most_named) out.resize(k_most_named);
  return out;
}

}  // namespace fabricast
