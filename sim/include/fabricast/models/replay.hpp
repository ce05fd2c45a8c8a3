// SPDX-License-Identifier: Apache-2.0
// A trace as a program: what every rank computes and exchanges, on the cluster's devices and links. Collectives and
// messages of GPUs are planned as NCCL would, those between processes as the MPI library would; docs/MODELS.md,
// "Traces".
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/trace.hpp"

namespace fabricast::models {

/// A trace's program and which of its nodes end the operations.
struct ReplayPlan {
  Program program;
  std::vector<std::vector<int>> ends;  ///< [rank][operation]: node
  std::vector<std::string> devices;    ///< [rank]
};

/// Faults: messages without a partner, collectives whose ranks do not agree, operations that wait for each other, ranks
/// that the topology has no place for. `ranks_per_host`: of processes; 0 = as MPI places them.
Result<ReplayPlan> plan_replay(const PlanContext& context, const Trace& trace, int ranks_per_host = 0);

}  // namespace fabricast::models
