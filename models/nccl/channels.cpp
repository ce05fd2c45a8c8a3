// SPDX-License-Identifier: Apache-2.0
#include "nccl/channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/bus_order.hpp"
#include "nccl/facts.hpp"
#include "nccl/nics.hpp"
#include "nccl/rccl.hpp"
#include "nccl/search.hpp"
#include "nccl/tuning.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr PathOptions k_over_nvlink{.may_use_nvlink = true, .may_forward_through_gpu = true};

/// How far apart two GPUs may be that read and write each other's memory (paths.cc, ncclTopoCheckP2p): a common switch,
/// on AMD any path (from 2.23 on for two GPUs only), on Skylake and later of Intel any path in 2.6, one inside the
/// socket in 2.7 and 2.8.
Distance nccl_p2p_level(const PlanContext& context, DeviceId gpu, int gpus) {
  const auto& topology = context.topology;
  const int version = release_number(context.software.nccl_version);
  if (is_amd(topology, gpu)) return version < 223 || gpus <= 2 ? Distance::sys : Distance::pxb;
  const auto& processor = processor_of(topology, gpu);
  const auto cores = topology.attribute(processor, "microarchitecture");
  const bool is_skylake = topology.attribute(processor, "vendor") == "intel" && !is_before_skylake(cores);
  if (is_skylake && version == 206) return Distance::sys;
  return is_skylake && (version == 207 || version == 208) ? Distance::node : Distance::pxb;
}

/// One end of a network connection: the HCA and the GPU's memory, directly or through host memory.
/// True when GPUDirect RDMA is used.
bool add_end(const PlanContext& context, DeviceId gpu, DeviceId hca, bool is_sender, Sending sending, Route& route) {
  const auto& topology = context.topology;
  auto allowed =
      sending.buffers == Buffers::device && gpudirect_rdma(context, gpu, hca, gdr_level(context, gpu)).is_allowed;
  // GPUDirect reads are off before Ampere unless the GPUs of the host have NVLink or there is only one (paths.cc).
  if (is_sender && sending.gpus_of_host > 1 && compute_capability(context, gpu) < 80) {
    allowed = allowed && has_peer(context, gpu, true);
  }
  PathOptions pcie_only;
  pcie_only.may_use_nvlink = false;
  const auto path = is_sender ? topology.path_in_host(gpu, hca, pcie_only) : topology.path_in_host(hca, gpu, pcie_only);
  if (allowed && path) {
    add_gpudirect(context, hca, *path, is_sender, route);
    return true;
  }
  const auto memory = topology.local_memory(hca);
  if (is_sender) {
    add_host_copy(context, gpu, memory, true, route);
    add_host_copy(context, hca, memory, false, route);
  } else {
    add_host_copy(context, hca, memory, true, route);
    add_host_copy(context, gpu, memory, false, route);
  }
  return false;
}

}  // namespace

Route socket_route(const PlanContext& context, DeviceId from, DeviceId to, DeviceId from_hca, DeviceId to_hca,
                   std::uint64_t flow) {
  Route route;
  route.kind = TransportKind::socket;
  const auto& topology = context.topology;
  const auto from_memory = topology.local_memory(from);
  const auto to_memory = topology.local_memory(to);
  add_host_copy(context, from, from_memory, true, route);
  if (from_hca.value >= 0 && to_hca.value >= 0 && can_stay_inside_host(context, from_hca, to_hca)) {
    add_inside_host(context, from_hca, to_hca, route, from, to);
  } else if (from_hca.value >= 0 && to_hca.value >= 0 && from_hca != to_hca) {
    add_host_copy(context, from_hca, from_memory, false, route);
    add_fabric(context, from_hca, to_hca, flow, route, from, to);
    add_host_copy(context, to_hca, to_memory, true, route);
  }
  add_host_copy(context, to, to_memory, false, route);
  return route;
}

std::vector<HostGroup> group_by_host(const Topology& topology, const std::vector<DeviceId>& ranks) {
  std::vector<HostGroup> groups;
  std::map<int, std::size_t> index;
  for (const auto rank : ranks) {
    const int host = topology.host_of(rank);
    const auto [it, is_new] = index.try_emplace(topology.guest_of(rank), groups.size());
    if (is_new) groups.push_back({host, {}});
    groups[it->second].gpus.push_back(rank);
  }
  BusOrder order(topology);
  for (auto& group : groups) order.sort(group.gpus);
  return groups;
}

std::vector<const HostGroup*> unlike_hosts(const Topology& topology, const std::vector<HostGroup>& hosts) {
  std::set<std::pair<int, std::vector<int>>> places;
  std::vector<const HostGroup*> out;
  for (const auto& host : hosts)
    if (places.insert(topology.place_of(host.gpus)).second) out.push_back(&host);
  return out;
}

