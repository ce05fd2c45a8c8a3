// SPDX-License-Identifier: Apache-2.0
// What a result says of the HCAs that NCCL takes: PXN, GPUDirect RDMA, and adapters that stay idle.
#pragma once

#include <string>
#include <vector>

#include "fabricast/result.hpp"
#include "nccl/channels.hpp"
#include "nccl/nics.hpp"
#include "nccl/patterns.hpp"

namespace fabricast::models::nccl {

inline constexpr const char* k_gpudirect_between_hosts = "GPUDirect RDMA between hosts";
/// Whether HCAs read and write GPU memory on the ways of `ring`, and what keeps those of any host from it; PXN.
std::vector<GivenUsed> adapter_settings(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                        const Pattern& ring);

/// HCAs of hosts of each kind that carry nothing; where all do, the one on which sends and receives crowd.
std::vector<std::string> hca_assumptions(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                         const ChannelGraph& graph, bool is_peer_to_peer);

}  // namespace fabricast::models::nccl
