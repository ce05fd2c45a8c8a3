// SPDX-License-Identifier: Apache-2.0
// Small helpers of the transfer model: rates of crossings, terms that are computed rather than looked up.
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/plan.hpp"
#include "fabricast/models/planner.hpp"

namespace fabricast::models::mpi {

/// bytes/s that one user of the crossing gets when alone.
double capacity_of(const PlanContext& context, const Crossing& crossing);

/// Sorted by resource, no resource twice.
std::vector<Crossing> merged(std::vector<Crossing> crossings);

/// bytes/s of the slowest crossing.
double bottleneck(const PlanContext& context, const std::vector<Crossing>& crossings);

Term computed_term(std::string name, double seconds, std::string parameter, std::string source);

}  // namespace fabricast::models::mpi