HostShape shape_of(const Topology& topology, const HostGroup& group) {
  auto shape = topology.place_of(group.gpus);
  shape.second.push_back(-1);  // GPUs end, HCAs begin
  for (const auto hca : topology.devices(DeviceKind::hca, group.host))
    if (topology.is_cabled(hca)) shape.second.push_back(topology.ordinal(hca));
  return shape;
}

std::vector<HostGroup> kinds_of_hosts(const Topology& topology) {
  const auto all = group_by_host(topology, topology.devices(DeviceKind::gpu));
  std::vector<HostGroup> out;
  for (const auto* host : unlike_hosts(topology, all)) out.push_back(*host);
  return out;
}

bool are_peers_redirected(const Topology& topology, const std::vector<HostGroup>& hosts) {
  return hosts.size() > 1 && std::any_of(hosts.begin(), hosts.end(), [&](const HostGroup& group) {
           if (!topology.virtualization(group.host).redirects_peers()) return false;
           return std::any_of(group.gpus.begin(), group.gpus.end(), [&](DeviceId gpu) {
             const auto hcas = topology.hcas_by_distance(gpu);
             const auto path =
                 hcas.empty() ? std::nullopt : topology.path_in_host(gpu, hcas.front(), {.may_use_nvlink = false});
             return path && std::any_of(path->peer_crossings.begin(), path->peer_crossings.end(),
                                        [](const auto& crossing) { return crossing.is_redirected; });
           });
         });
}

/// Whether a release allows LL128 on these GPUs: of one compute capability, from 2.30 on of several from Hopper on; of
/// those that it was tested with, from 2.27 on of all since Volta (tuning.cc).
bool allows_ll128(const PlanContext& context, const std::vector<HostGroup>& hosts, int capability) {
  constexpr std::array k_tested{70, 80, 90, 100, 120};
  const int version = release_number(context.software.nccl_version);
  const bool are_one = std::ranges::all_of(hosts, [&](const HostGroup& host) {
    return std::ranges::all_of(host.gpus, [&](DeviceId gpu) { return compute_capability(context, gpu) == capability; });
  });
  if (!are_one && (version < 230 || capability < 90)) return false;
  if (version >= 227) return capability >= 70;
  return version >= first_release(capability) && std::ranges::find(k_tested, capability) != k_tested.end();
}

/// Whether all channels enter and leave the hosts by GPUs below the same switches as the HCA, or by NVLink-C2C; for
/// Hopper from 2.17 on also by way of such a GPU (PXN).
bool are_hcas_near(const PlanContext& context, const ChannelGraph& graph, int capability) {
  const bool may_hand_over = capability >= 90 && release_number(context.software.nccl_version) >= 217;
  for (const auto& channel : graph.channels) {
    for (const auto& in_host : channel) {
      if (in_host.hca.value < 0) continue;
      const auto last = may_hand_over ? in_host.sender : in_host.order.back();
      if (nic_path(context, in_host.order.front(), in_host.hca) > NicPath::p2c) return false;
      if (nic_path(context, last, in_host.hca_out) > NicPath::p2c) return false;
    }
  }
  return true;
}

