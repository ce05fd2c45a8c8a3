// SPDX-License-Identifier: Apache-2.0
// What a result says of the HCAs that NCCL takes: PXN, and adapters that stay idle.
#pragma once

#include <string>
#include <vector>

#include "fabricast/result.hpp"
#include "nccl/channels.hpp"

namespace fabricast::models::nccl {

/// `gpus`: of one host.
GivenUsed pxn_setting(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// HCAs of a host that carry nothing; where all do, the one on which sends and receives crowd.
std::vector<std::string> hca_assumptions(const PlanContext& context, const ChannelGraph& graph, const HostGroup& host,
                                         bool is_peer_to_peer);

}  // namespace fabricast::models::nccl
