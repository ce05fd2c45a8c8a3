// SPDX-License-Identifier: Apache-2.0
// What a port sends next, and its transmission. A port needs an event of its own only when something waits for the end
// of a transmission; a packet that finds the port idle goes on the wire at once.
#include <algorithm>
#include <bit>

#include "packet/engine.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

void Simulation::Engine::wake_at(std::uint32_t port, Time time) {
  if (ports[port].wake_at <= time) return;
  ports[port].wake_at = time;
  events.push(time, EventKind::port_ready, port);
}

void Simulation::Engine::kick(std::uint32_t port) {
  const Time free_at = ports[port].free_at;
  if (now < free_at) {
    wake_at(port, free_at);
    return;
  }
  send_next(port);
}

void Simulation::Engine::send_next(std::uint32_t port) {
  auto& state = ports[port];
  if (state.pause_due != 0 || state.has_control) {
    send_control(port);
  } else {
    if (((state.queued | state.ready) & ~state.paused) == 0) return;
    Time earliest = k_never;
    const unsigned eligible = ready_classes(port, earliest);
    if (eligible == 0) {
      if (earliest != k_never) wake_at(port, earliest);
      return;
    }
    const int chosen = choose_class(port, eligible);
    if (!state.is_host && state.has_credits) {
      send_arbitrated(port, chosen);
    } else if (at(port, chosen).queue.head != k_none) {
      send_queued(port, chosen);
    } else {
      send_from_queue_pair(port, chosen);
    }
  }
  const bool has_more =
      ((state.queued | state.ready) & ~state.paused) != 0 || state.pause_due != 0 || state.has_control;
  if (has_more || !options.shortcuts) wake_at(port, state.free_at);
}

// Classes that could begin a packet now; `earliest` = when the first of the others could, as far as time decides it.
unsigned Simulation::Engine::ready_classes(std::uint32_t port, Time& earliest) {
  const auto& state = ports[port];
  unsigned eligible = 0;
  for (unsigned rest = (state.queued | state.ready) & ~state.paused & 0xffU; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    if (!state.is_host && state.has_credits) {
      if (arbitrate(port, number, earliest) != k_none) eligible |= 1U << number;
      continue;
    }
    const std::uint32_t head = at(port, number).queue.head;
    if (head != k_none && packets[head].time > now) {
      earliest = std::min(earliest, packets[head].time);
      continue;
    }
    if (state.has_credits) {
      const std::uint32_t frame = head != k_none ? packets[head].frame : next_frame(port, number);
      if (!has_credit(port, number, frame)) continue;
    }
    eligible |= 1U << number;
  }
  return eligible;
}

// Strict classes from the highest number down, then the one with the least start tag (start-time fair queueing).
int Simulation::Engine::choose_class(std::uint32_t port, unsigned eligible) const {
  if ((eligible & (eligible - 1)) == 0) return std::countr_zero(eligible);
  const auto& rules = config_of(port).classes;
  for (int number = k_num_classes - 1; number >= 0; --number)
    if ((eligible >> number & 1) != 0 && rules[static_cast<std::size_t>(number)].strict) return number;
  int best = -1;
  for (unsigned rest = eligible; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    const auto floor = ports[port].schedule_tag;
    if (best < 0 || std::max(at(port, number).tag, floor) < std::max(at(port, best).tag, floor)) best = number;
  }
  return best;
}

// Counts a packet against the weight of its class while another class waits.
void Simulation::Engine::charge_class(std::uint32_t port, int traffic_class, std::uint32_t bytes) {
  auto& state = ports[port];
  const unsigned waiting = (state.queued | state.ready) & ~state.paused & 0xffU;
  if ((waiting & ~(1U << traffic_class)) == 0) return;
  const auto& rule = config_of(port).classes[static_cast<std::size_t>(traffic_class)];
  if (rule.strict) return;
  auto& entry = at(port, traffic_class);
  state.schedule_tag = std::max(entry.tag, state.schedule_tag);
  entry.tag = state.schedule_tag + std::uint64_t{bytes} * 65'536 / rule.weight;
}

