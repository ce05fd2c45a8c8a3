// SPDX-License-Identifier: Apache-2.0
// Queue pairs that send: round robin per port and class among those that have something to send, room in the window and
// whose pace allows it. Packets are made one at a time, when the port is free.
#include <algorithm>

#include "packet/engine.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

void Simulation::Engine::ring_insert(std::uint32_t id) {
  auto& state = queue_pairs[id];
  auto& last = at(state.source, state.traffic_class).ring;
  if (last == k_none) {
    state.ring_next = id;
  } else {
    state.ring_next = queue_pairs[last].ring_next;
    queue_pairs[last].ring_next = id;
  }
  last = id;
  state.is_in_ring = true;
  ports[state.source].ready = static_cast<std::uint8_t>(ports[state.source].ready | 1U << state.traffic_class);
}

// Takes the first queue pair out of the ring.
void Simulation::Engine::ring_pop(std::uint32_t port, int traffic_class) {
  auto& last = at(port, traffic_class).ring;
  const std::uint32_t first = queue_pairs[last].ring_next;
  queue_pairs[first].is_in_ring = false;
  if (first == last) {
    last = k_none;
    ports[port].ready = static_cast<std::uint8_t>(ports[port].ready & ~(1U << traffic_class));
  } else {
    queue_pairs[last].ring_next = queue_pairs[first].ring_next;
  }
}

// Whether there is a packet to send, apart from its time.
bool Simulation::Engine::may_send(std::uint32_t id) {
  const auto& state = queue_pairs[id];
  if (state.sending == k_none) return false;
  if (state.next_packet - state.acknowledged >= state.window) return false;
  return messages[state.sending].verb != Verb::read || state.is_response ||
         state.reads_outstanding < transport_of(state.source).max_reads || state.next_packet < state.furthest;
}

void Simulation::Engine::update_readiness(std::uint32_t id) {
  auto& state = queue_pairs[id];
  if (state.is_in_ring || state.has_pace_event || !may_send(id)) return;
  const auto& message = messages[state.sending];
  Time due = std::max(state.next_time, message.start);
  if (message.path != 0 && message.start <= now) due = std::max(due, host_due(id));
  if (due > now && due > ports[state.source].free_at) {
    state.has_pace_event = true;
    events.push(due, EventKind::pace, id);
    return;
  }
  if (due > now) {
    // Due before the port is free: it can take its turn then.
    if (message.start > now) {
      state.has_pace_event = true;
      events.push(due, EventKind::pace, id);
      return;
    }
  }
  ring_insert(id);
  kick(state.source);
}

void Simulation::Engine::on_pace(std::uint32_t id) {
  auto& state = queue_pairs[id];
  state.has_pace_event = false;
  const auto& dcqcn = transport_of(state.source).dcqcn;
  if (state.machine.is_active && state.last_wire > 0) {
    // The rate may have changed since the packet before was sent.
    const double rate = state.machine.rate;
    state.machine.advance(dcqcn, now);
    if (state.machine.rate != rate) trains.disturb();
    const double gap_ps = state.last_wire * 1e12 / state.machine.rate;
    state.next_time = std::max(now, state.last_sent + static_cast<Time>(gap_ps));
  }
  update_readiness(id);
}

/// Frame that the first queue pair of the ring would send.
std::uint32_t Simulation::Engine::next_frame(std::uint32_t port, int traffic_class) const {
  const std::uint32_t last = at(port, traffic_class).ring;
  if (last == k_none) return 0;
  const auto& state = queue_pairs[queue_pairs[last].ring_next];
  const auto& transport = transport_of(port);
  if (messages[state.sending].verb == Verb::read && !state.is_response)
    return static_cast<std::uint32_t>(transport.read_request.value);
  return static_cast<std::uint32_t>(next_payload(state) + transport.header.value);
}

std::int64_t Simulation::Engine::next_payload(const QueuePairState& state) const {
  const auto& message = messages[state.sending];
  if (message.verb == Verb::read && !state.is_response) return 0;
  const std::int64_t offset = std::int64_t{state.next_packet - message.first_packet} * state.packet_bytes;
  return std::min(state.packet_bytes, message.bytes - offset);
}

void Simulation::Engine::send_from_queue_pair(std::uint32_t port, int traffic_class) {
  const std::uint32_t id = queue_pairs[at(port, traffic_class).ring].ring_next;
  const std::uint32_t frame = next_frame(port, traffic_class);
  ring_pop(port, traffic_class);
  const std::uint32_t packet = make_data_packet(id);
  queue_pairs[id].has_host_packet = false;
  packets[packet].frame = frame;
  charge_class(port, traffic_class, frame);
  if (ports[port].has_credits) take_credit(port, traffic_class, frame);
  const std::uint32_t wire_bytes = frame + packets[packet].gap;
  transmit(port, packet);
  const auto& hca = hca_of(port);
  ports[port].free_at = std::max(ports[port].free_at, now + hca.packet_gap.ps);
  pace(id, wire_bytes);
  trains.note_sent(id);
  update_readiness(id);
}

