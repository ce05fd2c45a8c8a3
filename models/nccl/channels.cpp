// SPDX-License-Identifier: Apache-2.0
#include "nccl/channels.hpp"

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "guest/guest.hpp"
#include "nccl/mesh.hpp"
#include "nccl/tuning.hpp"
#include "sharing/contention.hpp"

namespace fabricast::models::nccl {

namespace {

/// NCCL's planning speed of one NVLink in GB/s (topo.h): P100 18, V100 and A100 20, sm86 12, H100 20.6.
double nvlink_gb_per_s(int compute_capability) {
  if (compute_capability >= 90) return 20.6;
  if (compute_capability == 86) return 12;
  return compute_capability >= 70 ? 20 : 18;
}

/// The largest of NCCL's channel speeds between nodes not above `gb_per_s` (search.cc).
double network_speed(double gb_per_s) {
  for (const double speed : {48.0, 45.0, 42.0, 40.0, 30.0, 28.0, 24.0, 22.0, 20.0, 18.0, 15.0, 12.0,
                             10.0, 9.0,  7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12}) {
    if (speed <= gb_per_s) return speed;
  }
  return 0.12;
}

int compute_capability(const PlanContext& context, DeviceId gpu) {
  return static_cast<int>(device_value(context, gpu, "compute_capability"));
}

/// What the search knows of one host, in positions of HostGroup::gpus.
struct HostSearch {
  std::vector<std::vector<int>> orders;  ///< one per undoubled channel
  std::vector<int> hcas;                 ///< HCA ordinal per undoubled channel; empty with one host
  double speed = 0;
  double inside = 0;  ///< speed of all channels without the network
  bool is_nvlink = false;
  bool has_nvswitch = false;
};

std::vector<int> in_rank_order(std::size_t n) {
  std::vector<int> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<int>(i);
  return order;
}

/// NVLinks of one GPU towards NVSwitches; 0 when the host has none.
int nvswitch_lanes(const Topology& topology, const std::vector<DeviceId>& gpus) {
  if (gpus.size() < 2) return 0;
  const auto path = topology.path_in_host(gpus[0], gpus[1]);
  if (!path || !path->uses_nvlink || path->links.size() < 2) return 0;
  const auto first = topology.link(path->links[0]);
  return topology.kind(first.to) == DeviceKind::nvswitch ? first.lanes : 0;
}

/// PCIe planning speed of a slot: 12 GB/s for generation 3 x16 and in proportion.
double pcie_gb_per_s(double generation, double width) {
  return width * 15.0 * static_cast<double>(1 << (static_cast<int>(generation) - 1)) / 80.0;
}

/// Planning speed of an HCA. Releases before 2.9 know PCIe generations by the names of kernels before 5.7 only and take
/// an unknown name for generation 3 (topo.cc). That the kernel had the newer names is inferred from tables of A100
/// hosts: they change protocol where NCCL's model does with generation 3.
double hca_gb_per_s(const PlanContext& context, DeviceId hca) {
  const double width = device_value_or(context, hca, "pcie_width", 16);
  const double slot = release_number(context.software.nccl_version) < 209 ? pcie_gb_per_s(3, width) : 1e9;
  return network_speed(std::min(device_value(context, hca, "rate") * 1e-9, slot));
}

HostSearch find_channels(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& topology = context.topology;
  HostSearch search;
  const int capability = compute_capability(context, gpus[0]);
  const bool may_use_nvlink = context.software.nccl_p2p && nvlink_gate_of(context, gpus[0]).is_open;
  if (const int lanes = nvswitch_lanes(topology, gpus); lanes > 0 && may_use_nvlink) {
    // Found by NCCL on HGX hosts: speed 20 up to Ampere, 30 on Hopper, as many channels as the NVLinks carry.
    search.speed = capability >= 90 ? 30 : (capability >= 70 ? 20 : 18);
    const int channels = std::clamp(static_cast<int>(lanes * nvlink_gb_per_s(capability) / search.speed), 1, 16);
    search.orders.assign(static_cast<std::size_t>(channels), in_rank_order(gpus.size()));
    search.is_nvlink = search.has_nvswitch = true;
    return search;
  }
  if (may_use_nvlink) { search.orders = disjoint_rings(direct_lanes(topology, gpus), 16); }
  if (!search.orders.empty()) {
    search.is_nvlink = true;
    search.speed = nvlink_gb_per_s(capability);
    return search;
  }
  search.orders.push_back(in_rank_order(gpus.size()));
  search.speed =
      pcie_gb_per_s(device_value(context, gpus[0], "pcie_generation"), device_value(context, gpus[0], "pcie_width")) *
      (context.software.nccl_p2p ? 1.0 : 0.5);
  return search;
}

/// Without peer access and shared memory NCCL counts GPUs of one host as reachable over the network only: one channel
/// at the speed of the interface (NVIDIA/nccl src/graph/paths.cc, search.cc).
HostSearch search_by_interface(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& topology = context.topology;
  double speed = 0;
  for (const auto hca : topology.devices(DeviceKind::hca, topology.host_of(gpus[0])))
    speed = std::max(speed, device_value(context, hca, "rate"));
  if (speed <= 0) speed = context.parameters.number("nccl.interface_speed");
  HostSearch search;
  search.orders.push_back(in_rank_order(gpus.size()));
  search.speed = search.inside = network_speed(speed * 1e-9);
  return search;
}

HostSearch search_alone(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  auto search = find_channels(context, gpus);
  search.inside = search.speed * static_cast<double>(search.orders.size());
  return search;
}

/// Positions of the GPUs nearest to an HCA.
std::vector<int> nearest_gpus(const Topology& topology, const std::vector<DeviceId>& gpus, DeviceId hca) {
  auto best = Distance::sys;
  for (const auto gpu : gpus) best = std::min(best, topology.distance(gpu, hca));
  std::vector<int> near;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (topology.distance(gpus[g], hca) == best) near.push_back(static_cast<int>(g));
  }
  return near;
}

std::vector<int> chain_between(const LaneMatrix& lanes, bool is_mesh, std::size_t n, int first, int last) {
  if (is_mesh) {
    if (auto order = hamiltonian(lanes, first, n > 1 ? last : -1, false)) return *order;
    if (auto order = hamiltonian(lanes, first, -1, false)) return *order;
  }
  std::vector<int> order{first};
  for (int g = 0; g < static_cast<int>(n); ++g) {
    if (g != first && g != last) order.push_back(g);
  }
  if (last != first) order.push_back(last);
  return order;
}

std::vector<DeviceId> cabled_hcas(const Topology& topology, int host) {
  auto hcas = topology.devices(DeviceKind::hca, host);
  std::erase_if(hcas, [&](DeviceId hca) { return !topology.is_cabled(hca); });
  return hcas;
}

/// With several hosts every HCA carries one channel; the chain starts and ends at the GPUs nearest to it.
HostSearch search_with_network(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& topology = context.topology;
  HostSearch search = search_alone(context, gpus);
  auto hcas = cabled_hcas(topology, topology.host_of(gpus[0]));
  std::erase_if(hcas, [&](DeviceId hca) { return !topology.may_use_hca(topology.guest_of(gpus[0]), hca); });
  const bool is_mesh = search.is_nvlink && !search.has_nvswitch;
  const auto lanes = is_mesh ? direct_lanes(topology, gpus) : LaneMatrix{};
  search.orders.clear();
  search.speed = 1e9;
  double fastest = 0;
  for (const auto hca : hcas) fastest = std::max(fastest, device_value(context, hca, "rate"));
  for (const auto hca : hcas) {
    if (device_value(context, hca, "rate") < fastest) continue;  // NCCL drops slower ports
    const auto near = nearest_gpus(topology, gpus, hca);
    const auto turn = search.orders.size();
    const int first = near[turn % near.size()];
    int last = near[(turn + 1) % near.size()];
    if (last == first && gpus.size() > 1) last = first == 0 ? static_cast<int>(gpus.size()) - 1 : first - 1;
    search.orders.push_back(chain_between(lanes, is_mesh, gpus.size(), first, last));
    search.hcas.push_back(topology.device(hca).ordinal);
    search.speed = std::min(search.speed, hca_gb_per_s(context, hca));
  }
  if (gpus.size() > 1 && !search.orders.empty()) {
    search.speed = std::min(search.speed, std::max(search.inside, 1.0) / static_cast<double>(search.orders.size()));
  }
  return search;
}

Distance nccl_p2p_level(const PlanContext& context, DeviceId gpu) {
  const auto& topology = context.topology;
  const int gpus = topology.count(DeviceKind::gpu, topology.host_of(gpu));
  const bool is_amd = processor_of(topology, gpu).rfind("epyc", 0) == 0;
  return is_amd && gpus <= 2 ? Distance::sys : Distance::pxb;
}

/// The loopback interface belongs to a kernel, one per VM: among several of a host, the first GPU of the VM that shares
/// the memory stands for it.
DeviceId loopback_owner(const PlanContext& context, DeviceId gpu) {
  const auto& topology = context.topology;
  const auto memory = topology.local_memory(gpu);
  if (guest_settings(context, gpu).vms_per_host < 2) return memory;
  for (const auto other : topology.devices(DeviceKind::gpu, topology.host_of(gpu)))
    if (is_same_system(context, gpu, other) && topology.local_memory(other) == memory) return other;
  return gpu;
}

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
  } else {
    const auto limit = context.parameters.at("tcp.loopback_bandwidth");
    const auto host = contention_at(context, from_memory, socket_threads(context, from));
    const double left = limit.value * host.core_speed / host.copy_slowdown / scattered_threads_factor(context, from);
    const auto owner = loopback_owner(context, from);
    route.crossings.push_back({context.resources.extra(Limit::loopback, owner, left, limit.name), 1});
  }
  add_host_copy(context, to, to_memory, false, route);
  return route;
}

