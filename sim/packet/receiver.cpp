// SPDX-License-Identifier: Apache-2.0
// A packet at its host: the receive buffer of a slow host, packet order, acknowledgements, CNPs, completions.
#include <algorithm>

#include "packet/core.hpp"

namespace fabricast::packet {

void Hca::arrive(std::uint32_t id) {
  auto& here = port();
  auto& packet = core->packets[id];
  packet.counted = packet.frame;
  const bool has_credits = here.has_credits && here.is_lossless(packet.traffic_class);
  if (!passes_stages(packet) || (receiving.head == k_none && (packet.time = end_of_receipt(packet)) <= core->now)) {
    if (has_credits) {
      here.receive_credited(id);
      here.release_credited(packet.traffic_class, packet.frame);
    }
    process(id);
    return;
  }
  if (has_credits) {
    here.receive_credited(id);
  } else if (!take_receive_buffer(packet)) {
    here.drop(id);
    return;
  }
  if (receiving.head == k_none) core->events.push(core->packets[id].time, EventKind::receive_done, port_id);
  core->packets.append(receiving, id);
}

// Whether the packet has to wait for its host. What answers data does not, but by the rate of the whole port.
bool Hca::passes_stages(const Packet& packet) const {
  if (config->receive_rate.bytes_per_s > 0 && port().is_lossless(packet.traffic_class)) return true;
  return packet.kind == PacketKind::data && core->stages.paths[core->messages[packet.message].path].receiving > 0;
}

// When the packet, first in its port's queue, is in memory.
Time Hca::end_of_receipt(const Packet& packet) {
  Time end = core->now;
  const double rate = config->receive_rate.bytes_per_s;
  if (rate > 0 && port().is_lossless(packet.traffic_class)) end += static_cast<Time>(packet.frame * 1e12 / rate);
  if (packet.kind != PacketKind::data) return end;
  const auto& path = core->stages.paths[core->messages[packet.message].path];
  const auto payload = packet.frame - core->transport_of(core->queue_pairs[packet.queue_pair].source).header.value;
  return std::max(end, core->stages.pass(path.first + path.sending, path.receiving, static_cast<double>(payload),
                                         k_long_ago, core->now));
}

// Ethernet: false when the buffer is full. The peer is told to stop in time when the class is lossless.
bool Hca::take_receive_buffer(const Packet& packet) {
  const int number = packet.traffic_class;
  const std::int64_t buffer = config->receive_buffer.value;
  auto& entry = port().at(number);
  if (entry.ingress + packet.frame > buffer) return false;
  entry.ingress += packet.frame;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  const bool has_to_tell = port().is_lossless(number) && !port().is_xoff(number);
  if (has_to_tell && entry.ingress >= buffer - entry.headroom) port().decide_xoff(number, k_none);
  return true;
}

void Hca::on_receive_done() {
  auto& here = port();
  const std::uint32_t id = core->packets.take_first(receiving);
  if (receiving.head != k_none) {
    auto& next = core->packets[receiving.head];
    next.time = end_of_receipt(next);
    core->events.push(next.time, EventKind::receive_done, port_id);
  }
  const int number = core->packets[id].traffic_class;
  const std::uint32_t frame = core->packets[id].frame;
  if (here.has_credits && here.is_lossless(number)) {
    here.release_credited(number, frame);
  } else {
    auto& entry = here.at(number);
    entry.ingress -= frame;
    const std::int64_t limit = config->receive_buffer.value - entry.headroom;
    const std::int64_t resume = std::max<std::int64_t>(0, limit - here.config().pfc.xon_offset.value);
    if (here.is_xoff(number) && entry.ingress <= resume) here.decide_xon(number);
  }
  process(id);
}

void Hca::process(std::uint32_t id) {
  const Packet packet = core->packets[id];
  core->packets.give_back(id);
  switch (packet.kind) {
    case PacketKind::data:
    case PacketKind::read_request:
      on_data(packet);
      return;
    case PacketKind::ack:
      on_ack(packet.queue_pair, packet.number);
      return;
    case PacketKind::nak:
      on_ack(packet.queue_pair, packet.number);
      rewind(packet.queue_pair, packet.number);
      update_readiness(packet.queue_pair);
      return;
    case PacketKind::cnp: {
      core->trains.disturb();
      auto& state = core->queue_pairs[packet.queue_pair];
      ++state.cnps;
      react(state, [&](CongestionControl& control) { control.on_cnp(core->now); });
      return;
    }
    case PacketKind::pause:
    case PacketKind::credit:
      return;
  }
}

void Hca::on_data(const Packet& packet) {
  ++core->delivered_packets;
  auto& state = core->queue_pairs[packet.queue_pair];
  if (packet.is_marked) {
    ++state.marked;
    if (state.control->on_mark(core->now)) {
      core->trains.disturb();
      answer(packet.queue_pair, PacketKind::cnp);
    }
  }
  if (transport().out_of_order) {
    accept_out_of_order(packet);
  } else if (packet.number == state.expected) {
    accept(packet);
  } else if (packet.number < state.expected) {
    answer(packet.queue_pair, PacketKind::ack);
  } else if (!state.has_sent_nak) {
    state.has_sent_nak = true;
    answer(packet.queue_pair, PacketKind::nak);
  }
}

void Hca::count_payload(QueuePairState& state, const Packet& packet) {
  state.last_delivered = core->now;
  if (packet.kind != PacketKind::data) return;
  const std::int64_t bytes = packet.frame - core->transport_of(state.source).header.value;
  state.delivered += bytes;
  core->delivered_bytes += bytes;
}

// The next packet in order.
void Hca::accept(const Packet& packet) {
  auto& state = core->queue_pairs[packet.queue_pair];
  ++state.expected;
  ++state.packets;
  ++core->accepted_packets;
  state.has_sent_nak = false;
  count_payload(state, packet);
  if (packet.is_last) finish_message(packet.message);
  // The data of a READ answer its request.
  if (packet.asks_ack && packet.kind == PacketKind::data) answer(packet.queue_pair, PacketKind::ack);
}

bool QueuePairState::note_arrival(std::uint32_t number) {
  if (number == expected && arrived.empty()) {
    ++expected;
    return true;
  }
  const std::uint32_t distance = number - expected;
  if (arrived.size() <= distance / 64) arrived.resize(distance / 64 + 1);
  auto& word = arrived[distance / 64];
  if ((word >> distance % 64 & 1) != 0) return false;
  word |= std::uint64_t{1} << distance % 64;
  while (!arrived.empty() && (arrived.front() & 1) != 0) {
    ++expected;
    std::uint64_t carry = 0;
    for (auto bits = arrived.rbegin(); bits != arrived.rend(); ++bits) {
      const std::uint64_t low = *bits & 1;
      *bits = *bits >> 1 | carry << 63;
      carry = low;
    }
    while (!arrived.empty() && arrived.back() == 0) arrived.pop_back();
  }
  return true;
}

// Any new packet; a message is done when all its packets are here.
void Hca::accept_out_of_order(const Packet& packet) {
  auto& state = core->queue_pairs[packet.queue_pair];
  const std::uint32_t before = state.expected;
  if (packet.number < before || !state.note_arrival(packet.number)) {
    answer(packet.queue_pair, PacketKind::ack);
    return;
  }
  ++state.packets;
  ++core->accepted_packets;
  count_payload(state, packet);
  const bool is_ack_due = state.expected / state.ack_every != before / state.ack_every || packet.asks_ack ||
                          (state.arrived.empty() && state.expected == state.end_packet);
  auto& message = core->messages[packet.message];
  ++message.received;
  if (message.received == message.packets) finish_message(packet.message);
  if (is_ack_due) answer(packet.queue_pair, PacketKind::ack);
}

void Hca::finish_message(std::uint32_t number) {
  core->trains.disturb();
  const auto& message = core->messages[number];
  const std::uint32_t owner = message.queue_pair;
  if (message.verb == Verb::read && !core->queue_pairs[owner].is_response) {
    start_read_response(owner, number);
    return;
  }
  const Time latency = config->receive_latency.ps;
  if (latency == 0) {
    on_message_done(number);
  } else {
    core->events.push(core->now + latency, EventKind::message_done, number);
  }
}

// A READ request arrived: its data go back on a queue pair of their own.
void Hca::start_read_response(std::uint32_t owner, std::uint32_t number) {
  const std::uint32_t carrier = core->queue_pairs[owner].response;
  const auto& request = core->messages[number];
  const Message data{QueuePairId{carrier}, Bytes{request.bytes}, Verb::read, {}, 0, HostPathId{request.path}};
  const std::uint32_t made = append_message(carrier, data);
  core->messages[made].parent = number;
  update_readiness(carrier);
}

// Puts an ACK, NAK or CNP about `queue_pair` into the host's own egress queue.
void Hca::answer(std::uint32_t queue_pair, PacketKind kind) {
  const auto& state = core->queue_pairs[queue_pair];
  const std::uint32_t id = core->packets.take();
  auto& packet = core->packets[id];
  const bool is_cnp = kind == PacketKind::cnp;
  packet.kind = kind;
  packet.queue_pair = queue_pair;
  packet.number = state.expected;
  packet.frame = static_cast<std::uint32_t>((is_cnp ? transport().cnp : transport().ack).value);
  packet.gap = static_cast<std::uint8_t>(transport().wire_gap.value);
  packet.route = state.reverse_route;
  packet.traffic_class = is_cnp ? static_cast<std::uint8_t>(transport().cnp_class) : state.ack_class;
  port().enqueue(id);
  port().kick();
}

// The data are in memory: tells the caller, and for a READ the initiator knows too.
void Hca::on_message_done(std::uint32_t number) {
  core->trains.disturb();
  auto& messages = core->messages;
  messages[number].delivered = core->now;
  const std::uint32_t parent = messages[number].parent;
  const std::uint32_t known = parent == k_none ? number : parent;
  messages[known].delivered = core->now;
  if (core->on_delivered) core->on_delivered({MessageId{known}, messages[known].tag, Duration{core->now}});
  if (parent == k_none) return;
  const std::uint32_t owner = messages[parent].queue_pair;
  --core->queue_pairs[owner].reads_outstanding;
  complete(parent);
  // In order, the data also say that everything before the READ arrived.
  if (!transport().out_of_order) on_ack(owner, messages[parent].first_packet + 1);
  update_readiness(owner);
}

void Hca::complete(std::uint32_t number) {
  core->trains.disturb();
  auto& message = core->messages[number];
  message.completed = core->now;
  if (message.parent != k_none) return;
  --core->unfinished_messages;
  ++core->finished_messages;
  if (core->on_completed) core->on_completed({MessageId{number}, message.tag, Duration{core->now}});
}

}  // namespace fabricast::packet
