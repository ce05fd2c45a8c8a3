// SPDX-License-Identifier: Apache-2.0
// The `traffic` benchmark: RDMA flows between hosts, from host memory to host memory, without MPI or NCCL above them.
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::traffic {

/// One flow before it has a route: HCAs, bytes (0 = the size of the row), start, priority (-1 = the workload's).
struct FlowSpec {
  std::string name;
  DeviceId from;
  DeviceId to;
  std::int64_t bytes = 0;
  Duration start;
  int priority = -1;
};

/// The flows of the workload's pattern, or why the topology cannot have them.
Result<std::vector<FlowSpec>> make_flows(const PlanContext& context, const Workload& workload);

Result<std::unique_ptr<Planner>> make_traffic_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::traffic
