// SPDX-License-Identifier: Apache-2.0
// InfiniBand links: credits per lane in 64-byte blocks, counters modulo 2^32, and an input-queued switch with virtual
// output queues. An egress serves its inputs in turn; an input sends at most `input_speedup` packets at a time. An
// egress that ends a packet chooses among the inputs that are free at that moment; inputs that end at the same moment
// come too late.
#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

namespace {

std::uint32_t blocks_of(std::uint32_t bytes) { return (bytes + k_credit_block - 1) / k_credit_block; }

}  // namespace

bool Simulation::Engine::has_credit(std::uint32_t port, int traffic_class, std::uint32_t frame) {
  if ((ports[port].lossless >> traffic_class & 1) == 0) return true;
  const auto& lane = credits[static_cast<std::size_t>(traffic_class) * ports.size() + port];
  const bool has = static_cast<std::int32_t>(lane.limit - lane.sent - blocks_of(frame)) >= 0;
  if (!has) {
    auto& seldom = count(port, traffic_class);
    seldom.starved_since = std::min(seldom.starved_since, now);
  }
  return has;
}

void Simulation::Engine::take_credit(std::uint32_t port, int traffic_class, std::uint32_t frame) {
  if ((ports[port].lossless >> traffic_class & 1) == 0) return;
  credits[static_cast<std::size_t>(traffic_class) * ports.size() + port].sent += blocks_of(frame);
  auto& seldom = count(port, traffic_class);
  if (seldom.starved_since == k_never) return;
  seldom.starved += now - seldom.starved_since;
  seldom.starved_since = k_never;
}

// Counts a packet in the input buffer of its lane.
void Simulation::Engine::receive_credited(std::uint32_t port, std::uint32_t id) {
  auto& packet = packets[id];
  packet.counted = blocks_of(packet.frame) * k_credit_block;
  auto& entry = at(port, packet.traffic_class);
  entry.ingress += packet.counted;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  if ((ports[port].lossless >> packet.traffic_class & 1) != 0)
    credits[static_cast<std::size_t>(packet.traffic_class) * ports.size() + port].received += blocks_of(packet.frame);
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
  auto& lane = credits[static_cast<std::size_t>(traffic_class) * ports.size() + port];
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
  auto& lane = credits[static_cast<std::size_t>(traffic_class) * ports.size() + port];
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
  credits[static_cast<std::size_t>(packet.traffic_class) * ports.size() + port].limit = packet.number;
  if (((ports[port].queued | ports[port].ready) >> packet.traffic_class & 1) != 0) kick(port);
}

// Offers a packet to its egress, or lets it wait until it is the first of its lane.
void Simulation::Engine::enqueue_at_input(std::uint32_t egress, std::uint32_t id) {
  auto& packet = packets[id];
  packet.egress = egress;
  const auto& memory = switches[ports[egress].node];
  if (!memory.config->credits.has_virtual_output_queues) {
    auto& lane = credits[static_cast<std::size_t>(packet.traffic_class) * ports.size() + packet.ingress];
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
  }
  auto& queue = at(egress, packet.traffic_class);
  queue.queue_bytes += packet.frame;
  queue.max_queue = std::max(queue.max_queue, queue.queue_bytes);
  ports[egress].queued = static_cast<std::uint8_t>(ports[egress].queued | 1U << packet.traffic_class);
  append(lists[std::size_t{ports[egress].local} * memory.num_ports + ports[packet.ingress].local], id);
}

/// The next input to serve, as a position among the ports of the switch; none when no packet can go now.
std::uint32_t Simulation::Engine::arbitrate(std::uint32_t egress, int traffic_class, Time& earliest) {
  const auto& memory = switches[ports[egress].node];
  const auto& node = network.nodes[ports[egress].node];
  const std::uint32_t local = ports[egress].local;
  const auto* lists = &memory.inputs[traffic_class][std::size_t{local} * memory.num_ports];
  std::uint32_t input = memory.last_served[traffic_class][local];
  for (std::uint32_t tried = 0; tried < memory.num_ports; ++tried) {
    if (++input >= memory.num_ports) input = 0;
    const std::uint32_t head = lists[input].head;
    if (head == k_none) continue;
    if (packets[head].time > now) {
      earliest = std::min(earliest, packets[head].time);
      continue;
    }
    const std::uint32_t port = index(node.ports[input]);
    const std::uint32_t others = ports[port].in_service - (port == ports[egress].serving ? 1 : 0);
    if (others >= memory.config->credits.input_speedup) continue;
    if (has_credit(egress, traffic_class, packets[head].frame)) return input;
  }
  return k_none;
}

void Simulation::Engine::send_arbitrated(std::uint32_t egress, int traffic_class) {
  Time earliest = k_never;
  auto& memory = switches[ports[egress].node];
  const std::uint32_t local = ports[egress].local;
  const std::uint32_t input = arbitrate(egress, traffic_class, earliest);
  memory.last_served[traffic_class][local] = input;
  const std::uint32_t id = take_first(memory.inputs[traffic_class][std::size_t{local} * memory.num_ports + input]);
  auto& packet = packets[id];
  auto& queue = at(egress, traffic_class);
  charge_class(egress, traffic_class, packet.frame);
  mark_congestion(egress, packet, queue.queue_bytes);
  queue.queue_bytes -= packet.frame;
  if (queue.queue_bytes == 0)
    ports[egress].queued = static_cast<std::uint8_t>(ports[egress].queued & ~(1U << traffic_class));
  take_credit(egress, traffic_class, packet.frame);
  const std::uint32_t ingress = packet.ingress;
  const std::uint32_t frame = packet.frame;
  if (ports[egress].serving != k_none) {
    --ports[ports[egress].serving].in_service;
    ports[egress].served = ports[egress].serving;
  }
  ports[egress].serving = ingress;
  ++ports[ingress].in_service;
  transmit(egress, id);
  events.push(ports[egress].free_at, EventKind::input_free, egress);
  release_credited(ingress, traffic_class, frame);
  if (memory.config->credits.has_virtual_output_queues) return;
  auto& lane = credits[static_cast<std::size_t>(traffic_class) * ports.size() + ingress];
  lane.has_head = lane.behind.head != k_none;
  if (!lane.has_head) return;
  const std::uint32_t next = take_first(lane.behind);
  offer(next);
  kick(packets[next].egress);
}

// Other egress ports may have waited for the input that `egress` served.
void Simulation::Engine::on_input_free(std::uint32_t egress) {
  auto& state = ports[egress];
  if (state.served != k_none) {
    state.served = k_none;
  } else {
    --ports[state.serving].in_service;
    state.serving = k_none;
  }
  const auto& node = network.nodes[state.node];
  for (const auto sibling : node.ports)
    if (ports[index(sibling)].queued != 0) kick(index(sibling));
}

}  // namespace fabricast::packet
