// SPDX-License-Identifier: Apache-2.0
// A packet at its host: the receive buffer of a slow host, packet order, acknowledgements, CNPs, completions.
#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

void Simulation::Engine::arrive_at_host(std::uint32_t port, std::uint32_t id) {
  auto& packet = packets[id];
  packet.counted = packet.frame;
  auto& queue = receive_queues[port];
  const bool is_lossless = (ports[port].lossless >> packet.traffic_class & 1) != 0;
  if (!passes_stages(port, packet) || (queue.head == k_none && (packet.time = end_of_receipt(port, packet)) <= now)) {
    if (ports[port].has_credits && is_lossless) {
      receive_credited(port, id);
      release_credited(port, packet.traffic_class, packet.frame);
    }
    process(port, id);
    return;
  }
  if (ports[port].has_credits && is_lossless) {
    receive_credited(port, id);
  } else if (!take_receive_buffer(port, packet)) {
    drop(port, id);
    return;
  }
  if (queue.head == k_none) events.push(packets[id].time, EventKind::receive_done, port);
  append(queue, id);
}

// Whether the packet has to wait for its host. What answers data does not, but by the rate of the whole port.
bool Simulation::Engine::passes_stages(std::uint32_t port, const Packet& packet) const {
  const bool is_lossless = (ports[port].lossless >> packet.traffic_class & 1) != 0;
  if (is_lossless && hca_of(port).receive_rate.bytes_per_s > 0) return true;
  return packet.kind == PacketKind::data && host_paths[messages[packet.message].path].receiving > 0;
}

// When the packet, first in its port's queue, is in memory.
Time Simulation::Engine::end_of_receipt(std::uint32_t port, const Packet& packet) {
  Time end = now;
  const double rate = hca_of(port).receive_rate.bytes_per_s;
  if (rate > 0 && (ports[port].lossless >> packet.traffic_class & 1) != 0)
    end += static_cast<Time>(packet.frame * 1e12 / rate);
  if (packet.kind != PacketKind::data) return end;
  const auto& path = host_paths[messages[packet.message].path];
  const auto payload = packet.frame - transport_of(queue_pairs[packet.queue_pair].source).header.value;
  return std::max(end,
                  pass_stages(path.first + path.sending, path.receiving, static_cast<double>(payload), k_long_ago));
}

// Ethernet: false when the buffer is full. The peer is told to stop in time when the class is lossless.
bool Simulation::Engine::take_receive_buffer(std::uint32_t port, const Packet& packet) {
  const int number = packet.traffic_class;
  const std::int64_t buffer = hca_of(port).receive_buffer.value;
  auto& entry = at(port, number);
  if (entry.ingress + packet.frame > buffer) return false;
  entry.ingress += packet.frame;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  const bool is_lossless = (ports[port].lossless >> number & 1) != 0;
  const bool is_told = (ports[port].xoff >> number & 1) != 0;
  if (is_lossless && !is_told && entry.ingress >= buffer - entry.headroom) decide_xoff(port, number, k_none);
  return true;
}

void Simulation::Engine::on_receive_done(std::uint32_t port) {
  auto& queue = receive_queues[port];
  const std::uint32_t id = take_first(queue);
  if (queue.head != k_none) {
    packets[queue.head].time = end_of_receipt(port, packets[queue.head]);
    events.push(packets[queue.head].time, EventKind::receive_done, port);
  }
  const int number = packets[id].traffic_class;
  const std::uint32_t frame = packets[id].frame;
  const bool is_lossless = (ports[port].lossless >> number & 1) != 0;
  if (ports[port].has_credits && is_lossless) {
    release_credited(port, number, frame);
  } else {
    auto& entry = at(port, number);
    entry.ingress -= frame;
    const std::int64_t limit = hca_of(port).receive_buffer.value - entry.headroom;
    const std::int64_t resume = std::max<std::int64_t>(0, limit - config_of(port).pfc.xon_offset.value);
    if ((ports[port].xoff >> number & 1) != 0 && entry.ingress <= resume) decide_xon(port, number);
  }
  process(port, id);
}

