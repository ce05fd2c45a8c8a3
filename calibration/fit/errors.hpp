// SPDX-License-Identifier: Apache-2.0
// What errors say: scatter of a measured curve about itself, points that stand out, sizes where errors jump.
#pragma once

#include <string>
#include <vector>

#include "fabricast/calibration.hpp"

namespace fabricast::fit {

/// Relative scatter of a curve: each time against the line through its two neighbours in log-log, median / 0.6745,
/// less what the neighbours' own scatter adds (sqrt(3/2)). Bends of the curve count too, so it is an upper limit.
double noise_floor(const std::vector<Bytes>& sizes, const std::vector<double>& seconds);

/// Marks points whose error differs from both neighbours' by more than `limit` and in the same direction.
void mark_outliers(std::vector<CalibrationPoint>& points_of_log, double limit);

/// Sizes where the error steps by more than `limit` and stays.
std::vector<RegimeChange> regime_changes(const std::vector<CalibrationPoint>& points_of_log, double limit);

ErrorClass error_class(std::string name, const std::vector<CalibrationPoint>& points);

}  // namespace fabricast::fit
