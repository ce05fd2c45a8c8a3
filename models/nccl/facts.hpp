// SPDX-License-Identifier: Apache-2.0
// What NCCL's tuner sees of hosts and of the channels found on them.
#pragma once

#include <string>
#include <vector>

#include "nccl/channels.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// The first of the GPUs of least compute capability: NCCL plans for it (minCompCap of its communicators), and who runs
/// with it waits for it. A host of one GPU at least.
DeviceId least_capable(const PlanContext& context, const std::vector<HostGroup>& hosts);

/// The GPUs of the host whose way between GPUs and memory is the narrowest, whose threads are the slowest, whose memory
/// serves most GPUs: all others wait for what it limits, in whatever order they are listed.
const HostGroup& slowest_host(const PlanContext& context, const std::vector<HostGroup>& hosts);

/// Of these GPUs, most that share a host memory.
int gpus_of_memory(const PlanContext& context, const HostGroup& host);

/// Without what network plugins, NVLink SHARP, CollNet and the operation add. `hosts`: of one communicator, not empty.
CommunicatorFacts facts_of(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph);

/// What stands for their GPUs, or for the adapter between them (value < 0: none), that no log has taught.
std::vector<std::string> stand_ins_among(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                         DeviceId adapter);

}  // namespace fabricast::models::nccl
