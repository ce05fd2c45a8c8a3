// SPDX-License-Identifier: Apache-2.0
#include "nccl/hca_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nccl/rccl.hpp"

namespace fabricast::models::nccl {

namespace {

/// Adapters of one host of each kind, and its place in `hosts`.
struct KindOfHost {
  std::size_t place = 0;
  HostNics nics;
};

std::vector<KindOfHost> kinds_among(const PlanContext& context, const std::vector<HostGroup>& hosts) {
  std::vector<KindOfHost> out;
  for (const auto* host : unlike_hosts(context.topology, hosts))
    out.push_back({static_cast<std::size_t>(host - hosts.data()), HostNics(context, host->gpus)});
  return out;
}

GivenUsed pxn_setting(const PlanContext& context, const std::vector<KindOfHost>& kinds) {
  const auto& software = context.software;
  const int level = p2p_pxn_level(software);
  std::string given = software.nccl_pxn ? (*software.nccl_pxn ? "on" : "off") : "default";
  if (software.nccl_p2p_pxn_level) given += fmt::format(", p2p_pxn_level {}", *software.nccl_p2p_pxn_level);
  GivenUsed setting{"PXN", given, "no", ""};
  const auto gpu = kinds.front().nics.gpus().front();
  const auto has_relays = [](const KindOfHost& kind) { return kind.nics.has_relays(); };
  if (!has_pxn(software)) {
    const bool is_own = library_of(context, gpu) == Library::rccl && !is_set(software, "pxn");
    if (is_own) setting.given = "default";
    setting.reason = is_own              ? fmt::format("RCCL takes it from {} ranks on", ranks_with_pxn(context, gpu))
                     : software.nccl_pxn ? "switched off"
                                         : fmt::format("NCCL {}, it came with 2.12", software.nccl_version);
  } else if (std::ranges::none_of(kinds, has_relays)) {
    setting.reason = "no HCA below the PCIe switches of a GPU that others reach over NVLink";
  } else {
    setting.used = fmt::format("rings, send and receive at level {}", level);
    setting.reason = level == 2   ? "sends leave by the HCA of the peer's counterpart"
                     : level == 1 ? "sends leave by the HCA of the peer's counterpart, handed over where it is far"
                                  : "sends leave by the GPU's own HCA";
  }
  return setting;
}

/// The first reason that any host gives.
GivenUsed gpudirect_setting(const PlanContext& context, const std::vector<KindOfHost>& kinds, const Pattern& ring) {
  const auto has = [&](TransportKind kind) {
    return std::ranges::find(ring.hops, kind, &Hops::kind) != ring.hops.end();
  };
  GivenUsed setting{k_gpudirect_between_hosts, context.software.gpudirect_rdma ? "default" : "off", "yes", ""};
  if (!has(TransportKind::network_staged)) {
    if (!has(TransportKind::network)) setting.used = "no", setting.reason = "data go over TCP sockets";
    return setting;
  }
  setting.used = has(TransportKind::network) ? "on some ways" : "no";
  for (const auto& kind : kinds) {
    for (const auto gpu : kind.nics.gpus()) {
      if (!setting.reason.empty()) return setting;
      const auto nearest =
          std::ranges::min(kind.nics.hcas(), {}, [&](DeviceId hca) { return nic_distance(context, gpu, hca); });
      setting.reason = gpudirect_rdma(context, gpu, nearest, gdr_level(context, gpu)).reason;
    }
  }
  return setting;
}

constexpr const char* k_rule_of_pairs = "for each GPU those of the widest path, of them the nearest";

/// Sends and receives whose busiest HCA carries a quarter more than if all carried as their rates are.
std::vector<std::string> crowded_hca(const PlanContext& context, const HostNics& nics, const std::vector<double>& gpus,
                                     const std::string& host) {
  constexpr double noticed = 1.25;
  std::size_t busiest = 0;
  double rates = 0;
  for (std::size_t h = 0; h < gpus.size(); ++h) {
    rates += nics.rate_gb_per_s(h);
    if (gpus[h] / nics.rate_gb_per_s(h) > gpus[busiest] / nics.rate_gb_per_s(busiest)) busiest = h;
  }
  if (gpus.empty()) return {};
  const double even = static_cast<double>(nics.gpus().size()) * nics.rate_gb_per_s(busiest) / rates;
  if (gpus[busiest] < noticed * even) return {};
  return {fmt::format(
      "{} carries the data of {:.3g} GPUs, where an even spread over the HCAs of {} is {:.3g}: NCCL takes {}",
      context.topology.device(nics.hcas()[busiest]).name, gpus[busiest], host, even, k_rule_of_pairs)};
}

std::vector<std::string> assumptions_of_host(const PlanContext& context, const KindOfHost& kind,
                                             const ChannelGraph& graph, bool is_peer_to_peer) {
  const auto gpu = kind.nics.gpus().front();
  const auto name = context.topology.host_name(context.topology.host_of(gpu));
  std::set<DeviceId> used;
  for (const auto& channel : graph.channels) used.insert(channel[kind.place].hca);
  const auto loads = kind.nics.gpus_of_hcas();
  const auto count = is_peer_to_peer
                         ? static_cast<std::size_t>(std::ranges::count_if(loads, [](double gpus) { return gpus > 0; }))
                         : used.size();
  const auto all = context.topology.hcas_by_distance(gpu).size();
  if (count < all)
    return {
        fmt::format("{} of the {} HCAs of {} carry data: NCCL takes {}", count, all, name,
                    is_peer_to_peer ? k_rule_of_pairs : "near ones, and as many as give its channels most bandwidth")};
  return is_peer_to_peer ? crowded_hca(context, kind.nics, loads, name) : std::vector<std::string>{};
}

}  // namespace

std::vector<GivenUsed> adapter_settings(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                        const Pattern& ring) {
  const auto kinds = kinds_among(context, hosts);
  return {gpudirect_setting(context, kinds, ring), pxn_setting(context, kinds)};
}

std::vector<std::string> hca_assumptions(const PlanContext& context, const std::vector<HostGroup>& hosts,
                                         const ChannelGraph& graph, bool is_peer_to_peer) {
  std::vector<std::string> out;
  for (const auto& kind : kinds_among(context, hosts))
    for (auto& line : assumptions_of_host(context, kind, graph, is_peer_to_peer)) out.push_back(std::move(line));
  return out;
}

}  // namespace fabricast::models::nccl