Distance gdr_level(const PlanContext& context) {
  const auto& level = context.software.nccl_gdr_level;
  if (level == "pix") return Distance::pix;
  if (level == "phb") return Distance::node;  // NCCL's PHB includes other root ports of the socket
  return level == "sys" ? Distance::sys : Distance::pxb;
}

/// One end of a network connection: the HCA and the GPU's memory, directly or through host memory.
/// True when GPUDirect RDMA is used.
bool add_end(const PlanContext& context, DeviceId gpu, DeviceId hca, bool is_sender, Buffers buffers, Route& route) {
  const auto& topology = context.topology;
  auto allowed = buffers == Buffers::device && gpudirect_rdma(context, gpu, hca, gdr_level(context)).is_allowed;
  // GPUDirect reads are off before Ampere unless the GPUs of the host have NVLink (paths.cc).
  if (is_sender && compute_capability(context, gpu) < 80) {
    allowed = allowed && device_value_or(context, gpu, "nvlink_links", 0) > 0;
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

std::vector<HostGroup> group_by_host(const Topology& topology, const std::vector<DeviceId>& ranks) {
  std::vector<HostGroup> groups;
  std::map<int, std::size_t> index;
  for (const auto rank : ranks) {
    const int host = topology.host_of(rank);
    const auto [it, is_new] = index.try_emplace(topology.guest_of(rank), groups.size());
    if (is_new) groups.push_back({host, {}});
    groups[it->second].gpus.push_back(rank);
  }
  return groups;
}

/// Whether all channels enter and leave the hosts by GPUs below the same switches as the HCA.
bool are_hcas_near(const Topology& topology, const ChannelGraph& graph) {
  for (const auto& channel : graph.channels) {
    for (const auto& in_host : channel) {
      if (in_host.hca.value < 0) continue;
      for (const auto gpu : {in_host.order.front(), in_host.order.back()})
        if (topology.distance(gpu, in_host.hca) > Distance::pxb) return false;
    }
  }
  return true;
}

ChannelGraph search_channels(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto& topology = context.topology;
  // Equal hosts with equal GPUs and cables get equal channels: search once per shape and sets of ordinals.
  std::map<std::pair<int, std::vector<int>>, HostSearch> searches;
  std::vector<const HostSearch*> by_host;
  ChannelGraph graph;
  graph.is_nvlink = graph.has_nvswitch = true;
  graph.channel_gb_per_s = graph.node_gb_per_s = 1e9;
  const auto& first = hosts[0].gpus;
  graph.is_network_only =
      hosts.size() == 1 && first.size() > 1 && route_in_host(context, first[0], first[1]).kind == TransportKind::socket;
  std::size_t num_channels = 32;
  for (const auto& group : hosts) {
    std::vector<int> ordinals;
    for (const auto gpu : group.gpus) ordinals.push_back(topology.device(gpu).ordinal);
    ordinals.push_back(-1);  // GPUs end, HCAs begin
    for (const auto hca : cabled_hcas(topology, group.host)) ordinals.push_back(topology.device(hca).ordinal);
    const auto [it, is_new] = searches.try_emplace({topology.host_shape(group.host), ordinals});
    if (is_new)
      it->second = graph.is_network_only ? search_by_interface(context, group.gpus)
                   : hosts.size() > 1    ? search_with_network(context, group.gpus)
                                         : search_alone(context, group.gpus);
    by_host.push_back(&it->second);
    num_channels = std::min(num_channels, it->second.orders.size());
    graph.is_nvlink = graph.is_nvlink && (it->second.is_nvlink || group.gpus.size() == 1);
    graph.has_nvswitch = graph.has_nvswitch && it->second.has_nvswitch;
    graph.channel_gb_per_s = std::min(graph.channel_gb_per_s, it->second.speed);
    graph.node_gb_per_s = std::min(graph.node_gb_per_s, it->second.inside);
  }
  graph.graph_channels = static_cast<int>(num_channels);
  for (std::size_t c = 0; c < 2 * num_channels; ++c) {
    std::vector<HostChannel> channel;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const auto& search = *by_host[h];
      HostChannel in_host;
      for (const int g : search.orders[c % num_channels])
        in_host.order.push_back(hosts[h].gpus[static_cast<std::size_t>(g)]);
      if (!search.hcas.empty()) {
        in_host.hca = topology.device_in_host(hosts[h].host, DeviceKind::hca, search.hcas[c % num_channels]);
      }
      channel.push_back(std::move(in_host));
    }
    graph.channels.push_back(std::move(channel));
  }
  const int capability = compute_capability(context, hosts[0].gpus[0]);
  graph.ll128_allowed =
      capability >= 70 && (graph.is_nvlink || hosts[0].gpus.size() == 1) && are_hcas_near(topology, graph);
  return graph;
}

Route route_in_host(const PlanContext& context, DeviceId from, DeviceId to) {
  const auto& topology = context.topology;
  Route route;
  if (context.software.nccl_p2p) {
    const auto nvlink = topology.path_in_host(from, to, {.may_use_nvlink = true, .may_forward_through_gpu = true});
    if (nvlink && nvlink->uses_nvlink && nvlink_gate_of(context, from).is_open) {
      route.kind = TransportKind::nvlink;
      add_dma(context, *nvlink, false, route);
      return route;
    }
    if (topology.distance(from, to) <= nccl_p2p_level(context, from) && pcie_gate_of(context, from).is_open) {
      const auto path = topology.path_in_host(from, to, {.may_use_nvlink = false});
      if (path) {
        route.kind = TransportKind::pcie;
        add_dma(context, *path, false, route);
        return route;
      }
    }
  }
  if (!context.software.nccl_shm || context.software.transport == "tcp")
    return socket_route(context, from, to, {}, {}, 0);
  route.kind = TransportKind::host_memory;
  const auto memory = topology.local_memory(from);
  add_host_copy(context, from, memory, true, route);
  add_host_copy(context, to, memory, false, route);
  return route;
}

Route sender_segment(const PlanContext& context, DeviceId gpu, DeviceId hca, Buffers buffers) {
  const auto& topology = context.topology;
  Route route;
  // PXN: a GPU far from the HCA hands its data over NVLink to the GPU next to it.
  DeviceId sender = gpu;
  if (topology.distance(gpu, hca) > Distance::pxb && context.software.nccl_p2p &&
      nvlink_gate_of(context, gpu).is_open) {
    auto gpus = topology.devices(DeviceKind::gpu, topology.host_of(gpu));
    std::erase_if(gpus, [&](DeviceId other) { return !is_same_system(context, gpu, other); });
    const auto neighbour = gpus[static_cast<std::size_t>(nearest_gpus(topology, gpus, hca).front())];
    const auto path = topology.path_in_host(gpu, neighbour);
    if (neighbour != gpu && topology.distance(neighbour, hca) <= Distance::pxb && path && path->uses_nvlink) {
      add_dma(context, *path, false, route);
      sender = neighbour;
    }
  }
  route.kind =
      add_end(context, sender, hca, true, buffers, route) ? TransportKind::network : TransportKind::network_staged;
  return route;
}

Route receiver_segment(const PlanContext& context, DeviceId hca, DeviceId gpu, Buffers buffers) {
  Route route;
  route.kind =
      add_end(context, gpu, hca, false, buffers, route) ? TransportKind::network : TransportKind::network_staged;
  return route;
}

Route route_between_hosts(const PlanContext& context, DeviceId from, DeviceId from_hca, DeviceId to_hca, DeviceId to,
                          std::uint64_t flow, Buffers buffers) {
  if (uses_tcp(context, from_hca) || uses_tcp(context, to_hca))
    return socket_route(context, from, to, from_hca, to_hca, flow);
  auto route = sender_segment(context, from, from_hca, buffers);
  add_fabric(context, from_hca, to_hca, flow, route, from, to);
  append(route, receiver_segment(context, to_hca, to, buffers));
  return route;
}

}  // namespace fabricast::models::nccl
