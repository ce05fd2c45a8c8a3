// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP in NCCL: NVSwitches reduce and multicast for the GPUs of a host (NVLS), trees over the network join the
// hosts (NVLSTree). Whether a communicator gets it, and the channels that NCCL's search finds for it.
#pragma once

#include "fabricast/virtualization.hpp"
#include "nccl/channels.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// [host group] GPUs that may be heads; in one host all of them, up to 32.
using NvlsHeads = std::vector<std::vector<NvlsHead>>;

struct NvlsOffer {
  Gate gate;
  NvlsHeads heads;  ///< where the gate is open, or closed by what is inferred alone
};

/// Whether hardware, release and VM allow it, switched on or off by nobody, and by which GPUs. NVIDIA/nccl
/// src/transport/nvls.cc, src/graph/search.cc.
NvlsOffer nvls_offer(const PlanContext& context, const std::vector<HostGroup>& hosts);

/// A head's own channel crosses its port twice, those of the h - 1 others once: h + 1 times in all.
NvlsGraph search_nvls(double port_gb_per_s, int heads, int version, int capability);

/// With several hosts each head has the planning speed of its way to its HCA. Speed by speed from the highest, as in
/// search.hpp, more heads are better than faster ones. Both speeds are the same at first, then the network's may grow
/// to twice the other.
NvlsGraph search_nvls(double port_gb_per_s, const std::vector<double>& hcas_gb_per_s, int version, int capability);

/// The same for a communicator that has NVLink SHARP: the heads that it uses stay in `heads`, as many in every host.
NvlsGraph search_nvls(const PlanContext& context, const std::vector<HostGroup>& hosts, NvlsHeads& heads);

/// Between GPUs that are heads and their HCAs.
struct NvlsWay {
  int gpus_of_host = 1;     ///< of the host with the fewest
  double hca_gb_per_s = 0;  ///< NCCL's planning speed of the slowest
  bool is_near = true;      ///< all below the GPU's own switches (PXB)
};
NvlsWay way_to_heads(const PlanContext& context, const std::vector<HostGroup>& hosts, const NvlsHeads& heads);

/// Thread blocks of its kernels, whatever rings have, and the largest chunk of NVLSTree in bytes.
struct NvlsKernels {
  int channels = 16;
  double tree_chunk = 0;
};
/// `chunk`: NCCL_NVLS_CHUNKSIZE, bytes.
NvlsKernels nvls_kernels(const CommunicatorFacts& facts, const NvlsWay& way, double chunk);

/// Channels of rings and trees, which have `found`, beside these kernels: 2.22 to 2.27 copy them until there are as
/// many.
std::size_t channels_beside_nvls(const CommunicatorFacts& facts, const NvlsKernels& kernels, std::size_t found);

}  // namespace fabricast::models::nccl
