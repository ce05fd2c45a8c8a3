// SPDX-License-Identifier: Apache-2.0
// What errors say: scatter of a measured curve about its forecast, points that stand out, sizes where errors jump.
#pragma once

#include <string>
#include <vector>

#include "fabricast/calibration.hpp"

namespace fabricast::fit {

/// Relative deviation of one measured time, from what its curve leaves about the model's: each ln(predicted / measured)
/// against a line laid through the five around it (Theil and Sen), median / 0.393, which is its ratio for normal noise.
/// Slopes, steps and bends count for nothing, rows that are off by any amount for little while they are few. 0: fewer
/// than five sizes say nothing. `residuals` by ascending size.
double noise_floor(const std::vector<double>& residuals);

/// Marks points whose error differs from both neighbours' by more than `limit` and in the same direction.
void mark_outliers(std::vector<CalibrationPoint>& points_of_log, double limit);

/// Sizes where the error steps by more than `limit` and stays.
std::vector<RegimeChange> regime_changes(const std::vector<CalibrationPoint>& points_of_log, double limit);

ErrorClass error_class(std::string name, const std::vector<CalibrationPoint>& points);

}  // namespace fabricast::fit
