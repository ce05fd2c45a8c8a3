// SPDX-License-Identifier: Apache-2.0
// Figures of a design from a prediction and from its parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/sweep.hpp"
#include "sweep/cost.hpp"

namespace fabricast::sweep {

/// Leaves the rows that the figures ask for: one size or count, else the last.
void keep_rows(Scenario& scenario, const std::vector<Metric>& metrics);

/// Why the workload has no such figure, whatever the design; empty when it has, or there is no workload of that name.
std::string misplaced(const Metric& metric, const Scenario& scenario);

/// A figure of a simulated scenario; `fault` says why there is none.
std::optional<Estimate> figure_of(const Metric& metric, const Scenario& scenario, const Prediction& prediction,
                                  std::string& fault);
/// A figure of the hardware; nothing for figures of a simulation.
std::optional<Estimate> figure_of(const Metric& metric, const Parts& parts, const Bill& bill);

/// The row a figure is read from.
const Row* row_of(const Metric& metric, const Prediction& prediction, std::string& fault);

/// What the time of a row is made of, largest part first, at most eight parts.
std::vector<TimeShare> split_of(const Row& row);

}  // namespace fabricast::sweep
