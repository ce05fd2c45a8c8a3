// SPDX-License-Identifier: Apache-2.0
#include "nccl/nvls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
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
/// Release from which its planned bandwidth is nothing with one head (src/graph/tuning.cc).
constexpr int k_two_heads = 228;

double largest_speed(std::span<const double> speeds, double limit) {
  const auto it = std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed <= limit; });
  return it == speeds.end() ? 0 : *it;
}

constexpr int k_blackwell = 100;
/// Releases from which one host of Blackwell has fewer thread blocks, chunks of trees are those of one host, are halved
/// from four hosts on, and Blackwell's are tuned (nvls.cc, ncclNvlsTuning; enqueue.cc, calcCollChunking).
constexpr int k_fewer_alone = 227, k_short_chunks = 221, k_halves_by_hosts = 220, k_tuned_blackwell = 230;
/// Releases that copy channels of rings until there are as many as NVLink SHARP has (connect.cc, ncclTopoPostset) and
/// open them (enqueue.cc, topoGetAlgoInfo; 2.21 copies them too and opens those of the search alone).
constexpr int k_copies_channels = 222, k_last_with_copies = 227;
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

/// A head in any host of a shape: position of the GPU, ordinal of the HCA, GB/s between them.
struct HeadPlace {
  std::size_t gpu;
  int hca;
  double gb_per_s;
};
using HeadPlaces = std::vector<HeadPlace>;

HeadPlaces head_places(const PlanContext& context, const HostGroup& host) {
  const HostNics nics(context, host.gpus);
  const double least = network_speeds(nics.version(), compute_capability(context, host.gpus[0])).back();
  HeadPlaces out;
  for (const auto& [gpu, hca] : nics.heads()) {
    const double speed = nics.path_gb_per_s(gpu, hca);
    if (speed >= least) out.push_back({gpu, context.topology.device(nics.hcas()[hca]).ordinal, speed});
  }
  return out;
}

NvlsHeads heads_of(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  NvlsHeads out;
  if (hosts.size() == 1) {
    auto& heads = out.emplace_back();
    for (const auto gpu : hosts[0].gpus) heads.push_back({gpu, {}, 0});
    heads.resize(std::min<std::size_t>(heads.size(), k_most_heads));
    return out;
  }
  std::map<HostShape, HeadPlaces> places;
  for (const auto& host : hosts) {
    const auto [it, is_new] = places.try_emplace(shape_of(context.topology, host));
    if (is_new) it->second = head_places(context, host);
    auto& heads = out.emplace_back();
    for (const auto& [gpu, hca, speed] : it->second)
      heads.push_back({host.gpus[gpu], context.topology.device_in_host(host.host, DeviceKind::hca, hca), speed});
  }
  return out;
}

}  // namespace

NvlsOffer nvls_offer(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto closed = [](std::string reason) { return NvlsOffer{{false, std::move(reason)}, {}}; };
  const int version = release_number(context.software.nccl_version);
  const auto needed = hosts.size() > 1 ? k_nvls_tree : k_nvls;
  if (version < needed)
    return closed(fmt::format("NCCL {} has none {} hosts, it came with 2.{}", context.software.nccl_version,
                              hosts.size() > 1 ? "between" : "inside", needed - 200));
  if (!context.software.nccl_p2p) return closed("GPU peer access is off (software.nccl.p2p: off)");
  NvlsOffer out;
  for (const auto& group : hosts) {
    auto gate = host_gate(context, group, version);
    if (!gate.is_open && !gate.is_inferred) return {std::move(gate), {}};
    if (!gate.is_open) out.gate = std::move(gate);
  }
  out.heads = heads_of(context, hosts);
  if (hosts.size() == 1) return out;
  const std::size_t least = version < k_two_heads ? 1 : 2;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (out.heads[h].size() < least)
      return closed(fmt::format("{} of {}'s GPUs have an HCA of their own to reduce by, it needs {}",
                                out.heads[h].size(), context.topology.host_name(hosts[h].host), least));
  }
  return out;
}

NvlsGraph search_nvls(double port_gb_per_s, int heads, int version, int capability) {
  const double of_port = port_gb_per_s / (heads + 1);
  const double inside = capability >= k_blackwell ? largest_speed(k_inside_blackwell, of_port)
                        : version < k_nvls_tree   ? largest_speed(k_inside_2_17, of_port)
                                                  : largest_speed(k_inside, of_port);
  return {heads, inside, 0};
}

