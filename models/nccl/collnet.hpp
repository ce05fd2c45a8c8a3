// SPDX-License-Identifier: Apache-2.0
// NCCL's CollNet: the switches of the fabric reduce (SHARP). Every adapter sends its share up once and receives the
// reduced share once, however many hosts there are. Where a communicator gets it; what its trees cross.
#pragma once

#include "fabricast/virtualization.hpp"
#include "nccl/channels.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Whether hosts, GPUs, release and fabric allow it; switched on by `software.nccl.collnet`. NVIDIA/nccl
/// src/transport/coll_net.cc, src/init.cc.
Gate collnet_gate(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph);

/// Hosts in an order that has those below one switch side by side, by the adapter of each: a message from each to the
/// next loads adapters and switches as a reduction tree does, every adapter and every leaf once up and once down.
std::vector<std::size_t> order_by_leaf(const Topology& topology, const std::vector<HostChannel>& channel);

/// Bandwidth (GB/s of the buffer) and latency (us) in NCCL's tuning model.
double collnet_bandwidth(const CommunicatorFacts& facts);
double collnet_latency(const CommunicatorFacts& facts);

}  // namespace fabricast::models::nccl
