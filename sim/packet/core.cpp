// SPDX-License-Identifier: Apache-2.0
// Set-up of the parts, and what is done with the tables of all of them.
#include "packet/core.hpp"

#include <algorithm>

#include "packet/headroom.hpp"

namespace fabricast::packet {

Core::Core(const Network& given, Options wanted) : network(given), options(std::move(wanted)) {
  const std::size_t num_ports = network.ports.size();
  FABRICAST_ASSERT(num_ports * k_num_classes < (1U << 28), "{} ports are too many", num_ports);
  direct_link.flow_control = FlowControl::none;
  for (auto& traffic_class : direct_link.classes) traffic_class.lossless = true;
  adaptive_grade = k_adaptive_grade_frames * largest_frame(network).value;
  ports.resize(num_ports);
  switches.resize(network.nodes.size());
  link_configs.resize(num_ports);
  for (std::uint32_t port = 0; port < num_ports; ++port) ports[port].set_up(*this, port);
  for (std::uint32_t node = 0; node < network.nodes.size(); ++node) {
    const auto& one = network.nodes[node];
    for (std::uint32_t local = 0; local < one.ports.size(); ++local) {
      auto& port = ports[index(one.ports[local])];
      port.local = local;
      if (one.kind != NodeKind::host) continue;
      port.owner = static_cast<std::uint32_t>(hcas.size());
      hcas.push_back({this, port.port_id(), {}, &network.hca_configs[one.config]});
    }
    switches[node].set_up(*this, node);
  }
}

// Makes the tables of a class when the first queue pair uses it.
void Core::use_class(int traffic_class) {
  if (is_used(traffic_class)) return;
  const auto number = static_cast<std::size_t>(traffic_class);
  classes[number].resize(ports.size());
  counters[number].resize(ports.size());
  if (std::ranges::any_of(ports, [](const Port& port) { return port.has_credits; }))
    credits[number].resize(ports.size());
  for (auto& port : ports) port.use_class(traffic_class);
}

void Core::count_pause_cause(const Port& paused, int traffic_class, std::uint32_t because, std::uint32_t root) {
  const std::array<std::uint32_t, 4> cause{root, paused.port_id(), because, static_cast<std::uint32_t>(traffic_class)};
  ++pause_causes[cause];
  trains.note_pause(cause);
}

void Core::record_pause(const Port& port, int traffic_class, std::uint32_t root, Time since) {
  if (!options.record_pauses || pause_intervals.size() >= options.max_samples) return;
  const PortClass where{PortId{port.port_id()}, static_cast<std::uint8_t>(traffic_class)};
  pause_intervals.push_back({where, PortId{root}, Duration{since}, Duration{now}});
}

void Core::walk_list(StateWalk& walk, const PacketList& list, const CreditBase* base) {
  for (auto id = list.head; id != k_none && !walk.is_over(); id = packets[id].next)
    walk_packet(walk, packets[id], base);
  walk.same(0);
}

void Core::walk_packet(StateWalk& walk, Packet& packet, const CreditBase* base) {
  walk.same(1U + bits(packet.kind) + (bits(packet.traffic_class) << 4U) + (bits(packet.ingress_class) << 8U) +
            (bits(packet.gap) << 12U) + (bits(packet.is_marked) << 20U) + (bits(packet.asks_ack) << 21U) +
            (bits(packet.is_last) << 22U));
  walk.due(packet.time);
  if (walk.is_shift()) packet.next_time += walk.shift();  // on a wire; elsewhere it says nothing
  walk.same(packet.queue_pair);
  walk.same(packet.message);
  walk.same(packet.frame);
  walk.same(packet.counted);
  walk.same_id(packet.ingress);
  walk.same_id(packet.egress);
  walk.same_id(packet.route);
  walk.same(packet.stride);
  if (packet.kind == PacketKind::pause) {
    walk.same(packet.number);
  } else if (packet.kind == PacketKind::credit) {
    walk.same(packet.number - base->base[packet.traffic_class]);
    if (walk.is_shift()) packet.number += base->shift[packet.traffic_class];
  } else {
    walk.same(queue_pairs[packet.queue_pair].next_packet - packet.number);
    if (walk.is_shift() && packet.queue_pair < trains.pair_shifts.size())
      packet.number += trains.pair_shifts[packet.queue_pair];
  }
}

}  // namespace fabricast::packet
