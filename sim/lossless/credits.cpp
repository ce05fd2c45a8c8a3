// SPDX-License-Identifier: Apache-2.0
// Credits of a lane and the round trip they must last for.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "fabricast/lossless.hpp"

namespace fabricast {

namespace {

constexpr double k_usual_payload = 4096;  ///< bytes, where no adapter says its own: largest path MTU of RDMA

}  // namespace

CreditRoundTrip credit_round_trip(const Topology& topology, const LosslessSettings& settings, const Link& link,
                                  Bytes packet) {
  const double turnaround = topology.device(link.to).forwarding_latency.seconds();
  const double round_trip = 2 * link.latency.seconds() + turnaround + settings.credit_update.seconds();
  const double needed = link.bandwidth.bytes_per_s * round_trip + static_cast<double>(packet.value);
  const double share = static_cast<double>(settings.vl_buffer.value) / needed;
  return {link.id, std::min(1.0, share), settings.vl_buffer, Bytes{range::whole(std::ceil(needed))}};
}

Bytes largest_payload(const Topology& topology, const ParameterSet& parameters) {
  std::set<std::string> types;
  for (const auto hca : topology.devices(DeviceKind::hca))
    if (!topology.uplinks(hca).empty()) types.insert(topology.device(hca).type);
  double most = 0;
  for (const auto& type : types) most = std::max(most, packet_payload(topology.spec().fabric, parameters, type));
  return Bytes{range::whole(most > 0 ? most : k_usual_payload)};
}

std::optional<CreditRoundTrip> slowest_credits(const Topology& topology, const ParameterSet& parameters,
                                               SwitchSettings& switches) {
  std::optional<CreditRoundTrip> worst;
  const auto packet = largest_payload(topology, parameters);
  for (int l = topology.first_network_link(); l < topology.num_links(); ++l) {
    const auto link = topology.link(LinkId{l});
    if (topology.kind(link.to) != DeviceKind::network_switch) continue;
    const auto one = credit_round_trip(topology, switches.of(link), link, packet);
    if (one.share < (worst ? worst->share : 1)) worst = one;
  }
  return worst;
}

}  // namespace fabricast
