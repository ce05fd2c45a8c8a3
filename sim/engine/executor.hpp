// SPDX-License-Identifier: Apache-2.0
// Runs programs over a network. A node starts when all nodes it waits for and the one before it on its stream have
// ended; nodes that an end lets start do so in the order of their numbers. What happens at the
// same moment is in the order in which the network tells it. The same input gives the same times.
//
// Cost: O(nodes + edges + flows x repeats) beside what the network asks for.
#pragma once

#include <vector>

#include "engine/job.hpp"
#include "engine/network_backend.hpp"

namespace fabricast::engine {

struct ExecutorOptions {
  /// One chain that runs alone: a repeat that took as long as the one before is not run again, nor are those of a ring
  /// in a steady state.
  bool leaves_out_repeats = false;
};

/// Timings of the parts in order; `total` from the part's start to its last end, or to when the network stopped.
std::vector<OperationTiming> execute(const models::Resources& resources, const std::vector<Part>& parts,
                                     NetworkBackend& network, const ExecutorOptions& options = {});

/// The program's nodes as a part that starts when what comes before it is paid.
inline Part whole(const Job& job) {
  const auto& program = job.plan->program;
  return {&program, 0, program.nodes.size(), job.start + models::sum(job.plan->before)};
}

}  // namespace fabricast::engine
