// SPDX-License-Identifier: Apache-2.0
// The channels of a communicator: in each host an order of its GPUs, and the HCA a channel leaves and enters by
// (search.hpp), doubled as NCCL does; and the connections between two GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "nccl/nics.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

/// The GPUs of one host that take part, in the order of the bus, by which NCCL searches channels: those below one
/// socket together, of these those below one switch (NVIDIA/nccl src/graph/xml.cc keeps them by PCI bus id), whatever
/// their ranks.
struct HostGroup {
  int host = 0;
  std::vector<DeviceId> gpus;
};

/// One channel inside one host.
struct HostChannel {
  std::vector<DeviceId> order;  ///< first receives from the previous host, last sends to the next
  DeviceId hca;                 ///< used to receive; value -1 with one host
  DeviceId hca_out;             ///< used to send: the same unless channels cross (NCCL_CROSS_NIC)
  DeviceId tree_gpu;            ///< sends and receives in trees and CollNet: the first one
  DeviceId tree_hca;            ///< by this HCA; both are of the channel's twin where the two swap places
  DeviceId sender;              ///< hands the last one's data to the HCA: itself, or with PXN a GPU beside the HCA
};

/// A GPU that reduces a share of the vector in its host's NVSwitches, and the HCA by which it meets those of other
/// hosts.
struct NvlsHead {
  DeviceId gpu;
  DeviceId hca;             ///< value -1 with one host
  double hca_gb_per_s = 0;  ///< NCCL's planning speed of the way between them
};

struct ChannelGraph {
  std::vector<std::vector<HostChannel>> channels;  ///< [channel][host group]; doubled
  int graph_channels = 1;                          ///< before doubling
  double channel_gb_per_s = 0;                     ///< NCCL's planning speed of one undoubled channel
  double node_gb_per_s = 0;                        ///< planning speed of all channels inside one host, network left out
  bool is_nvlink = false;                          ///< all hosts connect their GPUs by NVLink
  bool has_nvswitch = false;
  bool ll128_allowed = true;
  bool are_swapped = false;        ///< channels cross; 2k and 2k + 1 swap places in every second host
  bool is_network_only = false;    ///< GPUs of one host that reach each other by sockets only
  bool has_equal_channels = true;  ///< all pass the GPUs of a host in one order
  bool has_plain_trees = false;    ///< some host's trees meet their parents and children by one GPU
  bool is_by_table = false;        ///< RCCL: hosts of eight GPUs that are all joined, whose channels are in its tables
  std::optional<HostNics> nics;    ///< of the first host, where there are several
  std::vector<std::vector<NvlsHead>> heads;  ///< [host group]; where NVLink SHARP is used, as many in each
};

/// Groups ranks by host, in the order of each host's first rank.
std::vector<HostGroup> group_by_host(const Topology& topology, const std::vector<DeviceId>& ranks);

/// Of hosts alike, with the same GPUs taking part, the first.
std::vector<const HostGroup*> unlike_hosts(const Topology& topology, const std::vector<HostGroup>& hosts);

/// Hosts of one shape have equal devices, GPUs that take part and cables, so NCCL finds the same in them.
using HostShape = std::pair<int, std::vector<int>>;
HostShape shape_of(const Topology& topology, const HostGroup& group);

/// Of hosts with GPUs one of each kind, with all of them.
std::vector<HostGroup> kinds_of_hosts(const Topology& topology);

/// Whether access control sends what a GPU and its nearest HCA exchange up to a root complex, in any of several hosts.
bool are_peers_redirected(const Topology& topology, const std::vector<HostGroup>& hosts);

ChannelGraph search_channels(const PlanContext& context, const std::vector<HostGroup>& hosts);

/// Channels that the search found, in words.
std::string channels_found(const ChannelGraph& graph);

/// By what two GPUs of one host exchange, when NCCL sees `gpus` of them there.
TransportKind kind_in_host(const PlanContext& context, DeviceId from, DeviceId to, int gpus);
/// The connection between two ranks of one host.
Route route_in_host(const PlanContext& context, DeviceId from, DeviceId to, int gpus);

/// Where NCCL keeps the sender's buffers of a connection between hosts when GPUDirect RDMA is allowed: its proxy reads
/// the flags of LL line by line, so LL leaves from host memory. The receiver's are on the GPU with every protocol
/// (NVIDIA/nccl src/transport/net.cc, sendProxyConnect and recvProxyConnect).
enum class Buffers { device, host };
struct Sending {
  Buffers buffers = Buffers::device;
  int gpus_of_host = 2;  ///< of the communicator: before Ampere a GPU without NVLink is read only where it is alone
};

/// The part of a connection between hosts before, or after, the fabric: the GPU's memory and the HCA, directly or
/// through host memory. Kind network when GPUDirect RDMA is used, else network_staged. With PXN another GPU is the
/// `sender`, which gets the data over NVLink.
Route sender_segment(const PlanContext& context, DeviceId gpu, DeviceId sender, DeviceId hca, Sending sending = {});
Route receiver_segment(const PlanContext& context, DeviceId hca, DeviceId gpu);

/// A connection over TCP; inside a host without adapters.
Route socket_route(const PlanContext& context, DeviceId from, DeviceId to, DeviceId from_hca, DeviceId to_hca,
                   std::uint64_t flow);

}  // namespace fabricast::models::nccl
