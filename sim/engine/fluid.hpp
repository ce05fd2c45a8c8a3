// SPDX-License-Identifier: Apache-2.0
// The fluid engine: executes plans as max-min fair flows on SimGrid's clock and solver.
//
// SimGrid is used with zero-latency links (its sharing is 1/latency otherwise) and one zone whose route is the crossing
// list of the flow being started; path latency is a timer. There is one SimGrid engine per process, built at first use;
// its clock goes on and results are differences.
//
// Exact shortcuts, each compared with full expansion in tests/unit/engine:
//  - resources crossed by the same flows the same number of times: only the slowest can bind, the others are dropped;
//  - a round with one flow and nothing beside it needs no solver: bytes / min(capacity / times, cap);
//  - equal rounds of a job that runs alone are simulated once and multiplied; rings follow engine/ring_rounds.hpp.
#pragma once

#include <functional>
#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

/// When a node ran, and what bound the flow that ended it.
struct NodeTiming {
  Duration start{-1};  ///< since the program's start; -1 = never
  Duration end{-1};
  Duration fixed;     ///< sum of the node's fixed terms, one repeat
  Duration work;      ///< compute: as listed, one repeat
  Duration slowed;    ///< compute: what flows on its device added, all repeats
  Duration latency;   ///< latency of the critical flow, one repeat
  Duration transfer;  ///< bytes / rate of the critical flow, one repeat
  std::size_t critical_flow = 0;
  std::int64_t repeat = 1;
  std::vector<Term> latency_terms;  ///< that add up to `latency`; empty = those of the critical flow
  Duration whole{-1};               ///< all repeats, where that is no multiple of one; else -1
  /// What held the critical flow while all flows of the node were active: a resource, -1 = its cap, -2 = not asked.
  int binding = -2;
  std::vector<Duration> flow_ends;  ///< since the last repeat began
};

struct OperationTiming {
  Duration total;  ///< before + program; the floor is not applied
  std::vector<NodeTiming> nodes;
};

struct FluidOptions {
  bool full_expansion = false;  ///< no shortcut: every round, every resource
};

/// One operation that starts at `start` beside the others.
struct Job {
  const models::OperationPlan* plan = nullptr;
  Duration start;
};

/// Runs the jobs together and returns their timings in order.
std::vector<OperationTiming> run(const models::Resources& resources, const std::vector<Job>& jobs,
                                 const FluidOptions& options = {});

/// A transfer that starts `latency` after all its predecessors have ended.
struct Task {
  models::Flow flow;
  std::vector<int> after;  ///< indices of predecessors
  int behind = -1;         ///< the task behind whose bytes its own leave, none = -1; its latency does not wait for them
};

/// End time of every task; the reference that shortcuts and pipelined models are compared with.
std::vector<Duration> run_tasks(const models::Resources& resources, const std::vector<Task>& tasks);

/// The resource or cap that limits a flow alone: index into crossings, or -1 for the cap.
int binding_crossing(const models::Resources& resources, const models::Flow& flow);

}  // namespace fabricast::engine
