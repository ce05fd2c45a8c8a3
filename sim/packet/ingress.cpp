// SPDX-License-Identifier: Apache-2.0
// A packet at a switch: its way on, and its place in the buffer. Equations in packet/buffer.hpp. A packet's memory is
// counted from its arrival until its transmission begins; a transmitted frame is read out of memory ahead of the line.
#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

void Simulation::Engine::on_packet_arrival(std::uint32_t port) {
  auto& wire = ports[port].wire;
  const std::uint32_t packet = take_first(wire);
  if (wire.head != k_none) events.push(packets[packet].next_time, EventKind::packet_arrival, port);
  if (ports[port].is_host) {
    arrive_at_host(port, packet);
  } else {
    arrive_at_switch(port, packet);
  }
}

void Simulation::Engine::arrive_at_switch(std::uint32_t port, std::uint32_t id) {
  auto& packet = packets[id];
  const auto& state = ports[port];
  const auto& config = config_of(port);
  const std::uint32_t hop = packet.route;
  const std::uint32_t egress = next_port(state.node, packet);
  const auto cell = static_cast<std::uint32_t>(config.cell.value);
  packet.counted = cell == 1 ? packet.frame : (packet.frame + cell - 1) / cell * cell;
  packet.time = now + config.latency.ps;
  if (state.cuts_through && ports[egress].ps_per_byte < state.ps_per_byte) {
    // The egress would run ahead of the arrival: wait for the end.
    const std::uint32_t bytes = packet.frame + packet.gap;
    if (bytes > k_header_wire_bytes) packet.time += wire_time(state, bytes - k_header_wire_bytes);
  }
  if (state.has_credits) {
    receive_credited(port, id);
    packet.ingress_class = packet.traffic_class;
    if (hop < hop_lanes.size())
      packet.traffic_class = static_cast<std::uint8_t>(lane_on_hop(hop, packet.traffic_class));
    enqueue_at_input(egress, id);
    return;
  }
  const bool is_lossless = (state.lossless >> packet.traffic_class & 1) != 0;
  if (!(is_lossless ? admit_lossless(port, id, egress) : admit_lossy(port, id, egress))) {
    drop(port, id);
    return;
  }
  enqueue(egress, id);
  kick(egress);
}

/// Dynamic or fixed threshold of the shared part of one ingress class.
std::int64_t Simulation::Engine::threshold(std::uint32_t port) const {
  const auto& pfc = config_of(port).pfc;
  if (pfc.xoff) return pfc.xoff->value;
  const auto& state = switches[ports[port].node];
  const std::int64_t free = state.pool - state.shared_used;
  return free > 0 ? static_cast<std::int64_t>(ports[port].alpha * static_cast<double>(free)) : 0;
}

bool Simulation::Engine::admit_lossless(std::uint32_t port, std::uint32_t id, std::uint32_t egress) {
  const auto& packet = packets[id];
  const int number = packet.traffic_class;
  auto& entry = at(port, number);
  auto& memory = switches[ports[port].node];
  const std::int64_t reserved = memory.config->reserved.value;
  const std::int64_t bytes = packet.counted;
  const std::int64_t outside = entry.ingress - entry.in_headroom;
  const std::int64_t shared = std::max<std::int64_t>(0, outside + bytes - reserved);
  const bool has_room = memory.shared_used + shared - entry.shared <= memory.pool;
  const bool is_xoff = (ports[port].xoff >> number & 1) != 0;
  const bool is_in_headroom = (is_xoff && entry.ingress >= reserved + threshold(port)) || !has_room;
  if (is_in_headroom) {
    if (entry.in_headroom + bytes > entry.headroom) return false;
    entry.in_headroom += bytes;
    auto& seldom = count(port, number);
    seldom.max_headroom = std::max(seldom.max_headroom, entry.in_headroom);
  } else {
    memory.shared_used += shared - entry.shared;
    entry.shared = shared;
  }
  entry.ingress += bytes;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  memory.used += bytes;
  memory.max_used = std::max(memory.max_used, memory.used);
  if (is_xoff) {
    auto& seldom = count(port, number);
    seldom.max_overshoot = std::max(seldom.max_overshoot, entry.ingress - entry.at_xoff);
  } else if (is_in_headroom || entry.ingress >= reserved + threshold(port)) {
    decide_xoff(port, number, egress);
  }
  return true;
}

bool Simulation::Engine::admit_lossy(std::uint32_t port, std::uint32_t id, std::uint32_t egress) {
  const auto& packet = packets[id];
  auto& memory = switches[ports[port].node];
  const std::int64_t bytes = packet.counted;
  if (memory.shared_used + bytes > memory.pool) return false;
  if (at(egress, packet.traffic_class).queue_bytes + packet.frame > memory.config->lossy_limit.value) return false;
  auto& entry = at(port, packet.traffic_class);
  entry.ingress += bytes;
  entry.shared += bytes;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  memory.shared_used += bytes;
  memory.used += bytes;
  memory.max_used = std::max(memory.max_used, memory.used);
  return true;
}

// Gives memory back in the order headroom, shared, reserved; XON when the count has fallen far enough.
void Simulation::Engine::release(std::uint32_t port, int traffic_class, std::uint32_t counted) {
  auto& entry = at(port, traffic_class);
  auto& memory = switches[ports[port].node];
  const std::int64_t from_headroom = std::min<std::int64_t>(entry.in_headroom, counted);
  const std::int64_t from_shared = std::min<std::int64_t>(entry.shared, counted - from_headroom);
  entry.in_headroom -= from_headroom;
  entry.shared -= from_shared;
  entry.ingress -= counted;
  memory.shared_used -= from_shared;
  memory.used -= counted;
  if ((ports[port].xoff >> traffic_class & 1) == 0 || entry.in_headroom > 0) return;
  const std::int64_t limit = memory.config->reserved.value + threshold(port);
  if (entry.ingress <= limit - memory.config->pfc.xon_offset.value || entry.ingress == 0)
    decide_xon(port, traffic_class);
}

void Simulation::Engine::drop(std::uint32_t port, std::uint32_t id) {
  trains.disturb();
  const auto& packet = packets[id];
  auto& seldom = count(port, packet.traffic_class);
  ++seldom.dropped;
  seldom.dropped_bytes += packet.frame;
  const bool is_lossless = (ports[port].lossless >> packet.traffic_class & 1) != 0;
  ++(is_lossless ? lossless_drops : lossy_drops);
  auto& queue_pair = queue_pairs[packet.queue_pair];
  const Time timeout = transport_of(queue_pair.source).timeout.ps;
  if (!queue_pair.has_timeout && timeout > 0) {
    queue_pair.has_timeout = true;
    events.push(now + timeout, EventKind::timeout, packet.queue_pair);
  }
  give_back(id);
}

}  // namespace fabricast::packet
