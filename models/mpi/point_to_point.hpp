// SPDX-License-Identifier: Apache-2.0
// OSU and perftest point-to-point benchmarks as operations: half round trips, windows of messages with one
// acknowledgement, both directions, several pairs. docs/MODELS.md, "Point to point".
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::mpi {

Result<std::unique_ptr<Planner>> make_point_to_point_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::mpi
