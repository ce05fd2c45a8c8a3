// SPDX-License-Identifier: Apache-2.0
#include "nccl/hca_use.hpp"

#include <fmt/format.h>

#include <set>

#include "nccl/nics.hpp"
#include "nccl/rccl.hpp"

namespace fabricast::models::nccl {

GivenUsed pxn_setting(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& software = context.software;
  const int level = p2p_pxn_level(software);
  std::string given = software.nccl_pxn ? (*software.nccl_pxn ? "on" : "off") : "default";
  if (software.nccl_p2p_pxn_level) given += fmt::format(", p2p_pxn_level {}", *software.nccl_p2p_pxn_level);
  GivenUsed setting{"PXN", given, "no", ""};
  const HostNics nics(context, gpus);
  if (!has_pxn(software)) {
    const bool is_own = library_of(context, gpus[0]) == Library::rccl && !is_set(software, "pxn");
    if (is_own) setting.given = "default";
    setting.reason = is_own ? fmt::format("RCCL takes it from {} ranks on", ranks_with_pxn(context, gpus[0]))
                     : software.nccl_pxn ? "switched off"
                                         : fmt::format("NCCL {}, it came with 2.12", software.nccl_version);
  } else if (!nics.has_relays()) {
    setting.reason = "no HCA below the PCIe switches of a GPU that others reach over NVLink";
  } else {
    setting.used = fmt::format("rings, send and receive at level {}", level);
    setting.reason = level == 2   ? "sends leave by the HCA of the peer's counterpart"
                     : level == 1 ? "sends leave by the HCA of the peer's counterpart, handed over where it is far"
                                  : "sends leave by the GPU's own HCA";
  }
  return setting;
}

std::vector<std::string> hca_assumptions(const PlanContext& context, const ChannelGraph& graph, const HostGroup& host,
                                         bool is_peer_to_peer) {
  const HostNics nics(context, host.gpus);
  std::set<DeviceId> used;
  for (const auto& channel : graph.channels) used.insert(channel[0].hca);
  const auto count = is_peer_to_peer ? nics.num_used_by_pairs() : used.size();
  const auto all = context.topology.hcas_by_distance(host.gpus.front()).size();
  if (count >= all) return {};
  return {fmt::format("{} of the {} HCAs of {} carry data: NCCL takes {}", count, all,
                      context.topology.host_name(host.host),
                      is_peer_to_peer ? "for each GPU those of the widest path, of them the nearest"
                                      : "near ones, and as many as give its channels most bandwidth")};
}

}  // namespace fabricast::models::nccl
