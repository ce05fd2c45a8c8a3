// SPDX-License-Identifier: Apache-2.0
#include "nccl/nvls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "nccl/search.hpp"
#include "nccl/tuning.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

// Channel speeds that NCCL tries from compute capability 9.0 on (search.cc).
constexpr std::array k_inside{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array k_inside_blackwell{90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 18.0};
constexpr std::array k_inside_2_17{66.0, 33.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0};

/// Release of NVLS inside a host, and of NVLSTree.
constexpr int k_nvls = 217;
constexpr int k_nvls_tree = 218;
constexpr int k_least_capability = 90;
/// Release from which it joins two GPUs of a host, too (nvls.cc, ncclNvlsInit; which of 2.28 to 2.30 is not known).
constexpr int k_two_gpus = 230;

double largest_speed(std::span<const double> speeds, double limit) {
  const auto it = std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed <= limit; });
  return it == speeds.end() ? 0 : *it;
}

constexpr int k_blackwell = 100;
constexpr int k_most_heads = 32;  ///< channels that the search looks for

/// NCCL's planning speed of one NVLink from Hopper on in GB/s (topo.h).
double planned_nvlink_gb_per_s(int version, int capability) {
  if (capability >= k_blackwell) return 40.1;
  if (version < 218) return 22;
  return version < 220 ? 20 : 20.6;
}

/// The NVLinks of a GPU that lead to the NVSwitch it shares with another; empty without one.
std::optional<Link> port_of(const Topology& topology, const HostGroup& group) {
  const auto path = topology.path_in_host(group.gpus[0], group.gpus[1]);
  if (!path || path->links.empty()) return std::nullopt;
  const auto first = topology.link(path->links.front());
  return topology.kind(first.to) == DeviceKind::nvswitch ? std::optional(first) : std::nullopt;
}

Gate host_gate(const PlanContext& context, const HostGroup& group, int version) {
  const auto& topology = context.topology;
  const auto name = topology.host_name(group.host);
  if (group.gpus.size() < 2) return {false, fmt::format("one GPU of {} takes part, it joins two or more", name)};
  for (const auto gpu : group.gpus) {
    const double capability = device_value(context, gpu, "compute_capability");
    if (capability < k_least_capability)
      return {false, fmt::format("{} has compute capability {:.1f}, it needs 9.0 or later", topology.device(gpu).type,
                                 capability / 10)};
  }
  const auto port = port_of(topology, group);
  if (!port) return {false, fmt::format("the GPUs of {} are not joined by an NVSwitch", name)};
  if (device_value_or(context, port->to, "multicast", 0) < 1)
    return {false,
            fmt::format("the NVSwitches of {} ({}) cannot reduce and multicast", name, topology.device(port->to).type)};
  if (group.gpus.size() == 2 && version < k_two_gpus)
    return {false,
            fmt::format("two GPUs of {} take part, before NCCL 2.{} it joins three or more", name, k_two_gpus - 200)};
  for (const auto gpu : group.gpus) {
    if (auto gate = nvlink_gate_of(context, gpu); !gate.is_open) return gate;
    if (auto gate = multicast_gate_of(context, gpu); !gate.is_open) return gate;
  }
  return {};
}

}  // namespace

Gate nvls_gate(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const int version = release_number(context.software.nccl_version);
  const auto needed = hosts.size() > 1 ? k_nvls_tree : k_nvls;
  if (version < needed)
    return {false, fmt::format("NCCL {} has none {} hosts, it came with 2.{}", context.software.nccl_version,
                               hosts.size() > 1 ? "between" : "inside", needed - 200)};
  if (!context.software.nccl_p2p) return {false, "GPU peer access is off (software.nccl.p2p: off)"};
  for (const auto& group : hosts) {
    if (auto gate = host_gate(context, group, version); !gate.is_open) return gate;
  }
  return {};
}

NvlsGraph search_nvls(double port_gb_per_s, int heads, double network_gb_per_s, int version, int capability) {
  NvlsGraph graph;
  graph.heads = heads;
  const double of_port = port_gb_per_s / (heads + 1);
  if (network_gb_per_s <= 0) {
    graph.inside = capability >= k_blackwell ? largest_speed(k_inside_blackwell, of_port)
                   : version < k_nvls_tree   ? largest_speed(k_inside_2_17, of_port)
                                             : largest_speed(k_inside, of_port);
    return graph;
  }
  const auto& speeds = network_speeds(version, capability);
  graph.inside = largest_speed(speeds, std::min(of_port, network_gb_per_s));
  graph.between = largest_speed(speeds, std::min(2 * graph.inside, network_gb_per_s));
  return graph;
}

NvlsGraph search_nvls(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph) {
  const int version = release_number(context.software.nccl_version);
  NvlsGraph found;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int heads = std::min(k_most_heads, static_cast<int>(hosts[h].gpus.size()));
    const int capability = compute_capability(context, hosts[h].gpus[0]);
    double slowest = hosts.size() > 1 ? 1e9 : 0;
    std::set<int> adapters;
    for (const auto& channel : graph.channels) {
      const auto hca = channel[h].tree_hca;
      if (hca.value < 0) continue;
      adapters.insert(hca.value);
      slowest = std::min(slowest, device_value(context, hca, "rate") * 1e-9);
    }
    const int count = std::max(1, static_cast<int>(adapters.size()));
    const double of_head = slowest / ((heads + count - 1) / count);
    const double port = port_of(context.topology, hosts[h])->lanes * planned_nvlink_gb_per_s(version, capability);
    const auto of_host = search_nvls(port, heads, of_head, version, capability);
    if (h == 0) found = of_host;
    found = {std::min(found.heads, of_host.heads), std::min(found.inside, of_host.inside),
             std::min(found.between, of_host.between)};
  }
  return found;
}

int nvls_channels(int version, int capability, int num_hosts, int ring_channels) {
  const bool is_blackwell = capability >= k_blackwell;
  if (num_hosts > 1) return std::min(is_blackwell ? 32 : 16, ring_channels);
  if (!is_blackwell) return 16;
  return version >= 227 ? 24 : 32;
}

}  // namespace fabricast::models::nccl
