// SPDX-License-Identifier: Apache-2.0
// What engines are asked to run together, and what they say of it.
#pragma once

#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

/// One operation that starts at `start` beside the others.
struct Job {
  const models::OperationPlan* plan = nullptr;
  Duration start;
};

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

}  // namespace fabricast::engine
