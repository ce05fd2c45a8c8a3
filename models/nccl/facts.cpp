// SPDX-License-Identifier: Apache-2.0
#include "nccl/facts.hpp"

#include "nccl/rccl.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

CommunicatorFacts facts_of(const PlanContext& context, const std::vector<HostGroup>& hosts, const ChannelGraph& graph) {
  const auto first = hosts[0].gpus[0];
  CommunicatorFacts facts;
  facts.num_nodes = static_cast<int>(hosts.size());
  facts.num_ranks = 0;
  for (const auto& host : hosts) facts.num_ranks += static_cast<int>(host.gpus.size());
  facts.compute_capability = compute_capability(context, first);
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

}  // namespace fabricast::models::nccl