namespace {

/// Channels of the search inside one host: `c` for rings, `tree` for trees.
HostChannel host_channel(const Topology& topology, const HostSearch& search, const HostGroup& host, std::size_t tree,
                         std::size_t c) {
  HostChannel channel;
  channel.tree_gpu = host.gpus[static_cast<std::size_t>(search.orders[tree].front())];
  for (const int g : search.orders[c]) channel.order.push_back(host.gpus[static_cast<std::size_t>(g)]);
  channel.sender = channel.order.back();
  if (search.hcas.empty()) return channel;
  channel.hca = topology.device_in_host(host.host, DeviceKind::hca, search.hcas[c]);
  channel.tree_hca = topology.device_in_host(host.host, DeviceKind::hca, search.hcas[tree]);
  channel.hca_out = topology.device_in_host(host.host, DeviceKind::hca, search.hcas_out[c]);
  channel.sender = host.gpus[static_cast<std::size_t>(search.senders[c])];
  return channel;
}

/// The same by RCCL's tables: in by the adapter beside the first GPU, out by the one beside the last.
HostChannel host_channel_by_table(const Topology& topology, const HostSearch& search, const HostGroup& host,
                                  const std::vector<int>& way) {
  const auto adapter = [&](int position) {
    return topology.device_in_host(host.host, DeviceKind::hca, search.hcas_beside[static_cast<std::size_t>(position)]);
  };
  HostChannel channel;
  for (const int g : way) channel.order.push_back(host.gpus[static_cast<std::size_t>(g)]);
  channel.hca = channel.tree_hca = adapter(way.front());
  channel.hca_out = adapter(way.back());
  channel.tree_gpu = channel.order.front();
  channel.sender = channel.order.back();
  return channel;
}

/// All channels before they are doubled pass the GPUs of every host in one order (sameChannels).
bool are_channels_equal(const ChannelGraph& graph) {
  const auto& channels = graph.channels;
  for (std::size_t c = 1; c < static_cast<std::size_t>(graph.graph_channels); ++c) {
    for (std::size_t h = 0; h < channels[c].size(); ++h) {
      if (channels[c][h].order != channels[0][h].order) return false;
    }
  }
  return true;
}

/// Whether a host's trees meet their parent and both children by one GPU: where there is one only, and from Hopper on
/// where no second one is as near to the HCA, since plainer trees are tried there before farther paths (search.cc,
/// ncclTopoCompute).
bool has_plain_trees(const PlanContext& context, const HostGroup& host, const ChannelGraph& graph, std::size_t h) {
  if (host.gpus.size() == 1) return true;
  if (compute_capability(context, host.gpus[0]) < 90) return false;
  return std::ranges::any_of(graph.channels, [&](const auto& channel) {
    const auto& one = channel[h];
    if (one.tree_hca.value < 0) return false;
    const auto nearest = nic_path(context, one.tree_gpu, one.tree_hca);
    return std::ranges::none_of(host.gpus, [&](DeviceId gpu) {
      return gpu != one.tree_gpu && nic_path(context, gpu, one.tree_hca) <= nearest;
    });
  });
}

/// NCCL doubles all channels, and fast ones of Hopper between hosts again (connect.cc).
std::size_t copies_of_channels(const PlanContext& context, const ChannelGraph& graph,
                               const std::vector<HostGroup>& hosts, int capability) {
  const auto num_hosts = hosts.size();
  const auto& gpus = hosts[0].gpus;
  if (library_of(context, gpus[0]) == Library::rccl)
    return rccl::copies_of_channels(generation_of(context, gpus[0]).value_or(AmdGeneration::cdna3),
                                    static_cast<std::size_t>(graph.graph_channels), gpus.size(), num_hosts);
  const int version = release_number(context.software.nccl_version);
  const bool is_hopper = capability == 90 || (capability > 90 && version >= 225);
  const bool is_fast = version >= 218 && is_hopper && num_hosts > 1 && graph.channel_gb_per_s > 45;
  return is_fast && 2 * graph.graph_channels < 16 ? 4 : 2;
}

/// The channel of the search that takes place `c` in host `h`: where channels swap HCAs every second host has them in
/// each other's place, so that a ring's connections join equal HCAs (connect.cc, Postset).
std::size_t place_in_host(const ChannelGraph& graph, std::size_t c, std::size_t h) {
  return graph.are_swapped && h % 2 == 1 ? c ^ 1U : c;
}

}  // namespace

ChannelGraph search_channels(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto& topology = context.topology;
  // Equal hosts with equal GPUs and cables get equal channels: search once per shape and sets of ordinals.
  std::map<HostShape, HostSearch> searches;
  std::vector<const HostSearch*> by_host;
  ChannelGraph graph;
  graph.is_nvlink = graph.has_nvswitch = graph.are_swapped = true;
  graph.channel_gb_per_s = graph.node_gb_per_s = 1e9;
  const auto& first = hosts[0].gpus;
  graph.is_network_only =
      hosts.size() == 1 && first.size() > 1 &&
      kind_in_host(context, first[0], first[1], static_cast<int>(first.size())) == TransportKind::socket;
  std::size_t num_channels = 32;
  for (const auto& group : hosts) {
    const auto [it, is_new] = searches.try_emplace(shape_of(topology, group));
    if (is_new)
      it->second = graph.is_network_only ? search_by_interface(context, group.gpus)
                   : hosts.size() > 1    ? search_with_network(context, group.gpus)
                                         : search_alone(context, group.gpus);
    by_host.push_back(&it->second);
    num_channels = std::min(num_channels, it->second.orders.size());
    graph.is_nvlink = graph.is_nvlink && (it->second.is_nvlink || group.gpus.size() == 1);
    graph.has_nvswitch = graph.has_nvswitch && it->second.has_nvswitch;
    graph.are_swapped = graph.are_swapped && it->second.are_swapped;
    graph.channel_gb_per_s = std::min(graph.channel_gb_per_s, it->second.speed);
    graph.node_gb_per_s = std::min(graph.node_gb_per_s, it->second.inside);
  }
  graph.graph_channels = static_cast<int>(num_channels);
  graph.are_swapped = graph.are_swapped && num_channels % 2 == 0;
  const int capability = compute_capability(context, least_capable(context, hosts));
  const auto library = library_of(context, first[0]);
  const auto copies = copies_of_channels(context, graph, hosts, capability);
  for (std::size_t c = 0; c < copies * num_channels; ++c) {
    std::vector<HostChannel> channel;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const bool is_by_table = !by_host[h]->hcas_beside.empty();
      channel.push_back(is_by_table
                            ? host_channel_by_table(topology, *by_host[h], hosts[h], rccl::way(c, h, hosts.size()))
                            : host_channel(topology, *by_host[h], hosts[h], c % num_channels,
                                           place_in_host(graph, c % num_channels, h)));
    }
    graph.channels.push_back(std::move(channel));
  }
  // Over NVSwitches before 2.12 measured times of broadcasts show one hop (ABCI's A100, 2.8), whatever the search says.
  const bool is_counted_once = graph.has_nvswitch && release_number(context.software.nccl_version) < 212;
  graph.has_equal_channels = is_counted_once || are_channels_equal(graph);
  for (std::size_t h = 0; h < hosts.size() && library == Library::nccl; ++h)
    graph.has_plain_trees = graph.has_plain_trees || has_plain_trees(context, hosts[h], graph, h);
  const bool is_tested = library == Library::rccl || allows_ll128(context, hosts, capability);
  graph.ll128_allowed = is_tested && graph.is_nvlink && are_hcas_near(context, graph, capability);
  graph.is_by_table = std::ranges::all_of(by_host, [](const auto* one) { return one->is_full_mesh; });
  if (library == Library::rccl) graph.ll128_allowed = graph.ll128_allowed && graph.is_by_table && hosts.size() > 1;
  if (hosts.size() > 1) graph.nics = by_host[0]->nics ? by_host[0]->nics : HostNics(context, first);
  return graph;
}

