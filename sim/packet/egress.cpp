// SPDX-License-Identifier: Apache-2.0
// What a port sends next, and its transmission. A port needs an event of its own only when something waits for the end
// of a transmission; a packet that finds the port idle goes on the wire at once.
#include <algorithm>
#include <bit>

#include "packet/core.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

void Port::wake(Time time) {
  if (wake_at <= time) return;
  wake_at = time;
  core->events.push(time, EventKind::port_ready, port_id());
}

void Port::kick() {
  if (core->now < free_at) {
    wake(free_at);
    return;
  }
  send_next();
}

void Port::send_next() {
  if (pause_due != 0 || has_control) {
    send_control();
  } else {
    if (((queued | ready) & ~paused) == 0) return;
    Time earliest = k_never;
    const unsigned eligible = ready_classes(earliest);
    if (eligible == 0) {
      if (earliest != k_never) wake(earliest);
      return;
    }
    const int chosen = choose_class(eligible);
    if (!is_host && has_credits) {
      core->switches[owner].send_arbitrated(*this, chosen);
    } else if (at(chosen).queue.head != k_none) {
      send_queued(chosen);
    } else {
      core->hcas[owner].send_next(chosen);
    }
  }
  const bool has_more = ((queued | ready) & ~paused) != 0 || pause_due != 0 || has_control;
  if (has_more || !core->options.shortcuts) wake(free_at);
}

// Classes that could begin a packet now; `earliest` = when the first of the others could, as far as time decides it.
unsigned Port::ready_classes(Time& earliest) {
  unsigned eligible = 0;
  for (unsigned rest = (queued | ready) & ~paused & 0xffU; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    if (!is_host && has_credits) {
      if (core->switches[owner].arbitrate(*this, number, earliest) != k_none) eligible |= 1U << number;
      continue;
    }
    const std::uint32_t head = at(number).queue.head;
    if (head != k_none && core->packets[head].time > core->now) {
      earliest = std::min(earliest, core->packets[head].time);
      continue;
    }
    if (has_credits) {
      const std::uint32_t frame = head != k_none ? core->packets[head].frame : core->hcas[owner].next_frame(number);
      if (!has_credit(number, frame)) continue;
    }
    eligible |= 1U << number;
  }
  return eligible;
}

// Strict classes from the highest number down, then the one with the least start tag (start-time fair queueing).
int Port::choose_class(unsigned eligible) const {
  if ((eligible & (eligible - 1)) == 0) return std::countr_zero(eligible);
  const auto& rules = config().classes;
  for (int number = k_num_classes - 1; number >= 0; --number)
    if ((eligible >> number & 1) != 0 && rules[static_cast<std::size_t>(number)].strict) return number;
  int best = -1;
  for (unsigned rest = eligible; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    const auto floor = schedule_tag;
    if (best < 0 || std::max(at(number).tag, floor) < std::max(at(best).tag, floor)) best = number;
  }
  return best;
}

// Counts a packet against the weight of its class while another class waits.
void Port::charge_class(int traffic_class, std::uint32_t bytes) {
  const unsigned waiting = (queued | ready) & ~paused & 0xffU;
  if ((waiting & ~(1U << traffic_class)) == 0) return;
  const auto& rule = config().classes[static_cast<std::size_t>(traffic_class)];
  if (rule.strict) return;
  auto& entry = at(traffic_class);
  schedule_tag = std::max(entry.tag, schedule_tag);
  entry.tag = schedule_tag + std::uint64_t{bytes} * 65'536 / rule.weight;
}

void Port::enqueue(std::uint32_t packet) {
  const auto& entry = core->packets[packet];
  auto& queue = at(entry.traffic_class);
  queue.queue_bytes += entry.frame;
  queue.max_queue = std::max(queue.max_queue, queue.queue_bytes);
  queued = static_cast<std::uint8_t>(queued | 1U << entry.traffic_class);
  core->packets.append(queue.queue, packet);
}

void Port::send_queued(int traffic_class) {
  auto& queue = at(traffic_class);
  const std::uint32_t id = core->packets.take_first(queue.queue);
  auto& packet = core->packets[id];
  charge_class(traffic_class, packet.frame);
  if (!is_host) mark_congestion(packet, queue.queue_bytes);
  queue.queue_bytes -= packet.frame;
  if (queue.queue.head == k_none) queued = static_cast<std::uint8_t>(queued & ~(1U << traffic_class));
  if (has_credits) take_credit(traffic_class, packet.frame);
  const std::uint32_t ingress = packet.ingress;
  const std::uint32_t counted = packet.counted;
  transmit(id);
  if (!is_host) core->switches[owner].release(core->ports[ingress], traffic_class, counted);
}

void Port::mark_congestion(Packet& packet, std::int64_t queue_bytes) {
  const auto& ecn = config().classes[packet.traffic_class].ecn;
  if (!ecn.enabled || queue_bytes <= ecn.min.value || packet.kind != PacketKind::data) return;
  if (queue_bytes < ecn.max.value) {
    const auto sent = at(packet.traffic_class).sent_packets;
    const double share = static_cast<double>(queue_bytes - ecn.min.value) /
                         static_cast<double>(ecn.max.value - ecn.min.value) * ecn.max_probability;
    core->trains.disturb();  // the number counts packets
    if (uniform(core->options.seed, port_id() * 8ULL + packet.traffic_class, sent) >= share) return;
  }
  packet.is_marked = true;
  ++count(packet.traffic_class).marked;
}

// Puts a packet on the wire. Its sender is busy until the end; the peer learns of it by its header or by its end.
void Port::transmit(std::uint32_t id) {
  auto& packet = core->packets[id];
  const std::uint32_t bytes = packet.frame + packet.gap;
  const Time duration = wire_time(bytes);
  free_at = core->now + duration;
  auto& entry = at(packet.traffic_class);
  ++entry.sent_packets;
  entry.sent_bytes += bytes;
  ++core->packet_hops;
  const bool is_head_enough = core->ports[peer].cuts_through && bytes > k_header_wire_bytes;
  const Time until_known = is_head_enough ? wire_time(k_header_wire_bytes) : duration;
  hand_to_wire(id, core->now + delay + until_known);
}

void Port::hand_to_wire(std::uint32_t id, Time arrival) {
  core->packets[id].time = arrival;
  core->packets[id].ingress = peer;
  auto& line = core->ports[peer].wire;
  if (line.head == k_none) {
    core->events.push(arrival, EventKind::packet_arrival, peer);
  } else {
    core->packets[line.tail].next_time = arrival;
  }
  core->packets.append(line, id);
}

// One PAUSE frame with the state of all classes that should be told, or the next credit update.
void Port::send_control() {
  const bool is_pause = pause_due != 0;
  const std::uint32_t id = is_pause ? make_pause_frame() : core->packets.take_first(control);
  has_control = control.head != k_none;
  const Time duration = wire_time(is_pause ? k_pause_wire_bytes : k_credit_wire_bytes);
  free_at = core->now + duration;
  auto& packet = core->packets[id];
  packet.time = core->now + duration + delay + (is_pause ? core->ports[peer].pause_response() : 0);
  auto& line = core->ports[peer].pause_wire;
  if (line.head == k_none) core->events.push(packet.time, EventKind::pause_arrival, peer);
  core->packets.append(line, id);
}

}  // namespace fabricast::packet
