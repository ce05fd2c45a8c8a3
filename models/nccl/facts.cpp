// SPDX-License-Identifier: Apache-2.0
#include "nccl/facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "nccl/architecture.hpp"
#include "nccl/rccl.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

/// GPUs of the hosts: of those alike, all of whose GPUs take part, only the first one's.
std::vector<DeviceId> unlike_gpus(const Topology& topology, const std::vector<HostGroup>& hosts) {
  std::set<int> shapes;
  std::vector<DeviceId> out;
  for (const auto& [host, gpus] : hosts) {
    const bool is_whole = static_cast<int>(gpus.size()) == topology.count(DeviceKind::gpu, host);
    if (!is_whole || shapes.insert(topology.host_shape(host)).second) out.insert(out.end(), gpus.begin(), gpus.end());
  }
  return out;
}

}  // namespace

DeviceId least_capable(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto gpus = unlike_gpus(context.topology, hosts);
  return *std::ranges::min_element(gpus, {}, [&](DeviceId gpu) { return compute_capability(context, gpu); });
}

CommunicatorFacts facts_of(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph) {
  const auto first = hosts[0].gpus[0];
  CommunicatorFacts facts;
  facts.num_nodes = static_cast<int>(hosts.size());
  facts.num_ranks = 0;
  for (const auto& host : hosts) facts.num_ranks += static_cast<int>(host.gpus.size());
  facts.compute_capability = compute_capability(context, least_capable(context, hosts));
  facts.is_nvlink = graph.is_nvlink;
  facts.is_amd = is_amd(context.topology, first);
  facts.is_x86 = is_x86(context.topology, first);
  facts.ll128_allowed = graph.ll128_allowed;
  facts.has_equal_channels = graph.has_equal_channels;
  facts.has_plain_trees = graph.has_plain_trees;
  facts.is_network_only = graph.is_network_only;
  facts.graph_channels = graph.graph_channels;
  facts.node_gb_per_s = graph.node_gb_per_s;
  facts.channel_gb_per_s = graph.channel_gb_per_s;
  facts.version = release_number(context.software.nccl_version);
  facts.library = library_of(context, first);
  facts.generation = generation_of(context, first).value_or(AmdGeneration::cdna3);
  return facts;
}

std::vector<std::string> stand_ins_among(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                         DeviceId adapter) {
  const auto least = least_capable(context, hosts);
  auto out = stand_ins_of(context, least, adapter);
  std::map<std::string, DeviceId> types;
  for (const auto gpu : unlike_gpus(context.topology, hosts)) types.try_emplace(context.topology.device(gpu).type, gpu);
  std::vector<std::string> others;
  const auto own = architecture_of(context, least).name;
  for (const auto& [type, gpu] : types)
    if (architecture_of(context, gpu).name != own) others.push_back(type);
  if (!others.empty())
    out.push_back(
        fmt::format("{} beside {}: NCCL plans for the least capable, whose times stand for all; no log shows both",
                    fmt::join(others, ", "), context.topology.device(least).type));
  return out;
}

}  // namespace fabricast::models::nccl
