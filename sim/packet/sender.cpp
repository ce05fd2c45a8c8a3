// SPDX-License-Identifier: Apache-2.0
// Queue pairs that send: round robin per port and class among those that have something to send, room in the window and
// whose pace allows it. Packets are made one at a time, when the port is free.
#include <algorithm>

#include "packet/core.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

void Hca::ring_insert(std::uint32_t id) {
  auto& state = core->queue_pairs[id];
  auto& last = port().at(state.traffic_class).ring;
  if (last == k_none) {
    state.ring_next = id;
  } else {
    state.ring_next = core->queue_pairs[last].ring_next;
    core->queue_pairs[last].ring_next = id;
  }
  last = id;
  state.is_in_ring = true;
  port().ready = static_cast<std::uint8_t>(port().ready | 1U << state.traffic_class);
}

// Takes the first queue pair out of the ring.
void Hca::ring_pop(int traffic_class) {
  auto& last = port().at(traffic_class).ring;
  const std::uint32_t first = core->queue_pairs[last].ring_next;
  core->queue_pairs[first].is_in_ring = false;
  if (first == last) {
    last = k_none;
    port().ready = static_cast<std::uint8_t>(port().ready & ~(1U << traffic_class));
  } else {
    core->queue_pairs[last].ring_next = core->queue_pairs[first].ring_next;
  }
}

// Whether there is a packet to send, apart from its time.
bool Hca::may_send(const QueuePairState& state) const {
  if (state.sending == k_none) return false;
  if (state.next_packet - state.acknowledged >= state.window) return false;
  return core->messages[state.sending].verb != Verb::read || state.is_response ||
         state.reads_outstanding < transport().max_reads || state.next_packet < state.furthest;
}

void Hca::update_readiness(std::uint32_t id) {
  auto& state = core->queue_pairs[id];
  if (state.is_in_ring || state.has_pace_event || !may_send(state)) return;
  const auto& message = core->messages[state.sending];
  Time due = std::max(state.next_time, message.start);
  if (message.path != 0 && message.start <= core->now) due = std::max(due, host_due(state));
  // Due before the port is free: it can take its turn then.
  if (due > core->now && (due > port().free_at || message.start > core->now)) {
    state.has_pace_event = true;
    core->events.push(due, EventKind::pace, id);
    return;
  }
  ring_insert(id);
  port().kick();
}

void Hca::on_pace(std::uint32_t id) {
  auto& state = core->queue_pairs[id];
  state.has_pace_event = false;
  if (state.is_paced && state.last_wire > 0) {
    // The rate may have changed since the packet before was sent.
    react(state, [&](CongestionControl& control) { control.pace(core->now, 0); });
    const double gap_ps = state.last_wire * 1e12 / state.control->rate();
    state.next_time = std::max(core->now, state.last_sent + static_cast<Time>(gap_ps));
  }
  update_readiness(id);
}

/// Frame that the first queue pair of the ring would send.
std::uint32_t Hca::next_frame(int traffic_class) const {
  const std::uint32_t last = port().at(traffic_class).ring;
  if (last == k_none) return 0;
  const auto& state = core->queue_pairs[core->queue_pairs[last].ring_next];
  if (core->messages[state.sending].verb == Verb::read && !state.is_response)
    return static_cast<std::uint32_t>(transport().read_request.value);
  return static_cast<std::uint32_t>(next_payload(state) + transport().header.value);
}

std::int64_t Hca::next_payload(const QueuePairState& state) const {
  const auto& message = core->messages[state.sending];
  if (message.verb == Verb::read && !state.is_response) return 0;
  const std::int64_t offset = std::int64_t{state.next_packet - message.first_packet} * state.packet_bytes;
  return std::min(state.packet_bytes, message.bytes - offset);
}

// When the queue pair's next packet may begin on the wire. Its host fetches it once.
Time Hca::host_due(QueuePairState& state) {
  const auto& message = core->messages[state.sending];
  const auto& path = core->stages.paths[message.path];
  const std::int64_t payload = next_payload(state);
  if (path.sending == 0 || payload <= 0) return core->now;
  if (!state.has_host_packet) {
    state.has_host_packet = true;
    state.host_ready =
        core->stages.pass(path.first, path.sending, static_cast<double>(payload), message.start, core->now);
  }
  const auto bytes = static_cast<std::uint32_t>(payload + transport().header.value + transport().wire_gap.value);
  return state.host_ready - port().wire_time(bytes);
}

// Sends a packet of the first queue pair in the ring of a class.
void Hca::send_next(int traffic_class) {
  auto& from = port();
  const std::uint32_t id = core->queue_pairs[from.at(traffic_class).ring].ring_next;
  const std::uint32_t frame = next_frame(traffic_class);
  ring_pop(traffic_class);
  const std::uint32_t made = make_data_packet(id);
  auto& state = core->queue_pairs[id];
  state.has_host_packet = false;
  core->packets[made].frame = frame;
  from.charge_class(traffic_class, frame);
  if (from.has_credits) from.take_credit(traffic_class, frame);
  const std::uint32_t wire_bytes = frame + core->packets[made].gap;
  from.transmit(made);
  from.free_at = std::max(from.free_at, core->now + config->packet_gap.ps);
  pace(state, wire_bytes);
  core->trains.note_sent(id);
  update_readiness(id);
}