NvlsGraph search_nvls(double port_gb_per_s, const std::vector<double>& hcas_gb_per_s, int version, int capability) {
  constexpr double rounding = 1e-6;
  const auto& speeds = network_speeds(version, capability);
  NvlsGraph graph;
  for (const double speed : speeds) {
    if (graph.heads > 0 && speed / graph.inside <= .49) break;
    const auto are_wide = std::ranges::count_if(hcas_gb_per_s, [&](double hca) { return hca >= speed; });
    const int heads =
        std::min({k_most_heads, static_cast<int>(are_wide), static_cast<int>(port_gb_per_s / speed + rounding) - 1});
    if (heads > graph.heads || heads * speed > graph.heads * graph.inside) graph = {heads, speed, 0};
  }
  double slowest = 2 * graph.inside;
  for (const double hca : hcas_gb_per_s)
    if (hca >= graph.inside) slowest = std::min(slowest, hca);
  graph.between = largest_speed(speeds, slowest);
  return graph;
}

NvlsGraph search_nvls(const PlanContext& context, const std::vector<HostGroup>& hosts, NvlsHeads& heads) {
  const int version = release_number(context.software.nccl_version);
  std::optional<NvlsGraph> found;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const int capability = compute_capability(context, hosts[h].gpus[0]);
    const double port = port_of(context.topology, hosts[h])->lanes * planned_nvlink_gb_per_s(version, capability);
    std::vector<double> hcas;
    for (const auto& head : heads[h]) hcas.push_back(head.hca_gb_per_s);
    const auto of_host = hosts.size() > 1 ? search_nvls(port, hcas, version, capability)
                                          : search_nvls(port, static_cast<int>(hcas.size()), version, capability);
    if (!found) found = of_host;
    *found = {std::min(found->heads, of_host.heads), std::min(found->inside, of_host.inside),
              std::min(found->between, of_host.between)};
  }
  for (auto& of_host : heads) {
    std::erase_if(of_host, [&](const NvlsHead& head) { return hosts.size() > 1 && head.hca_gb_per_s < found->inside; });
    of_host.resize(static_cast<std::size_t>(found->heads));
  }
  return *found;
}

NvlsWay way_to_heads(const PlanContext& context, const std::vector<HostGroup>& hosts, const NvlsHeads& heads) {
  NvlsWay way{static_cast<int>(hosts[0].gpus.size()), std::numeric_limits<double>::infinity(), true};
  for (const auto& host : hosts) way.gpus_of_host = std::min(way.gpus_of_host, static_cast<int>(host.gpus.size()));
  for (const auto& of_host : heads) {
    for (const auto& head : of_host) {
      if (head.hca.value < 0) continue;
      way.hca_gb_per_s = std::min(way.hca_gb_per_s, head.hca_gb_per_s);
      way.is_near = way.is_near && nic_path(context, head.gpu, head.hca) <= NicPath::pxb;
    }
  }
  return way;
}

NvlsKernels nvls_kernels(const CommunicatorFacts& facts, const NvlsWay& way, double chunk) {
  constexpr double kib = 1024;
  const bool is_alone = facts.num_nodes == 1;
  const bool is_blackwell = facts.compute_capability >= k_blackwell;
  const int of_blackwell = is_alone && facts.version >= k_fewer_alone ? 24 : 32;
  NvlsKernels out{is_blackwell ? of_blackwell : 16, chunk};
  if (is_alone) return out;
  if (facts.version < k_short_chunks) out.tree_chunk = 512 * kib;
  if (facts.num_nodes >= 4 && facts.version >= k_halves_by_hosts) out.tree_chunk = std::min(out.tree_chunk, 64 * kib);
  if (facts.version < k_tuned_blackwell || !is_blackwell || way.hca_gb_per_s < 48) return out;
  const bool is_fast = way.hca_gb_per_s >= 96;
  const int gpus = way.gpus_of_host;
  if (facts.num_nodes == 2) {
    const bool is_short = gpus >= 16 || (gpus <= 8 && way.is_near && !is_fast);
    return {32, (gpus <= 4 ? 256 : is_short ? 64 : 128) * kib};
  }
  if (!is_fast) return {24, (way.is_near ? 64 : 128) * kib};
  return gpus <= 8 ? NvlsKernels{24, 256 * kib} : NvlsKernels{32, (gpus < 32 ? 128 : 64) * kib};
}

std::size_t channels_beside_nvls(const CommunicatorFacts& facts, const NvlsKernels& kernels, std::size_t found) {
  const bool are_copied = facts.version >= k_copies_channels && facts.version <= k_last_with_copies;
  return are_copied ? std::max(found, static_cast<std::size_t>(kernels.channels)) : found;
}

}  // namespace fabricast::models::nccl
