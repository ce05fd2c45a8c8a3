// SPDX-License-Identifier: Apache-2.0
// InfiniBand links: credits per lane in 64-byte blocks, counters modulo 2^32, and an input-queued switch with virtual
// output queues. An egress serves its inputs in turn; an input sends at most `input_speedup` packets at a time. An
// egress that ends a packet chooses among the inputs that are free at that moment; inputs that end at the same moment
// come too late.
#include <algorithm>
#include <bit>

#include "packet/engine.hpp"

namespace fabricast::packet {

namespace {

std::uint32_t blocks_of(std::uint32_t bytes) { return (bytes + k_credit_block - 1) / k_credit_block; }

}  // namespace

bool Simulation::Engine::has_credit(std::uint32_t port, int traffic_class, std::uint32_t frame) {
  if ((ports[port].lossless >> traffic_class & 1) == 0) return true;
  const auto& lane = lane_of(port, traffic_class);
  if (static_cast<std::int32_t>(lane.limit - lane.sent - blocks_of(frame)) >= 0) return true;
  if (count(port, traffic_class).starved_since == k_never) begin_starvation(port, traffic_class);
  return false;
}

void Simulation::Engine::take_credit(std::uint32_t port, int traffic_class, std::uint32_t frame) {
  if ((ports[port].lossless >> traffic_class & 1) == 0) return;
  lane_of(port, traffic_class).sent += blocks_of(frame);
  if (count(port, traffic_class).starved_since != k_never) end_starvation(port, traffic_class);
}

// A packet waits for credits: blames the egress queue that fills the peer's input, and what blocks that queue.
void Simulation::Engine::begin_starvation(std::uint32_t port, int traffic_class) {
  auto& seldom = count(port, traffic_class);
  seldom.starved_since = now;
  seldom.first_paused = std::min(seldom.first_paused, now);
  auto& root = at(port, traffic_class).root;
  const auto [because, lane] = blocking_egress(ports[port].peer, traffic_class);
  root = because;
  if (because == k_none) return;
  const std::uint32_t above = at(because, lane).root;
  if (count(because, lane).starved_since != k_never && above != k_none) root = above;
  count_pause_cause(port, traffic_class, because, root);
}

void Simulation::Engine::end_starvation(std::uint32_t port, int traffic_class) {
  auto& seldom = count(port, traffic_class);
  const std::uint32_t root = at(port, traffic_class).root;
  seldom.starved += now - seldom.starved_since;
  seldom.last_paused = now;
  if (root != k_none) record_pause(port, traffic_class, root, seldom.starved_since);
  seldom.starved_since = k_never;
}

// Packets that came in by `port` in `in_lane` and go on by `egress` in `lane`; looks at the first ones behind the head
// only.
std::uint32_t Simulation::Engine::packets_between(std::uint32_t port, int in_lane, std::uint32_t egress,
                                                  int lane) const {
  constexpr int k_packets_looked_at = 16;
  const auto& memory = switches[ports[port].node];
  const auto& list = memory.inputs[lane][std::size_t{ports[egress].local} * memory.num_ports + ports[port].local];
  std::uint32_t found = 0;
  for (auto id = list.head; id != k_none; id = packets[id].next)
    if (packets[id].ingress_class == in_lane) ++found;
  int looked_at = 0;
  for (auto id = credits[static_cast<std::size_t>(in_lane)][port].behind.head;
       id != k_none && looked_at < k_packets_looked_at; id = packets[id].next, ++looked_at)
    if (packets[id].egress == egress && packets[id].traffic_class == lane) ++found;
  return found;
}

/// The egress queue that keeps packets of lane `in_lane` of input `port` waiting: of those that they want, the one that
/// most other inputs want too or that has no credits itself, then the one with most of the packets. A slow host blames
/// itself; none when the input is empty.
std::pair<std::uint32_t, int> Simulation::Engine::blocking_egress(std::uint32_t port, int in_lane) const {
  const auto& state = ports[port];
  if (state.is_host) return {at(port, in_lane).ingress > 0 ? port : k_none, in_lane};
  const auto& memory = switches[state.node];
  std::pair<int, std::uint32_t> most{-1, 0};
  std::pair<std::uint32_t, int> blocking{k_none, in_lane};
  for (int lane = 0; lane < k_num_classes; ++lane) {
    if (memory.inputs[lane].empty()) continue;
    for (const auto sibling : network.nodes[state.node].ports) {
      const std::uint32_t packets_here = packets_between(port, in_lane, index(sibling), lane);
      if (packets_here == 0) continue;
      int rivals = count(index(sibling), lane).starved_since != k_never ? 1 : 0;
      for (std::uint32_t word = 0; word < memory.words; ++word) {
        auto bits = memory.waiting[lane][std::size_t{ports[index(sibling)].local} * memory.words + word];
        if (word == state.local / 64) bits &= ~(std::uint64_t{1} << state.local % 64);
        rivals += std::popcount(bits);
      }
      if (std::pair{rivals, packets_here} <= most) continue;
      most = {rivals, packets_here};
      blocking = {index(sibling), lane};
    }
  }
  return blocking;
}

// Counts a packet in the input buffer of its lane.
void Simulation::Engine::receive_credited(std::uint32_t port, std::uint32_t id) {
  auto& packet = packets[id];
  packet.counted = blocks_of(packet.frame) * k_credit_block;
  auto& entry = at(port, packet.traffic_class);
  entry.ingress += packet.counted;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  if ((ports[port].lossless >> packet.traffic_class & 1) != 0)
    lane_of(port, packet.traffic_class).received += blocks_of(packet.frame);
  if (ports[port].is_host) return;
  auto& memory = switches[ports[port].node];
  memory.used += packet.counted;
  memory.max_used = std::max(memory.max_used, memory.used);
}

void Simulation::Engine::release_credited(std::uint32_t port, int traffic_class, std::uint32_t bytes) {
  const std::uint32_t counted = blocks_of(bytes) * k_credit_block;
  at(port, traffic_class).ingress -= counted;
  if (!ports[port].is_host) switches[ports[port].node].used -= counted;
  if ((ports[port].lossless >> traffic_class & 1) != 0) consider_credit_update(port, traffic_class);
}

// An update goes out when the limit changed and the interval since the last one has passed.
void Simulation::Engine::consider_credit_update(std::uint32_t port, int traffic_class) {
  auto& lane = lane_of(port, traffic_class);
  if (lane.is_due) return;
  const Time due = std::max(lane.next_update, now + config_of(port).credits.turnaround.ps);
  if (due <= now) {
    send_credit(port, traffic_class);
    return;
  }
  lane.is_due = true;
  events.push(due, EventKind::credit_due, port * k_num_classes + static_cast<unsigned>(traffic_class));
}

void Simulation::Engine::send_credit(std::uint32_t port, int traffic_class) {
  auto& lane = lane_of(port, traffic_class);
  lane.is_due = false;
  const auto& rules = config_of(port).credits;
  const auto used = static_cast<std::uint32_t>(at(port, traffic_class).ingress / k_credit_block);
  const auto size = static_cast<std::uint32_t>(rules.lane_buffer.value / k_credit_block);
  const std::uint32_t limit = lane.received + size - used;
  if (limit == lane.granted) return;
  lane.granted = limit;
  lane.next_update = now + rules.credit_interval.ps;
  const std::uint32_t id = take_packet();
  auto& packet = packets[id];
  packet.kind = PacketKind::credit;
  packet.traffic_class = static_cast<std::uint8_t>(traffic_class);
  packet.number = limit;
  append(ports[port].control, id);
  ports[port].has_control = true;
  ++count(port, traffic_class).pause_frames;
  kick(port);
}

void Simulation::Engine::on_credit_arrival(std::uint32_t port, const Packet& packet) {
  lane_of(port, packet.traffic_class).limit = packet.number;
  if (((ports[port].queued | ports[port].ready) >> packet.traffic_class & 1) != 0) kick(port);
}

// Offers a packet to its egress, or lets it wait until it is the first of its lane.
void Simulation::Engine::enqueue_at_input(std::uint32_t egress, std::uint32_t id) {
  auto& packet = packets[id];
  packet.egress = egress;
  const auto& memory = switches[ports[egress].node];
  if (!memory.config->credits.has_virtual_output_queues) {
    auto& lane = lane_of(packet.ingress, packet.ingress_class);
    if (lane.has_head) {
      append(lane.behind, id);
      return;
    }
    lane.has_head = true;
  }
  offer(id);
  kick(egress);
}

void Simulation::Engine::offer(std::uint32_t id) {
  const auto& packet = packets[id];
  const std::uint32_t egress = packet.egress;
  auto& memory = switches[ports[egress].node];
  auto& lists = memory.inputs[packet.traffic_class];
  if (lists.empty()) {
    lists.resize(std::size_t{memory.num_ports} * memory.num_ports);
    memory.last_served[packet.traffic_class].resize(memory.num_ports);
    memory.words = (memory.num_ports + 63) / 64;
    memory.waiting[packet.traffic_class].resize(std::size_t{memory.num_ports} * memory.words);
  }
  auto& queue = at(egress, packet.traffic_class);
  queue.queue_bytes += packet.frame;
  queue.max_queue = std::max(queue.max_queue, queue.queue_bytes);
  ports[egress].queued = static_cast<std::uint8_t>(ports[egress].queued | 1U << packet.traffic_class);
  const std::uint32_t input = ports[packet.ingress].local;
  const std::uint32_t local = ports[egress].local;
  memory.waiting[packet.traffic_class][std::size_t{local} * memory.words + input / 64] |= std::uint64_t{1}
                                                                                          << input % 64;
  append(lists[std::size_t{local} * memory.num_ports + input], id);
}

/// The next input to serve, as a position among the ports of the switch; none when no packet can go now.
std::uint32_t Simulation::Engine::arbitrate(std::uint32_t egress, int traffic_class, Time& earliest) {
  const auto& memory = switches[ports[egress].node];
  const auto& node = network.nodes[ports[egress].node];
  const std::uint32_t local = ports[egress].local;
  const auto* lists = &memory.inputs[traffic_class][std::size_t{local} * memory.num_ports];
  const auto* waiting = &memory.waiting[traffic_class][std::size_t{local} * memory.words];
  const std::uint32_t first = memory.last_served[traffic_class][local] + 1;
  // Inputs from `first` on, then from 0 on: one word more than there are, the first one twice.
  for (std::uint32_t i = 0; i <= memory.words; ++i) {
    const std::uint32_t word = (first / 64 + i) % memory.words;
    std::uint64_t bits = waiting[word];
    if (word == first / 64 && i == 0) bits &= ~std::uint64_t{0} << first % 64;
    if (word == first / 64 % memory.words && i == memory.words) bits &= (std::uint64_t{1} << first % 64) - 1;
    for (; bits != 0; bits &= bits - 1) {
      const auto input = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (may_serve(egress, traffic_class, index(node.ports[input]), lists[input].head, earliest)) return input;
    }
  }
  return k_none;
}

// Whether the first packet of an input for `egress` can go now; `earliest` = when time alone would let it.
bool Simulation::Engine::may_serve(std::uint32_t egress, int traffic_class, std::uint32_t port, std::uint32_t head,
                                   Time& earliest) {
  if (packets[head].time > now) {
    earliest = std::min(earliest, packets[head].time);
    return false;
  }
  const std::uint32_t others = ports[port].in_service - (port == ports[egress].serving ? 1 : 0);
  if (others >= config_of(egress).credits.input_speedup) return false;
  return has_credit(egress, traffic_class, packets[head].frame);
}

void Simulation::Engine::send_arbitrated(std::uint32_t egress, int traffic_class) {
  Time earliest = k_never;
  auto& memory = switches[ports[egress].node];
  const std::uint32_t local = ports[egress].local;
  const std::uint32_t input = arbitrate(egress, traffic_class, earliest);
  memory.last_served[traffic_class][local] = input;
  auto& list = memory.inputs[traffic_class][std::size_t{local} * memory.num_ports + input];
  const std::uint32_t id = take_first(list);
  if (list.head == k_none)
    memory.waiting[traffic_class][std::size_t{local} * memory.words + input / 64] &= ~(std::uint64_t{1} << input % 64);
  auto& packet = packets[id];
  auto& queue = at(egress, traffic_class);
  charge_class(egress, traffic_class, packet.frame);
  mark_congestion(egress, packet, queue.queue_bytes);
  queue.queue_bytes -= packet.frame;
  if (queue.queue_bytes == 0)
    ports[egress].queued = static_cast<std::uint8_t>(ports[egress].queued & ~(1U << traffic_class));
  take_credit(egress, traffic_class, packet.frame);
  const std::uint32_t ingress = packet.ingress;
  const int ingress_class = packet.ingress_class;
  const std::uint32_t frame = packet.frame;
  if (ports[egress].serving != k_none) {
    --ports[ports[egress].serving].in_service;
    ports[egress].served = ports[egress].serving;
  }
  ports[egress].serving = ingress;
  ++ports[ingress].in_service;
  transmit(egress, id);
  events.push(ports[egress].free_at, EventKind::input_free, egress);
  release_credited(ingress, ingress_class, frame);
  if (memory.config->credits.has_virtual_output_queues) return;
  auto& lane = lane_of(ingress, ingress_class);
  lane.has_head = lane.behind.head != k_none;
  if (!lane.has_head) return;
  const std::uint32_t next = take_first(lane.behind);
  offer(next);
  kick(packets[next].egress);
}

// Other egress ports may have waited for the input that `egress` served, when it could serve no more.
void Simulation::Engine::on_input_free(std::uint32_t egress) {
  auto& state = ports[egress];
  const std::uint32_t input = state.served != k_none ? state.served : state.serving;
  if (state.served != k_none) {
    state.served = k_none;
  } else {
    --ports[input].in_service;
    state.serving = k_none;
  }
  const auto& memory = switches[state.node];
  const std::uint32_t local = ports[input].local;
  for (const auto sibling : network.nodes[state.node].ports) {
    const auto& other = ports[index(sibling)];
    for (unsigned rest = other.queued; rest != 0; rest &= rest - 1) {
      const auto& waiting = memory.waiting[std::countr_zero(rest)];
      if ((waiting[std::size_t{other.local} * memory.words + local / 64] >> local % 64 & 1) == 0) continue;
      kick(index(sibling));
      break;
    }
  }
}

}  // namespace fabricast::packet