// Fills a packet with the next number of a queue pair and moves its sending position on.
std::uint32_t Hca::make_data_packet(std::uint32_t id) {
  const std::uint32_t made = core->packets.take();
  auto& packet = core->packets[made];
  auto& state = core->queue_pairs[id];
  auto& message = core->messages[state.sending];
  const bool is_request = message.verb == Verb::read && !state.is_response;
  packet.kind = is_request ? PacketKind::read_request : PacketKind::data;
  packet.queue_pair = id;
  packet.number = state.next_packet;
  packet.message = state.sending;
  packet.route = state.has_free_route ? k_none : state.route;
  packet.traffic_class = state.traffic_class;
  packet.gap = static_cast<std::uint8_t>(transport().wire_gap.value);
  packet.is_last = state.next_packet + 1 == message.first_packet + message.packets;
  packet.asks_ack = packet.is_last || (state.next_packet + 1) % state.ack_every == 0;
  if (message.started < 0) message.started = core->now;
  state.first_sent = std::min(state.first_sent, core->now);
  if (state.next_packet < state.furthest) {
    ++state.retransmitted;
  } else {
    state.furthest = state.next_packet + 1;
    if (is_request) ++state.reads_outstanding;
  }
  ++state.next_packet;
  if (packet.is_last) {
    state.sending = message.next;
    state.next_time = std::max(state.next_time, core->now + config->message_gap.ps);
  }
  return made;
}

// When the queue pair may send again: its rate counts from packet to packet.
void Hca::pace(QueuePairState& state, std::uint32_t wire_bytes) {
  state.last_sent = core->now;
  state.last_wire = wire_bytes;
  if (!state.is_paced) return;
  react(state, [&](CongestionControl& control) { control.pace(core->now, wire_bytes); });
  if (!state.control->is_below_line()) return;
  const auto gap = static_cast<Time>(wire_bytes * 1e12 / state.control->rate());
  state.next_time = std::max(state.next_time, core->now + gap);
}

void Hca::on_ack(std::uint32_t id, std::uint32_t number) {
  auto& state = core->queue_pairs[id];
  if (number <= state.acknowledged) return;
  react(state, [&](CongestionControl& control) { control.on_ack(core->now, number - state.acknowledged); });
  state.acknowledged = number;
  state.last_progress = core->now;
  if (state.next_packet < number) rewind(id, number);
  update_readiness(id);
  for (;;) {
    // By number, because complete() may call back into post(), which moves the tables.
    const std::uint32_t done = core->queue_pairs[id].oldest;
    if (done == k_none || core->messages[done].first_packet + core->messages[done].packets > number) return;
    core->queue_pairs[id].oldest = core->messages[done].next;
    if (core->messages[done].verb != Verb::read || core->queue_pairs[id].is_response) complete(done);
  }
}

// Goes on sending from packet `number`, backwards (go-back-N) or forwards.
void Hca::rewind(std::uint32_t id, std::uint32_t number) {
  core->trains.disturb();
  auto& state = core->queue_pairs[id];
  const auto is_before = [&](const MessageState& one) { return one.first_packet + one.packets <= number; };
  state.next_packet = number;
  state.sending = state.oldest;
  while (state.sending != k_none && is_before(core->messages[state.sending]))
    state.sending = core->messages[state.sending].next;
  if (!state.is_in_ring || state.sending != k_none) return;
  // In the ring with nothing to send: cannot stay there.
  std::uint32_t before = id;
  while (core->queue_pairs[before].ring_next != id) before = core->queue_pairs[before].ring_next;
  port().at(state.traffic_class).ring = before;  // makes `id` the first
  ring_pop(state.traffic_class);
}

// Armed only after a packet of the queue pair was dropped, because nothing else can make it miss an acknowledgement.
void Hca::on_timeout(std::uint32_t id) {
  auto& state = core->queue_pairs[id];
  state.has_timeout = false;
  if (state.acknowledged >= state.furthest) return;
  const Time timeout = transport().timeout.ps;
  const Time due = state.last_progress + timeout;
  state.has_timeout = true;
  if (due > core->now) {
    core->events.push(due, EventKind::timeout, id);
    return;
  }
  core->trains.disturb();
  state.last_progress = core->now;
  // Timers of adapters are coarse (InfiniBand allows up to four times the value); equal ones would lose the same
  // packets again.
  const double stretch = 1 + uniform(core->options.seed, id, state.timeouts++);
  const auto pause = static_cast<Time>(static_cast<double>(timeout) * stretch);
  core->events.push(core->now + pause, EventKind::timeout, id);
  rewind(id, state.acknowledged);
  update_readiness(id);
}

std::uint32_t Hca::append_message(std::uint32_t id, const Message& message) {
  core->trains.disturb();
  auto& state = core->queue_pairs[id];
  const auto number = static_cast<std::uint32_t>(core->messages.size());
  auto& entry = core->messages.emplace_back();
  entry.queue_pair = id;
  entry.bytes = message.bytes.value;
  entry.verb = message.verb;
  entry.path = static_cast<std::uint32_t>(message.path);
  entry.tag = message.tag;
  entry.posted = core->now;
  entry.start = std::max(core->now, within_range(message.start)) + config->send_latency.ps;
  entry.first_packet = state.end_packet;
  if (message.verb != Verb::read || state.is_response) {
    const auto needed = entry.bytes / state.packet_bytes + (entry.bytes % state.packet_bytes > 0 ? 1 : 0);
    core->is_past_range = core->is_past_range || needed + state.end_packet > k_most_packets;
    entry.packets = static_cast<std::uint32_t>(std::clamp<std::int64_t>(needed, 1, k_most_packets));
  }
  state.end_packet += entry.packets;
  if (state.newest != k_none) core->messages[state.newest].next = number;
  state.newest = number;
  if (state.oldest == k_none) {
    state.oldest = number;
    state.last_progress = core->now;
  }
  if (state.sending == k_none) state.sending = number;
  return number;
}

}  // namespace fabricast::packet
