// SPDX-License-Identifier: Apache-2.0
// Small helpers of the transfer model: rates of crossings, terms that are computed rather than looked up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/plan.hpp"
#include "fabricast/models/planner.hpp"

namespace fabricast::models::mpi {

/// bytes/s that one user of the crossing gets when alone.
double capacity_of(const PlanContext& context, const Crossing& crossing);

/// The crossing that lets the least through; none of no crossings.
std::optional<Crossing> narrowest(const PlanContext& context, const std::vector<Crossing>& crossings);
/// bytes/s of the slowest crossing.
double bottleneck(const PlanContext& context, const std::vector<Crossing>& crossings);
/// Limits a flow of one message to `connections` that each pay a gap before every message; the larger part of a
/// message's time, the gap (`parameter`) or what limits its bytes, names the limit.
void add_gap(const PlanContext& context, Flow& flow, Duration gap, int connections, const std::string& parameter);

Term computed_term(std::string name, double seconds, std::string parameter, std::string source);

}  // namespace fabricast::models::mpi
