// SPDX-License-Identifier: Apache-2.0
// Headroom: the vendor's formula, and the bound that the engine itself obeys.
#include "packet/headroom.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fabricast::packet {

namespace {

// PAUSE: 64 B frame, 8 B preamble, 12 B gap.
constexpr std::int64_t k_pause_wire = 84;

Duration pause_response_of(const Network& network, PortId port) {
  const auto& node = network.node_of(port);
  return node.kind == NodeKind::host ? network.hca_configs[node.config].pause_response
                                     : network.switch_configs[node.config].pfc.pause_response;
}

std::int64_t ceil_to(double value, std::int64_t unit) {
  return range::product(range::whole(std::ceil(value / static_cast<double>(unit))), unit);
}

}  // namespace

Duration cable_delay(double meters) { return from_seconds(meters / k_cable_speed); }

Duration pause_response_limit(Bandwidth rate) {
  struct Entry {
    double gbps;
    double quanta;
  };
  constexpr std::array<Entry, 8> k_table{
      {{10, 67}, {25, 80}, {40, 118}, {50, 147}, {100, 394}, {200, 453}, {400, 905}, {800, 905}}};
  const double gbps = rate.bytes_per_s * 8e-9;
  const auto* entry = std::ranges::find_if(k_table, [&](const Entry& e) { return gbps <= e.gbps * 1.0001; });
  if (entry == k_table.end()) entry = &k_table.back();
  return from_seconds(entry->quanta * 512 / (entry->gbps * 1e9));
}

SpectrumHeadroom spectrum_headroom(const SpectrumHeadroomInput& input) {
  const auto cell = static_cast<double>(input.cell.value);
  const double waste = input.cell.value > 128 ? cell / 64 : 2 * cell / (1 + cell);
  const double occupancy = input.small_packet_share * waste + (1 - input.small_packet_share);
  const double cable = 2 * input.cable_m * input.rate.bytes_per_s / k_cable_speed;
  const auto fixed = static_cast<double>((input.port_mtu + input.mac_phy + input.peer_response).value);
  double pipeline = static_cast<double>(input.pipeline_latency.value);
  double extra = 0;
  if (input.is_eight_lane) {
    pipeline = 2 * pipeline - 1024;
    extra = static_cast<double>(input.port_mtu.value);
  }
  const double xoff = static_cast<double>(input.lossless_mtu.value) + occupancy * (fixed + cable);
  SpectrumHeadroom headroom;
  headroom.xon = {ceil_to(pipeline, 1024)};
  headroom.xoff = {ceil_to(xoff, 1024)};
  headroom.size = headroom.xon + headroom.xoff + Bytes{ceil_to(extra, 1024)};
  return headroom;
}

Bytes largest_frame(const Network& network) {
  Bytes largest{64};
  for (const auto& hca : network.hca_configs) largest = std::max(largest, hca.transport.mtu + hca.transport.header);
  return largest;
}

Bytes worst_case_headroom(const Network& network, PortId port, Bytes frame) {
  const auto& here = network.ports[index(port)];
  const auto& node = network.node_of(port);
  const bool is_out_of_band =
      node.kind == NodeKind::packet_switch && network.switch_configs[node.config].pfc.is_pause_out_of_band;
  const auto response = pause_response_of(network, here.peer);
  const double in_flight = (2 * here.delay.seconds() + response.seconds()) * here.rate.bytes_per_s;
  // Finishing at the peer, found the pool used up, and before PAUSE.
  const double frames = static_cast<double>(frame.value) * (is_out_of_band ? 2 : 3);
  const double bytes = std::ceil(in_flight) + frames + (is_out_of_band ? 0 : static_cast<double>(k_pause_wire));
  if (node.kind == NodeKind::host) return {range::whole(bytes)};
  // Whole cells: every frame wastes less than one.
  const auto cell = network.switch_configs[node.config].cell.value;
  const double cells_per_frame = std::ceil(static_cast<double>(frame.value) / static_cast<double>(cell));
  const double waste = cells_per_frame * static_cast<double>(cell) / static_cast<double>(frame.value);
  return {ceil_to(bytes * waste, cell)};
}

Bytes headroom_of(const Network& network, PortId port) {
  const auto& here = network.ports[index(port)];
  if (here.headroom) return *here.headroom;
  const auto& node = network.node_of(port);
  if (node.kind == NodeKind::packet_switch) {
    const auto& pfc = network.switch_configs[node.config].pfc;
    if (pfc.headroom) return *pfc.headroom;
    if (pfc.headroom_bandwidth_delays > 0)
      return to_bytes(pfc.headroom_bandwidth_delays * here.delay.seconds() * here.rate.bytes_per_s);
  }
  return worst_case_headroom(network, port, largest_frame(network));
}

}  // namespace fabricast::packet