void Simulation::Engine::process(std::uint32_t port, std::uint32_t id) {
  const Packet packet = packets[id];
  give_back(id);
  switch (packet.kind) {
    case PacketKind::data:
    case PacketKind::read_request:
      on_data(port, packet);
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
      trains.disturb();
      auto& state = queue_pairs[packet.queue_pair];
      ++state.cnps;
      state.machine.on_cnp(transport_of(port).dcqcn, now);
      return;
    }
    case PacketKind::pause:
    case PacketKind::credit:
      return;
  }
}

void Simulation::Engine::on_data(std::uint32_t port, const Packet& packet) {
  ++delivered_packets;
  auto& state = queue_pairs[packet.queue_pair];
  if (packet.is_marked) {
    ++state.marked;
    notify_congestion(port, packet.queue_pair);
  }
  if (transport_of(port).out_of_order) {
    accept_out_of_order(port, packet);
  } else if (packet.number == state.expected) {
    accept(port, packet);
  } else if (packet.number < state.expected) {
    answer(port, packet.queue_pair, PacketKind::ack);
  } else if (!state.has_sent_nak) {
    state.has_sent_nak = true;
    answer(port, packet.queue_pair, PacketKind::nak);
  }
}

void Simulation::Engine::count_payload(QueuePairState& state, const Packet& packet) {
  state.last_delivered = now;
  if (packet.kind != PacketKind::data) return;
  const std::int64_t bytes = packet.frame - transport_of(state.source).header.value;
  state.delivered += bytes;
  delivered_bytes += bytes;
}

// The next packet in order.
void Simulation::Engine::accept(std::uint32_t port, const Packet& packet) {
  auto& state = queue_pairs[packet.queue_pair];
  ++state.expected;
  ++state.packets;
  ++accepted_packets;
  state.has_sent_nak = false;
  count_payload(state, packet);
  if (packet.is_last) finish_message(port, packet.message);
  // The data of a READ answer its request.
  if (packet.asks_ack && packet.kind == PacketKind::data) answer(port, packet.queue_pair, PacketKind::ack);
}

// Marks packet `number` as arrived and moves `expected` past all that are here; false when it was here before.
bool Simulation::Engine::note_arrival(QueuePairState& state, std::uint32_t number) {
  if (number == state.expected && state.arrived.empty()) {
    ++state.expected;
    return true;
  }
  const std::uint32_t distance = number - state.expected;
  if (state.arrived.size() <= distance / 64) state.arrived.resize(distance / 64 + 1);
  auto& word = state.arrived[distance / 64];
  if ((word >> distance % 64 & 1) != 0) return false;
  word |= std::uint64_t{1} << distance % 64;
  while (!state.arrived.empty() && (state.arrived.front() & 1) != 0) {
    ++state.expected;
    std::uint64_t carry = 0;
    for (auto bits = state.arrived.rbegin(); bits != state.arrived.rend(); ++bits) {
      const std::uint64_t low = *bits & 1;
      *bits = *bits >> 1 | carry << 63;
      carry = low;
    }
    while (!state.arrived.empty() && state.arrived.back() == 0) state.arrived.pop_back();
  }
  return true;
}

// Any new packet; a message is done when all its packets are here.
void Simulation::Engine::accept_out_of_order(std::uint32_t port, const Packet& packet) {
  auto& state = queue_pairs[packet.queue_pair];
  const std::uint32_t before = state.expected;
  if (packet.number < before || !note_arrival(state, packet.number)) {
    answer(port, packet.queue_pair, PacketKind::ack);
    return;
  }
  ++state.packets;
  ++accepted_packets;
  count_payload(state, packet);
  const bool is_ack_due = state.expected / state.ack_every != before / state.ack_every || packet.asks_ack ||
                          (state.arrived.empty() && state.expected == state.end_packet);
  auto& message = messages[packet.message];
  ++message.received;
  if (message.received == message.packets) finish_message(port, packet.message);
  if (is_ack_due) answer(port, packet.queue_pair, PacketKind::ack);
}

