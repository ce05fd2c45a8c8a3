// SPDX-License-Identifier: Apache-2.0
// Which term explains a misfit: each parameter's share of the predicted times is scaled by one factor for all sizes,
// and the parameter whose scaling leaves the least median error is named.
#pragma once

#include <optional>
#include <vector>

#include "fabricast/validation.hpp"

namespace fabricast::validate_detail {

/// Absent when the best single term leaves more than two thirds of the median error.
std::optional<Explanation> explain_misfit(const WorkloadPrediction& prediction,
                                          const std::vector<ValidationPoint>& points);

}  // namespace fabricast::validate_detail
