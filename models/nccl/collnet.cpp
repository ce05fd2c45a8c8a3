// SPDX-License-Identifier: Apache-2.0
#include "nccl/collnet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr int k_collnet = 206;          ///< release
constexpr std::size_t k_most_gpus = 8;  ///< of one host

/// The first switch on the way between the adapters of two hosts that cannot reduce; value -1: all can.
DeviceId unable_switch(const PlanContext& context, DeviceId from, DeviceId to) {
  const auto path = context.topology.path_between_hcas(from, to);
  for (const auto id : path ? path->links : std::vector<LinkId>{}) {
    const auto end = context.topology.link(id).to;
    if (context.topology.kind(end) == DeviceKind::network_switch && device_value_or(context, end, "sharp", 0) < 1)
      return end;
  }
  return {};
}

Gate fabric_gate(const PlanContext& context, const ChannelGraph& graph) {
  const auto& topology = context.topology;
  if (!topology.is_infiniband()) return {false, "the fabric is not InfiniBand"};
  std::set<std::pair<int, int>> seen;
  for (const auto& channel : graph.channels) {
    for (std::size_t h = 1; h < channel.size(); ++h) {
      if (!seen.insert({channel[0].tree_hca.value, channel[h].tree_hca.value}).second) continue;
      if (uses_tcp(context, channel[0].tree_hca) || uses_tcp(context, channel[h].tree_hca))
        return {false, "hosts talk over TCP"};
      const auto unable = unable_switch(context, channel[0].tree_hca, channel[h].tree_hca);
      if (unable.value >= 0)
        return {false, fmt::format("{} ({}) does not reduce streams in the network", topology.device(unable).name,
                                   topology.device(unable).type)};
    }
  }
  return {};
}

}  // namespace

Gate collnet_gate(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph) {
  const auto& topology = context.topology;
  if (hosts.size() < 2) return {false, "all GPUs are in one host"};
  if (release_number(context.software.nccl_version) < k_collnet)
    return {false, fmt::format("NCCL {} has none, it came with 2.6", context.software.nccl_version)};
  if (!context.software.nccl_plugin.empty() && context.software.nccl_plugin != "nccl-rdma-sharp")
    return {false, fmt::format("'plugin: {}' has none, nccl-rdma-sharp has", context.software.nccl_plugin)};
  for (const auto& group : hosts) {
    const auto name = topology.host_name(group.host);
    if (group.gpus.size() > k_most_gpus)
      return {false, fmt::format("{} GPUs of {} take part, NCCL uses it with at most {}", group.gpus.size(), name,
                                 k_most_gpus)};
    const auto path = group.gpus.size() < 2 ? std::nullopt : topology.path_in_host(group.gpus[0], group.gpus[1]);
    const bool is_switched = path && path->uses_nvlink && path->links.size() > 1 &&
                             topology.kind(topology.link(path->links.front()).to) == DeviceKind::nvswitch;
    if (group.gpus.size() > 1 && !(is_switched && context.software.nccl_p2p))
      return {false, fmt::format("the GPUs of {} do not reach each other through NVSwitches; NCCL's chains for other "
                                 "hosts (CollNetChain) are not modelled",
                                 name)};
  }
  return fabric_gate(context, graph);
}

std::vector<std::size_t> order_by_leaf(const Topology& topology, const std::vector<HostChannel>& channel) {
  std::vector<std::size_t> order(channel.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<int> leaf;
  for (const auto& host : channel) leaf.push_back(topology.link(topology.uplinks(host.tree_hca).front()).to.value);
  std::ranges::stable_sort(order, {}, [&](std::size_t h) { return leaf[h]; });
  return order;
}

/// CollNetDirect: half of the bus, and less where a node has more GPUs than channels (tuning.cc).
double collnet_bandwidth(const CommunicatorFacts& f) {
  const double per_node = static_cast<double>(f.num_ranks) / f.num_nodes;
  const double speed =
      std::max(f.channel_gb_per_s, std::min(2 * f.channel_gb_per_s, f.node_gb_per_s / f.graph_channels));
  const double factor = per_node / f.graph_channels;
  const double efficiency = f.compute_capability >= 90 ? 0.85 : 1;
  return 0.5 * efficiency * f.graph_channels * speed / (factor - (factor - 1) / 2);
}

double collnet_latency(const CommunicatorFacts& f) {
  const double per_node = static_cast<double>(f.num_ranks) / f.num_nodes;
  constexpr double k_inside = 3.7;   // us; of NVLink and PCIe
  constexpr double k_network = 31;   // us
  constexpr double k_per_gpu = 0.4;  // us
  return 2 * (std::min(1.0, per_node - 1) * k_inside + (per_node - 1) * k_per_gpu) + k_network;
}

}  // namespace fabricast::models::nccl
