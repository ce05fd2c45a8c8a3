// SPDX-License-Identifier: Apache-2.0
#include "fit/report_points.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

namespace fabricast::fit {

CalibrationPoint point_of(std::size_t e, const Experiment& experiment, std::size_t i, const Row& row) {
  CalibrationPoint point;
  point.log = e;
  point.size = experiment.sizes[i];
  point.measured = from_seconds(experiment.seconds[i]);
  point.predicted = row.time;
  point.low = row.low_time;
  point.high = row.high_time;
  point.relative_error = row.time.seconds() / experiment.seconds[i] - 1;
  point.is_fitted = experiment.is_fitted[i];
  point.is_extrapolated = row.is_extrapolated;
  point.regime = row.channels > 0 ? fmt::format("{} {} {} channels", row.algorithm, row.protocol, row.channels)
                                  : fmt::format("{} {}", row.algorithm, row.protocol);
  return point;
}

std::vector<CalibrationPoint> points_of(std::size_t e, const Experiment& experiment, const WorkloadPrediction& table) {
  std::vector<CalibrationPoint> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) points.push_back(point_of(e, experiment, i, table.rows[i]));
  return points;
}

void add_choices(std::size_t e, const std::vector<ChoicePoint>& choices, std::vector<RegimeChange>& regimes) {
  for (const auto& choice : choices) {
    if (choice.agrees() && choice.channels_agree()) continue;
    regimes.push_back({e, choice.size, 0,
                       fmt::format("NCCL says it used {} {} {} channels, the model {} {} {} channels",
                                   choice.logged_algorithm, choice.logged_protocol, choice.logged_channels,
                                   choice.predicted_algorithm, choice.predicted_protocol, choice.predicted_channels)});
  }
}

std::string fit_source(const std::string& name, std::size_t num_points, const std::vector<std::string>& files) {
  std::set<std::string> names;
  for (const auto& file : files) names.insert(std::filesystem::path(file).stem().string());
  std::string list;
  std::size_t shown = 0;
  for (const auto& one : names) {
    if (shown++ == 3) {
      list += fmt::format(" and {} more", names.size() - 3);
      break;
    }
    list += (list.empty() ? "" : ", ") + one;
  }
  return fmt::format("fit '{}' to {} points of {} logs ({})", name, num_points, names.size(), list);
}

}  // namespace fabricast::fit
