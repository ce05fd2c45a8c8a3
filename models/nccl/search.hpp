// SPDX-License-Identifier: Apache-2.0
// NCCL's search for the channels of one host (ncclTopoCompute, NVIDIA/nccl src/graph/search.cc): inside, NVSwitch hosts
// take any order of their GPUs, NVLink meshes link-disjoint Hamiltonian cycles or paths, other hosts rings over PCIe
// (pcie_search.hpp). Towards the network, speed by speed from the highest, each channel takes the next HCA with as much
// of its rate left.
#pragma once

#include <optional>
#include <vector>

#include "nccl/nics.hpp"

namespace fabricast::models::nccl {

/// What the search knows of one host, in positions of its GPUs and HCAs.
struct HostSearch {
  std::vector<std::vector<int>> orders;  ///< one per channel before all are doubled
  std::vector<int> hcas;                 ///< HCA ordinal per channel; empty with one host
  std::vector<int> hcas_out;             ///< the same of what leaves
  bool do_cross = false;                 ///< some channel leaves by another HCA than it enters by
  bool are_swapped = false;              ///< every second host has channels 2k and 2k + 1 in each other's place
  std::vector<int> senders;              ///< GPU per channel that hands the last one's data to the HCA
  std::vector<int> hcas_beside;  ///< of RCCL's tables: HCA ordinal beside each GPU, which takes the place of all above
  double speed = 0;
  double inside = 0;     ///< speed of all channels without the network
  double pcie_ring = 0;  ///< what PCIe links leave one ring, GB/s; 0 where NVLink joins the GPUs
  bool is_nvlink = false;
  bool has_nvswitch = false;
  bool is_full_mesh = false;     ///< of RCCL's tables
  std::optional<HostNics> nics;  ///< of the host that was searched, where the network was met
};

/// NCCL's speeds between nodes, high to low, GB/s.
const std::vector<double>& network_speeds(int version, int compute_capability);

/// Without other hosts.
HostSearch search_alone(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// Without peer access and shared memory NCCL counts GPUs of one host as reachable over the network only: one channel
/// at the speed of the interface (NVIDIA/nccl src/graph/paths.cc, search.cc).
HostSearch search_by_interface(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// One of several hosts.
HostSearch search_with_network(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// How often each HCA of a host is the HCA of a channel, and from which GPU to which.
struct NetworkChannel {
  std::size_t hca = 0, first = 0, last = 0;  ///< positions in HostNics
  std::size_t hca_out = 0;                   ///< another one where channels cross
};
struct NetworkChannels {
  std::vector<NetworkChannel> channels;
  double speed = 0;       ///< GB/s of each
  bool do_cross = false;  ///< channels may leave by another HCA than they enter by
};

/// What joins the GPUs of a host.
enum class Joint { pcie, nvlinks, nvswitches };

/// `inside_gb_per_s`: what all channels together have inside the host.
NetworkChannels place_channels(const HostNics& nics, const std::vector<double>& speeds, double inside_gb_per_s,
                               Joint joint);

}  // namespace fabricast::models::nccl
