// SPDX-License-Identifier: Apache-2.0
// What a result says of the HCAs that NCCL takes: PXN, and adapters that stay idle.
#pragma once

#include <string>
#include <vector>

#include "fabricast/result.hpp"
#include "nccl/channels.hpp"
#include "nccl/nics.hpp"

namespace fabricast::models::nccl {

GivenUsed pxn_setting(const PlanContext& context, const HostNics& nics);

/// HCAs of the first host that carry nothing; where all do, the one on which sends and receives crowd.
std::vector<std::string> hca_assumptions(const PlanContext& context, const HostNics& nics, const ChannelGraph& graph,
                                         bool is_peer_to_peer);

}  // namespace fabricast::models::nccl
