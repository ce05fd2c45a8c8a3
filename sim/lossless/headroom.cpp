// SPDX-License-Identifier: Apache-2.0
// Headroom: the vendor's formula, the physical least, and the ports of a topology they apply to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fabricast/lossless.hpp"

namespace fabricast {

namespace {

/// Signal speed in the cable that the vendor's calculation uses, m/s [SONiC].
constexpr double k_signal_speed = 1.98e8;

Bytes ceil_to_kib(double bytes) { return 1024 * Bytes{range::whole(std::ceil(bytes / 1024 - 1e-9))}; }

double as_double(Bytes bytes) { return static_cast<double>(bytes.value); }

/// Bytes on the wire while a PAUSE travels to the peer and the last packet sent before it travels back.
double round_trip_bytes(const HeadroomInput& input) {
  return 2 * input.cable_m / k_signal_speed * input.rate.bytes_per_s;
}

HeadroomInput input_of(const LosslessSettings& settings, Bandwidth rate, double cable_m) {
  return {rate,          cable_m,          settings.lossless_mtu,  settings.port_mtu,
          settings.cell, settings.mac_phy, settings.peer_response, settings.pipeline};
}

/// A topology's links are as late as their cables are long, at 5.05 ns per metre.
double length_of(const Link& link) { return link.latency.seconds() / 5.05e-9; }

}  // namespace

Headroom vendor_headroom(const HeadroomInput& input) {
  const double cell = as_double(input.cell);
  const double occupancy = cell > 128 ? cell / 64 : 2 * cell / (1 + cell);
  Headroom out;
  out.xoff = ceil_to_kib(as_double(input.lossless_mtu) +
                         occupancy * (as_double(input.port_mtu) + round_trip_bytes(input) + as_double(input.mac_phy) +
                                      as_double(input.peer_response)));
  out.xon = ceil_to_kib(as_double(input.pipeline));
  out.size = out.xoff + out.xon;
  return out;
}

Bytes least_headroom(const HeadroomInput& input, Bytes packet) {
  return Bytes{range::whole(std::ceil(round_trip_bytes(input)))} + 2 * packet + input.peer_response;
}

Bytes headroom_of(const LosslessSettings& settings, const Link& link) {
  if (settings.headroom_delays > 0)
    return {range::whole(settings.headroom_delays * link.bandwidth.bytes_per_s * link.latency.seconds())};
  if (!settings.is_headroom_auto) return settings.headroom;
  return vendor_headroom(input_of(settings, link.bandwidth, length_of(link))).xoff;
}

std::vector<PortHeadroom> port_headrooms(const Topology& topology, const ParameterSet& parameters) {
  if (lossless_settings(topology, parameters).flow_control != FlowControl::pfc) return {};
  SwitchSettings switches(topology, parameters);
  const auto payload = largest_payload(topology, parameters);
  struct Count {
    PortHeadroom port;
    std::map<std::int32_t, int> per_switch;
  };
  std::map<std::tuple<std::string, double, std::int64_t>, Count> kinds;
  for (int l = topology.first_network_link(); l < topology.num_links(); ++l) {
    const auto link = topology.link(LinkId{l});
    if (topology.kind(link.to) != DeviceKind::network_switch) continue;
    // Cable lengths come back from latencies rounded to picoseconds: to the centimetre is enough.
    const auto centimetres = std::llround(100 * length_of(link));
    const auto type = topology.device(link.to).type;
    auto& [port, per_switch] = kinds[{type, link.bandwidth.bytes_per_s, centimetres}];
    if (port.num_ports == 0) {
      const auto& settings = switches.of(type);
      port.switch_type = type;
      const auto input = input_of(settings, link.bandwidth, static_cast<double>(centimetres) / 100);
      // 82 bytes of headers around a RoCEv2 payload, preamble and gap included.
      const Bytes packet = payload + Bytes{82};
      port.rate = link.bandwidth;
      port.cable_m = input.cable_m;
      port.vendor = vendor_headroom(input);
      port.configured = headroom_of(settings, link);
      port.needed = least_headroom(input, packet);
      port.example = fmt::format("{} <- {}", topology.device(link.to).name, topology.device(link.from).name);
    }
    ++port.num_ports;
    const int here = ++per_switch[link.to.value];
    if (here > port.most_on_one_switch) {
      port.most_on_one_switch = here;
      port.switch_name = topology.device(link.to).name;
    }
  }
  std::vector<PortHeadroom> out;
  for (auto& [key, count] : kinds) out.push_back(std::move(count.port));
  return out;
}

}  // namespace fabricast