void Simulation::Engine::finish_message(std::uint32_t port, std::uint32_t number) {
  trains.disturb();
  const auto& message = messages[number];
  const std::uint32_t owner = message.queue_pair;
  if (message.verb == Verb::read && !queue_pairs[owner].is_response) {
    start_read_response(owner, number);
    return;
  }
  const Time latency = hca_of(port).receive_latency.ps;
  if (latency == 0) {
    on_message_done(number);
  } else {
    events.push(now + latency, EventKind::message_done, number);
  }
}

// A READ request arrived: its data go back on a queue pair of their own.
void Simulation::Engine::start_read_response(std::uint32_t owner, std::uint32_t number) {
  const Message data{QueuePairId{queue_pairs[owner].response}, Bytes{messages[number].bytes}, Verb::read, {}, 0,
                     HostPathId{messages[number].path}};
  const std::uint32_t carrier = queue_pairs[owner].response;
  const std::uint32_t made = append_message(carrier, data);
  messages[made].parent = number;
  update_readiness(carrier);
}

// Puts an ACK, NAK or CNP about `queue_pair` into the host's own egress queue.
void Simulation::Engine::answer(std::uint32_t port, std::uint32_t queue_pair, PacketKind kind) {
  const auto& state = queue_pairs[queue_pair];
  const auto& transport = transport_of(port);
  const std::uint32_t id = take_packet();
  auto& packet = packets[id];
  packet.kind = kind;
  packet.queue_pair = queue_pair;
  packet.number = state.expected;
  packet.frame = static_cast<std::uint32_t>((kind == PacketKind::cnp ? transport.cnp : transport.ack).value);
  packet.gap = static_cast<std::uint8_t>(transport.wire_gap.value);
  packet.route = state.reverse_route;
  packet.traffic_class = kind == PacketKind::cnp ? static_cast<std::uint8_t>(transport.cnp_class) : state.ack_class;
  enqueue(port, id);
  kick(port);
}

// At most one CNP per interval and queue pair.
void Simulation::Engine::notify_congestion(std::uint32_t port, std::uint32_t queue_pair) {
  const auto& dcqcn = transport_of(port).dcqcn;
  auto& state = queue_pairs[queue_pair];
  if (!dcqcn.enabled || now - state.last_cnp < dcqcn.cnp_interval.ps) return;
  state.last_cnp = now;
  trains.disturb();
  answer(port, queue_pair, PacketKind::cnp);
}

// The data are in memory: tells the caller, and for a READ the initiator knows too.
void Simulation::Engine::on_message_done(std::uint32_t number) {
  trains.disturb();
  messages[number].delivered = now;
  const std::uint32_t parent = messages[number].parent;
  const std::uint32_t known = parent == k_none ? number : parent;
  messages[known].delivered = now;
  if (on_delivered) on_delivered({MessageId{known}, messages[known].tag, Duration{now}});
  if (parent == k_none) return;
  const std::uint32_t owner = messages[parent].queue_pair;
  --queue_pairs[owner].reads_outstanding;
  complete(parent);
  // In order, the data also say that everything before the READ arrived.
  if (!transport_of(queue_pairs[owner].source).out_of_order) on_ack(owner, messages[parent].first_packet + 1);
  update_readiness(owner);
}

void Simulation::Engine::complete(std::uint32_t number) {
  trains.disturb();
  auto& message = messages[number];
  message.completed = now;
  if (message.parent != k_none) return;
  --unfinished_messages;
  ++finished_messages;
  if (on_completed) on_completed({MessageId{number}, message.tag, Duration{now}});
}

}  // namespace fabricast::packet
