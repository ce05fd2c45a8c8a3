// SPDX-License-Identifier: Apache-2.0
// An input-queued switch with virtual output queues, for links with credits. An egress serves its inputs in turn; an
// input sends at most `input_speedup` packets at a time. An egress that ends a packet chooses among the inputs that are
// free at that moment; inputs that end at the same moment come too late.
#include <algorithm>
#include <bit>

#include "packet/core.hpp"

namespace fabricast::packet {

// Packets that came in by `port` in `in_lane` and go on by `egress` in `lane`; looks at the first ones behind the head
// only.
std::uint32_t Switch::packets_between(const Port& port, int in_lane, const Port& egress, int lane) const {
  constexpr int k_packets_looked_at = 16;
  const auto& packets = core->packets;
  const auto& list = inputs[lane][std::size_t{egress.local} * num_ports + port.local];
  std::uint32_t found = 0;
  for (auto id = list.head; id != k_none; id = packets[id].next)
    if (packets[id].ingress_class == in_lane) ++found;
  int looked_at = 0;
  for (auto id = port.lane_of(in_lane).behind.head; id != k_none && looked_at < k_packets_looked_at;
       id = packets[id].next, ++looked_at)
    if (packets[id].egress == egress.port_id() && packets[id].traffic_class == lane) ++found;
  return found;
}

/// The egress queue that keeps packets of lane `in_lane` of input `port` waiting: of those that they want, the one that
/// most other inputs want too or that has no credits itself, then the one with most of the packets; none when the input
/// is empty.
std::pair<std::uint32_t, int> Switch::blocking_egress(const Port& port, int in_lane) const {
  std::pair<int, std::uint32_t> most{-1, 0};
  std::pair<std::uint32_t, int> blocking{k_none, in_lane};
  for (int lane = 0; lane < k_num_classes; ++lane) {
    if (inputs[lane].empty()) continue;
    for (const auto sibling_id : *ports) {
      const auto& sibling = core->ports[index(sibling_id)];
      const std::uint32_t packets_here = packets_between(port, in_lane, sibling, lane);
      if (packets_here == 0) continue;
      int rivals = sibling.count(lane).starved_since != k_never ? 1 : 0;
      for (std::uint32_t word = 0; word < words; ++word) {
        auto bits = waiting[lane][std::size_t{sibling.local} * words + word];
        if (word == port.local / 64) bits &= ~(std::uint64_t{1} << port.local % 64);
        rivals += std::popcount(bits);
      }
      if (std::pair{rivals, packets_here} <= most) continue;
      most = {rivals, packets_here};
      blocking = {sibling.port_id(), lane};
    }
  }
  return blocking;
}

bool Switch::holds_packets_of(const Port& egress, int traffic_class, const Port& ingress, int in_class) const {
  const auto& packets = core->packets;
  auto id = k_none;
  if (ingress.has_credits) {
    const auto& lists = inputs[traffic_class];
    if (!lists.empty()) id = lists[std::size_t{egress.local} * num_ports + ingress.local].head;
    while (id != k_none && packets[id].ingress_class != in_class) id = packets[id].next;
  } else {
    id = egress.at(traffic_class).queue.head;
    while (id != k_none && packets[id].ingress != ingress.port_id()) id = packets[id].next;
  }
  return id != k_none;
}

// Offers a packet to its egress, or lets it wait until it is the first of its lane.
void Switch::enqueue_at_input(std::uint32_t egress, std::uint32_t id) {
  auto& packet = core->packets[id];
  packet.egress = egress;
  if (!config->credits.has_virtual_output_queues) {
    auto& lane = core->ports[packet.ingress].lane_of(packet.ingress_class);
    if (lane.has_head) {
      core->packets.append(lane.behind, id);
      return;
    }
    lane.has_head = true;
  }
  offer(id);
  core->ports[egress].kick();
}

void Switch::offer(std::uint32_t id) {
  const auto& packet = core->packets[id];
  auto& egress = core->ports[packet.egress];
  const int lane = packet.traffic_class;
  auto& lists = inputs[lane];
  if (lists.empty()) {
    lists.resize(std::size_t{num_ports} * num_ports);
    last_served[lane].resize(num_ports);
    words = (num_ports + 63) / 64;
    waiting[lane].resize(std::size_t{num_ports} * words);
  }
  auto& queue = egress.at(lane);
  queue.queue_bytes += packet.frame;
  queue.max_queue = std::max(queue.max_queue, queue.queue_bytes);
  egress.queued = static_cast<std::uint8_t>(egress.queued | 1U << lane);
  const std::uint32_t input = core->ports[packet.ingress].local;
  waiting[lane][std::size_t{egress.local} * words + input / 64] |= std::uint64_t{1} << input % 64;
  core->packets.append(lists[std::size_t{egress.local} * num_ports + input], id);
}

/// The next input to serve, as a position among the ports of the switch; none when no packet can go now.
std::uint32_t Switch::arbitrate(Port& egress, int traffic_class, Time& earliest) const {
  const auto* lists = &inputs[traffic_class][std::size_t{egress.local} * num_ports];
  const auto* wanting = &waiting[traffic_class][std::size_t{egress.local} * words];
  const std::uint32_t first = last_served[traffic_class][egress.local] + 1;
  // Inputs from `first` on, then from 0 on: one word more than there are, the first one twice.
  for (std::uint32_t i = 0; i <= words; ++i) {
    const std::uint32_t word = (first / 64 + i) % words;
    std::uint64_t bits = wanting[word];
    if (word == first / 64 && i == 0) bits &= ~std::uint64_t{0} << first % 64;
    if (word == first / 64 % words && i == words) bits &= (std::uint64_t{1} << first % 64) - 1;
    for (; bits != 0; bits &= bits - 1) {
      const auto input = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      const auto& port = core->ports[index((*ports)[input])];
      if (may_serve(egress, traffic_class, port, lists[input].head, earliest)) return input;
    }
  }
  return k_none;
}

// Whether the first packet of an input for `egress` can go now; `earliest` = when time alone would let it.
bool Switch::may_serve(Port& egress, int traffic_class, const Port& port, std::uint32_t head, Time& earliest) const {
  const auto& packet = core->packets[head];
  if (packet.time > core->now) {
    earliest = std::min(earliest, packet.time);
    return false;
  }
  const std::uint32_t others = port.in_service - (port.port_id() == egress.serving ? 1 : 0);
  if (others >= config->credits.input_speedup) return false;
  return egress.has_credit(traffic_class, packet.frame);
}

void Switch::send_arbitrated(Port& egress, int traffic_class) {
  Time earliest = k_never;
  const std::uint32_t input = arbitrate(egress, traffic_class, earliest);
  last_served[traffic_class][egress.local] = input;
  auto& list = inputs[traffic_class][std::size_t{egress.local} * num_ports + input];
  const std::uint32_t id = core->packets.take_first(list);
  if (list.head == k_none)
    waiting[traffic_class][std::size_t{egress.local} * words + input / 64] &= ~(std::uint64_t{1} << input % 64);
  auto& packet = core->packets[id];
  auto& queue = egress.at(traffic_class);
  egress.charge_class(traffic_class, packet.frame);
  egress.mark_congestion(packet, queue.queue_bytes);
  queue.queue_bytes -= packet.frame;
  if (queue.queue_bytes == 0) egress.queued = static_cast<std::uint8_t>(egress.queued & ~(1U << traffic_class));
  egress.take_credit(traffic_class, packet.frame);
  auto& ingress = core->ports[packet.ingress];
  const int in_lane = packet.ingress_class;
  const std::uint32_t frame = packet.frame;
  if (egress.serving != k_none) {
    --core->ports[egress.serving].in_service;
    egress.served = egress.serving;
  }
  egress.serving = ingress.port_id();
  ++ingress.in_service;
  egress.transmit(id);
  core->events.push(egress.free_at, EventKind::input_free, egress.port_id());
  ingress.release_credited(in_lane, frame);
  if (config->credits.has_virtual_output_queues) return;
  auto& lane = ingress.lane_of(in_lane);
  lane.has_head = lane.behind.head != k_none;
  if (!lane.has_head) return;
  const std::uint32_t next = core->packets.take_first(lane.behind);
  offer(next);
  core->ports[core->packets[next].egress].kick();
}

// Other egress ports may have waited for the input that `egress` served, when it could serve no more.
void Switch::on_input_free(Port& egress) {
  const auto& input = core->ports[egress.served != k_none ? egress.served : egress.serving];
  if (egress.served != k_none) {
    egress.served = k_none;
  } else {
    --core->ports[egress.serving].in_service;
    egress.serving = k_none;
  }
  for (const auto sibling : *ports) {
    auto& other = core->ports[index(sibling)];
    for (unsigned rest = other.queued; rest != 0; rest &= rest - 1) {
      const auto& wanting = waiting[std::countr_zero(rest)];
      if ((wanting[std::size_t{other.local} * words + input.local / 64] >> input.local % 64 & 1) == 0) continue;
      other.kick();
      break;
    }
  }
}

}  // namespace fabricast::packet