// Fills a packet with the next number of a queue pair and moves its sending position on.
std::uint32_t Simulation::Engine::make_data_packet(std::uint32_t id) {
  const std::uint32_t made = take_packet();
  auto& packet = packets[made];
  auto& state = queue_pairs[id];
  auto& message = messages[state.sending];
  const auto& transport = transport_of(state.source);
  const bool is_request = message.verb == Verb::read && !state.is_response;
  packet.kind = is_request ? PacketKind::read_request : PacketKind::data;
  packet.queue_pair = id;
  packet.number = state.next_packet;
  packet.message = state.sending;
  packet.route = state.has_free_route ? k_none : state.route;
  packet.traffic_class = state.traffic_class;
  packet.gap = static_cast<std::uint8_t>(transport.wire_gap.value);
  packet.is_last = state.next_packet + 1 == message.first_packet + message.packets;
  packet.asks_ack = packet.is_last || (state.next_packet + 1) % state.ack_every == 0;
  if (message.started < 0) message.started = now;
  state.first_sent = std::min(state.first_sent, now);
  if (state.next_packet < state.furthest) {
    ++state.retransmitted;
  } else {
    state.furthest = state.next_packet + 1;
    if (is_request) ++state.reads_outstanding;
  }
  ++state.next_packet;
  if (packet.is_last) {
    state.sending = message.next;
    state.next_time = std::max(state.next_time, now + hca_of(state.source).message_gap.ps);
  }
  return made;
}

// When the queue pair may send again: its DCQCN rate counts from packet to packet.
void Simulation::Engine::pace(std::uint32_t id, std::uint32_t wire_bytes) {
  auto& state = queue_pairs[id];
  state.last_sent = now;
  state.last_wire = wire_bytes;
  if (!state.machine.is_active) return;
  const auto& dcqcn = transport_of(state.source).dcqcn;
  const double rate = state.machine.rate;
  state.machine.advance(dcqcn, now);
  state.machine.on_sent(dcqcn, wire_bytes);
  if (state.machine.rate != rate) trains.disturb();
  if (state.machine.rate >= state.machine.line * (1 - 1e-9)) return;
  state.next_time = std::max(state.next_time, now + static_cast<Time>(wire_bytes * 1e12 / state.machine.rate));
}

void Simulation::Engine::on_ack(std::uint32_t id, std::uint32_t number) {
  auto& state = queue_pairs[id];
  if (number <= state.acknowledged) return;
  state.acknowledged = number;
  state.last_progress = now;
  if (state.next_packet < number) rewind(id, number);
  update_readiness(id);
  for (;;) {
    // By number, because complete() may call back into post(), which moves the tables.
    const std::uint32_t done = queue_pairs[id].oldest;
    if (done == k_none || messages[done].first_packet + messages[done].packets > number) return;
    queue_pairs[id].oldest = messages[done].next;
    if (messages[done].verb != Verb::read || queue_pairs[id].is_response) complete(done);
  }
}

// Goes on sending from packet `number`, backwards (go-back-N) or forwards.
void Simulation::Engine::rewind(std::uint32_t id, std::uint32_t number) {
  trains.disturb();
  auto& state = queue_pairs[id];
  state.next_packet = number;
  state.sending = state.oldest;
  while (state.sending != k_none && messages[state.sending].first_packet + messages[state.sending].packets <= number)
    state.sending = messages[state.sending].next;
  if (!state.is_in_ring || state.sending != k_none) return;
  // In the ring with nothing to send: cannot stay there.
  std::uint32_t before = id;
  while (queue_pairs[before].ring_next != id) before = queue_pairs[before].ring_next;
  auto& last = at(state.source, state.traffic_class).ring;
  last = before;  // makes `id` the first
  ring_pop(state.source, state.traffic_class);
}

// Armed only after a packet of the queue pair was dropped, because nothing else can make it miss an acknowledgement.
void Simulation::Engine::on_timeout(std::uint32_t id) {
  auto& state = queue_pairs[id];
  state.has_timeout = false;
  if (state.acknowledged >= state.furthest) return;
  const Time timeout = transport_of(state.source).timeout.ps;
  const Time due = state.last_progress + timeout;
  state.has_timeout = true;
  if (due > now) {
    events.push(due, EventKind::timeout, id);
    return;
  }
  trains.disturb();
  state.last_progress = now;
  // Timers of adapters are coarse (InfiniBand allows up to four times the value); equal ones would lose the same
  // packets again.
  const double stretch = 1 + uniform(options.seed, id, state.timeouts++);
  events.push(now + static_cast<Time>(static_cast<double>(timeout) * stretch), EventKind::timeout, id);
  rewind(id, state.acknowledged);
  update_readiness(id);
}

std::uint32_t Simulation::Engine::append_message(std::uint32_t id, const Message& message) {
  trains.disturb();
  auto& state = queue_pairs[id];
  const auto number = static_cast<std::uint32_t>(messages.size());
  messages.emplace_back();
  auto& entry = messages.back();
  entry.queue_pair = id;
  entry.bytes = message.bytes.value;
  entry.verb = message.verb;
  entry.path = static_cast<std::uint32_t>(message.path);
  entry.tag = message.tag;
  entry.posted = now;
  entry.start = std::max(now, within_range(message.start)) + hca_of(state.source).send_latency.ps;
  entry.first_packet = state.end_packet;
  if (message.verb != Verb::read || state.is_response) {
    const auto needed = entry.bytes / state.packet_bytes + (entry.bytes % state.packet_bytes > 0 ? 1 : 0);
    is_past_range = is_past_range || needed + state.end_packet > k_most_packets;
    entry.packets = static_cast<std::uint32_t>(std::clamp<std::int64_t>(needed, 1, k_most_packets));
  }
  state.end_packet += entry.packets;
  if (state.newest != k_none) messages[state.newest].next = number;
  state.newest = number;
  if (state.oldest == k_none) {
    state.oldest = number;
    state.last_progress = now;
  }
  if (state.sending == k_none) state.sending = number;
  return number;
}

}  // namespace fabricast::packet
