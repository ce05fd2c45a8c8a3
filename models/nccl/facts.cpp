// SPDX-License-Identifier: Apache-2.0
#include "nccl/facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/parameter_name.hpp"
#include "nccl/architecture.hpp"
#include "nccl/rccl.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

std::vector<DeviceId> unlike_gpus(const Topology& topology, const std::vector<HostGroup>& hosts) {
  std::vector<DeviceId> out;
  for (const auto* host : unlike_hosts(topology, hosts)) out.insert(out.end(), host->gpus.begin(), host->gpus.end());
  return out;
}

}  // namespace

DeviceId least_capable(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto gpus = unlike_gpus(context.topology, hosts);
  return *std::ranges::min_element(gpus, {}, [&](DeviceId gpu) { return compute_capability(context, gpu); });
}

int gpus_of_memory(const PlanContext& context, const HostGroup& host) {
  std::map<int, int> count;
  int most = 0;
  for (const auto gpu : host.gpus) most = std::max(most, ++count[staging_memory(context, gpu).value]);
  return most;
}

const HostGroup& slowest_host(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  const auto& topology = context.topology;
  const auto unlike = unlike_hosts(topology, hosts);
  if (unlike.size() == 1) return *unlike[0];
  // Bytes/s, times of threads, GPUs of a memory and of the host; names decide between equals.
  const auto key = [&](const HostGroup* host) {
    const auto gpu = host->gpus[0];
    const auto way = slowest_way_to_memory(context, host->host);
    const double rate = way ? topology.link_bandwidth(*way).bytes_per_s : std::numeric_limits<double>::infinity();
    const auto beside = contention_at(context, gpu, socket_threads(context, gpu));
    const double threads = beside.copy_slowdown / beside.core_speed * scattered_threads_factor(context, gpu);
    const double launches = of_processor(context, gpu, "launch_interval", "cuda.launch_interval"_key).value;
    return std::tuple(rate, -threads, -launches, -gpus_of_memory(context, *host), -static_cast<int>(host->gpus.size()),
                      compute_capability(context, gpu), topology.host_spec(host->host).processor,
                      topology.device(gpu).type);
  };
  return **std::ranges::min_element(unlike, {}, key);
}

CommunicatorFacts facts_of(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph) {
  const auto first = hosts[0].gpus[0];
  CommunicatorFacts facts;
  facts.num_nodes = static_cast<int>(hosts.size());
  facts.num_ranks = 0;
  for (const auto& host : hosts) facts.num_ranks += static_cast<int>(host.gpus.size());
  facts.compute_capability = compute_capability(context, least_capable(context, hosts));
  facts.is_nvlink = graph.is_nvlink;
  // Hosts of unlike processors have no vendor (NCCL_TOPO_CPU_VENDOR_MIXED).
  const auto have_all = [&](auto is) {
    return std::ranges::all_of(hosts, [&](const HostGroup& host) { return is(context.topology, host.gpus[0]); });
  };
  facts.is_amd = have_all(is_amd);
  facts.is_x86 = have_all(is_x86);
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