void Simulation::Engine::enqueue(std::uint32_t port, std::uint32_t packet) {
  const auto& entry = packets[packet];
  auto& queue = at(port, entry.traffic_class);
  queue.queue_bytes += entry.frame;
  queue.max_queue = std::max(queue.max_queue, queue.queue_bytes);
  ports[port].queued = static_cast<std::uint8_t>(ports[port].queued | 1U << entry.traffic_class);
  append(queue.queue, packet);
}

void Simulation::Engine::send_queued(std::uint32_t port, int traffic_class) {
  auto& queue = at(port, traffic_class);
  const std::uint32_t id = take_first(queue.queue);
  auto& packet = packets[id];
  charge_class(port, traffic_class, packet.frame);
  if (!ports[port].is_host) mark_congestion(port, packet, queue.queue_bytes);
  queue.queue_bytes -= packet.frame;
  if (queue.queue.head == k_none)
    ports[port].queued = static_cast<std::uint8_t>(ports[port].queued & ~(1U << traffic_class));
  if (ports[port].has_credits) take_credit(port, traffic_class, packet.frame);
  const std::uint32_t ingress = packet.ingress;
  const std::uint32_t counted = packet.counted;
  transmit(port, id);
  if (!ports[port].is_host) release(ingress, traffic_class, counted);
}

void Simulation::Engine::mark_congestion(std::uint32_t port, Packet& packet, std::int64_t queue_bytes) {
  const auto& ecn = config_of(port).classes[packet.traffic_class].ecn;
  if (!ecn.enabled || queue_bytes <= ecn.min.value || packet.kind != PacketKind::data) return;
  if (queue_bytes < ecn.max.value) {
    const auto sent = at(port, packet.traffic_class).sent_packets;
    const double share = static_cast<double>(queue_bytes - ecn.min.value) /
                         static_cast<double>(ecn.max.value - ecn.min.value) * ecn.max_probability;
    trains.disturb();  // the number counts packets
    if (uniform(options.seed, port * 8ULL + packet.traffic_class, sent) >= share) return;
  }
  packet.is_marked = true;
  ++count(port, packet.traffic_class).marked;
}

// Puts a packet on the wire. Its sender is busy until the end; the peer learns of it by its header or by its end.
void Simulation::Engine::transmit(std::uint32_t port, std::uint32_t id) {
  auto& state = ports[port];
  auto& packet = packets[id];
  const std::uint32_t bytes = packet.frame + packet.gap;
  const Time duration = wire_time(state, bytes);
  state.free_at = now + duration;
  auto& entry = at(port, packet.traffic_class);
  ++entry.sent_packets;
  entry.sent_bytes += bytes;
  ++packet_hops;
  const bool is_head_enough = ports[state.peer].cuts_through && bytes > k_header_wire_bytes;
  const Time until_known = is_head_enough ? wire_time(state, k_header_wire_bytes) : duration;
  hand_to_wire(port, id, now + state.delay + until_known);
}

void Simulation::Engine::hand_to_wire(std::uint32_t port, std::uint32_t id, Time arrival) {
  const std::uint32_t peer = ports[port].peer;
  packets[id].time = arrival;
  packets[id].ingress = peer;
  auto& wire = ports[peer].wire;
  if (wire.head == k_none) {
    events.push(arrival, EventKind::packet_arrival, peer);
  } else {
    packets[wire.tail].next_time = arrival;
  }
  append(wire, id);
}

// One PAUSE frame with the state of all classes that should be told, or the next credit update.
void Simulation::Engine::send_control(std::uint32_t port) {
  auto& state = ports[port];
  const bool is_pause = state.pause_due != 0;
  const std::uint32_t id = is_pause ? make_pause_frame(port) : take_first(state.control);
  state.has_control = state.control.head != k_none;
  const Time duration = wire_time(state, is_pause ? k_pause_wire_bytes : k_credit_wire_bytes);
  state.free_at = now + duration;
  auto& packet = packets[id];
  packet.time = now + duration + state.delay + (is_pause ? pause_response_of(state.peer) : 0);
  auto& wire = ports[state.peer].pause_wire;
  if (wire.head == k_none) events.push(packet.time, EventKind::pause_arrival, state.peer);
  append(wire, id);
}

}  // namespace fabricast::packet
