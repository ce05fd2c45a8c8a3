// SPDX-License-Identifier: Apache-2.0
// Payload on network links: rate x MTU / (MTU + header), with the header of the HCAs on the fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

namespace {

struct Headers {
  double rate = 0;   ///< of the HCA, bytes/s; 0 = it does not say
  double share = 1;  ///< payload in what its packets take
};

Headers headers_of(const Topology& topology, const ParameterSet& parameters, const std::string& type) {
  const auto value = [&](const char* field) {
    const auto* found = parameters.find(fmt::format("{}.{}", type, field));
    return found == nullptr ? 0.0 : found->value;
  };
  Headers out;
  out.rate = value("rate");
  const double mtu = std::min(value("mtu"), static_cast<double>(topology.spec().fabric.mtu));
  if (mtu > 0) out.share = mtu / (mtu + value("packet_header"));
  return out;
}

}  // namespace

void set_payload_shares(Resources& resources, const ParameterSet& parameters) {
  const auto& topology = resources.topology();
  std::map<std::string, Headers> by_type;
  double least = 1;
  for (const auto hca : topology.devices(DeviceKind::hca)) {
    const auto uplinks = topology.uplinks(hca);
    if (uplinks.empty()) continue;
    const auto type = topology.device(hca).type;
    auto known = by_type.find(type);
    if (known == by_type.end()) known = by_type.emplace(type, headers_of(topology, parameters, type)).first;
    const auto& headers = known->second;
    least = std::min(least, headers.share);
    for (const auto link : uplinks) {
      if (topology.link_bandwidth(link).bytes_per_s >= headers.rate) continue;
      resources.set_payload_share(link, headers.share);
      resources.set_payload_share(topology.reverse(link), headers.share);
    }
  }
  if (least == 1) return;
  for (int l = topology.first_network_link(); l < topology.num_links(); ++l) {
    const auto link = topology.link(LinkId{l});
    const auto is_switch = [&](DeviceId id) { return topology.kind(id) == DeviceKind::network_switch; };
    if (is_switch(link.from) && is_switch(link.to)) resources.set_payload_share(LinkId{l}, least);
  }
}

}  // namespace fabricast::models