std::string channels_found(const ChannelGraph& graph) {
  const auto found = static_cast<std::size_t>(graph.graph_channels);
  const auto copies = graph.channels.size() / found;
  return fmt::format("{} {} at {:.1f} GB/s each, {}", found, graph.is_by_table ? "in RCCL's tables" : "found",
                     graph.channel_gb_per_s,
                     graph.channels.size() % found > 0 ? "copied"
                     : copies == 2                     ? "doubled"
                                                       : fmt::format("{} times", copies));
}

TransportKind kind_in_host(const PlanContext& context, DeviceId from, DeviceId to, int gpus) {
  const auto& topology = context.topology;
  if (context.software.nccl_p2p) {
    const auto nvlink = topology.path_in_host(from, to, k_over_nvlink);
    if (nvlink && nvlink->uses_nvlink && nvlink_gate_of(context, from).is_open) return TransportKind::nvlink;
    if (topology.distance(from, to) <= nccl_p2p_level(context, from, gpus) && pcie_gate_of(context, from).is_open &&
        topology.path_in_host(from, to, {.may_use_nvlink = false}))
      return TransportKind::pcie;
  }
  // TCP between hosts leaves the shared memory inside them; on one host it means loopback.
  const bool is_loopback_meant = context.software.transport == "tcp" && topology.num_hosts() == 1;
  return context.software.nccl_shm && !is_loopback_meant ? TransportKind::host_memory : TransportKind::socket;
}

Route route_in_host(const PlanContext& context, DeviceId from, DeviceId to, int gpus) {
  const auto& topology = context.topology;
  Route route;
  route.kind = kind_in_host(context, from, to, gpus);
  if (route.kind == TransportKind::socket) return socket_route(context, from, to, {}, {}, 0);
  if (route.kind == TransportKind::nvlink) {
    add_dma(context, *topology.path_in_host(from, to, k_over_nvlink), false, route);
  } else if (route.kind == TransportKind::pcie) {
    add_dma(context, *topology.path_in_host(from, to, {.may_use_nvlink = false}), false, route);
  } else {
    // The buffers are the receiver's (NCCL_SHM_LOCALITY 2).
    const auto memory = staging_memory(context, to);
    add_host_copy(context, from, memory, true, route);
    add_host_copy(context, to, memory, false, route);
  }
  return route;
}

Route sender_segment(const PlanContext& context, DeviceId gpu, DeviceId sender, DeviceId hca, Sending sending) {
  Route route;
  if (sender != gpu) {
    const auto path = context.topology.path_in_host(gpu, sender);
    FABRICAST_ASSERT(path && path->uses_nvlink, "PXN without NVLink");
    add_dma(context, *path, false, route);
  }
  route.kind =
      add_end(context, sender, hca, true, sending, route) ? TransportKind::network : TransportKind::network_staged;
  return route;
}

Route receiver_segment(const PlanContext& context, DeviceId hca, DeviceId gpu) {
  Route route;
  route.lands_in_gpu = add_end(context, gpu, hca, false, {}, route);
  route.kind = route.lands_in_gpu ? TransportKind::network : TransportKind::network_staged;
  return route;
}

}  // namespace fabricast::models::nccl
