// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP in NCCL: NVSwitches reduce and multicast for the GPUs of a host (NVLS), trees over the network join the
// hosts (NVLSTree). Whether a communicator gets it, and the channels that NCCL's search finds for it.
#pragma once

#include "fabricast/virtualization.hpp"
#include "nccl/channels.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Whether hardware, release and VM allow it; switched on or off by nobody. NVIDIA/nccl src/transport/nvls.cc,
/// src/graph/search.cc.
Gate nvls_gate(const PlanContext& context, const std::vector<HostGroup>& hosts);

/// A head's own channel crosses its port twice, those of the g - 1 others once: g + 1 times in all. With several hosts
/// both speeds are the same at first, then the network's may grow to twice the other; `network_gb_per_s` is what a head
/// has of its adapter, 0 with one host.
NvlsGraph search_nvls(double port_gb_per_s, int heads, double network_gb_per_s, int version, int capability);

/// The same for a communicator that has NVLink SHARP.
NvlsGraph search_nvls(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph);

/// Channels (thread blocks) of its kernels. With several hosts no more than rings have.
int nvls_channels(int version, int capability, int num_hosts, int ring_channels);

}  // namespace fabricast::models::nccl
