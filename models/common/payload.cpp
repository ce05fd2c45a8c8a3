// SPDX-License-Identifier: Apache-2.0
// Payload on network links: rate x MTU / (MTU + header), with the header of the HCAs on the fabric.
#include "fabricast/models/payload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

namespace {

struct Headers {
  double rate = 0;   ///< of the HCA, bytes/s; 0 = it does not say
  double share = 1;  ///< payload in what its packets take
};

}  // namespace

double payload_share(const Topology& topology, const ParameterSet& parameters, const std::string& type) {
  const double mtu = packet_payload(topology.spec().fabric, parameters, type);
  return mtu > 0 ? mtu / (mtu + parameters.value_or(type, "packet_header", 0)) : 1;
}

double whole_packet_wait(const Topology& topology, const std::vector<LinkId>& links) {
  double waits = 0;
  double slowest = 0;
  double last = 0;
  for (const auto link : links) {
    const double one = 1 / topology.link_bandwidth(link).bytes_per_s;
    if (one < last) waits += last;
    slowest = std::max(slowest, one);
    last = one;
  }
  return waits + last - slowest;
}

double first_frame(const Topology& topology, const ParameterSet& parameters, const std::string& type, double bytes) {
  const double payload = packet_payload(topology.spec().fabric, parameters, type);
  return std::min(bytes, payload) + parameters.value_or(type, "packet_header", 0);
}

std::vector<std::string> packet_assumptions(const Topology& topology, const ParameterSet& parameters) {
  if (topology.spec().fabric.mtu) return {};
  std::set<std::string> with_rdma;
  std::set<std::string> without;
  for (const auto hca : topology.devices(DeviceKind::hca)) {
    if (topology.uplinks(hca).empty()) continue;
    const auto type = topology.device(hca).type;
    (parameters.value_or(type, "rdma", 1) == 0 ? without : with_rdma).insert(type);
  }
  std::vector<std::string> out;
  for (const auto& type : with_rdma.empty() ? without : with_rdma) {
    const double bytes = packet_payload(topology.spec().fabric, parameters, type);
    if (bytes > 0 && topology.attribute(type, "protocol") == "ethernet")
      out.push_back(fmt::format("packets of {} carry {:.0f} B: the fabric names no `mtu`", type, bytes));
  }
  return out;
}

void set_payload_shares(Resources& resources, const ParameterSet& parameters) {
  const auto& topology = resources.topology();
  std::map<std::string, Headers> by_type;
  double least = 1;
  for (const auto hca : topology.devices(DeviceKind::hca)) {
    const auto uplinks = topology.uplinks(hca);
    if (uplinks.empty()) continue;
    const auto type = topology.device(hca).type;
    auto known = by_type.find(type);
    if (known == by_type.end()) {
      const Headers found{parameters.value_or(type, "rate", 0), payload_share(topology, parameters, type)};
      known = by_type.emplace(type, found).first;
    }
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
