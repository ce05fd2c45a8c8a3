// SPDX-License-Identifier: Apache-2.0
// What NCCL's tuner sees of hosts and of the channels found on them.
#pragma once

#include <vector>

#include "nccl/channels.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Without what network plugins, NVLink SHARP, CollNet and the operation add. `hosts`: of one communicator, not empty.
CommunicatorFacts facts_of(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph);

}  // namespace fabricast::models::nccl
