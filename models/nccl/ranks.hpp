// SPDX-License-Identifier: Apache-2.0
// Which GPUs take part in an NCCL benchmark, and whether their hosts can reach each other.
#pragma once

#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

/// What is assumed of ranks whose GPUs nobody named.
inline constexpr const char* k_in_host_order = "ranks are placed on GPUs in host order";

/// Those that `devices` names, in that order, of a VM all that it holds; of them the first `gpus` where that is given.
Result<std::vector<DeviceId>> named_gpus(const Topology& topology, const Workload& workload);

/// GPUs by name, or the first ones in host order (at most `ranks_per_host` of each host).
Result<std::vector<DeviceId>> choose_ranks(const Topology& topology, const Workload& workload);
inline Result<std::vector<DeviceId>> choose_ranks(const PlanContext& context, const Workload& workload) {
  return choose_ranks(context.topology, workload);
}

/// Every host must reach the next through the fabric.
Diagnostics unreachable_hosts(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks);

}  // namespace fabricast::models::nccl
