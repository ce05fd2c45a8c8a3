// SPDX-License-Identifier: Apache-2.0
// Rows of a fit's report: measured points beside their forecasts.
#pragma once

#include <string>
#include <vector>

#include "fit/dataset.hpp"

namespace fabricast::fit {

/// One point of the table: size `i` of log `e` and its forecast.
CalibrationPoint point_of(std::size_t e, const Experiment& experiment, std::size_t i, const Row& row);

/// All points of log `e`.
std::vector<CalibrationPoint> points_of(std::size_t e, const Experiment& experiment, const WorkloadPrediction& table);

/// Sizes at which NCCL says that it chose otherwise.
void add_choices(std::size_t e, const std::vector<ChoicePoint>& choices, std::vector<RegimeChange>& regimes);

/// "fit 'NAME' to N points of M logs (first, second, third and K more)".
std::string fit_source(const std::string& name, std::size_t num_points, const std::vector<std::string>& files);

}  // namespace fabricast::fit
