// SPDX-License-Identifier: Apache-2.0
// The fluid engine: executes plans as max-min fair flows on SimGrid's clock and solver.
//
// SimGrid is used with zero-latency links (its sharing is 1/latency otherwise) and one zone whose route is the crossing
// list of the flow being started; path latency is a timer. There is one SimGrid engine per process, built at first use;
// its clock goes on and results are differences.
//
// A chain that runs alone needs the executor only for flows that meet. Exact shortcuts, each compared with full
// expansion in tests/unit/engine:
//  - resources crossed by the same flows the same number of times: only the
//  slowest can bind, the others are dropped;
//  - a node with one flow and nothing beside it needs no solver: bytes /
//  min(capacity / times, cap);
//  - equal repeats are simulated once and multiplied; rings follow
//  engine/ring_rounds.hpp.
#pragma once

#include <vector>

#include "engine/job.hpp"

namespace fabricast::engine {

struct FluidOptions {
  bool full_expansion = false;  ///< no shortcut: every repeat, every resource
};

/// Runs the jobs together and returns their timings in order.
std::vector<OperationTiming> run(const models::Resources& resources, const std::vector<Job>& jobs,
                                 const FluidOptions& options = {});

}  // namespace fabricast::engine
