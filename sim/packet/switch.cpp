// SPDX-License-Identifier: Apache-2.0
// A packet at a switch: its way on, and its place in the buffer. Equations in packet/buffer.hpp. A packet's memory is
// counted from its arrival until its transmission begins; a transmitted frame is read out of memory ahead of the line.
#include "packet/switch.hpp"

#include <algorithm>
#include <bit>

#include "packet/core.hpp"
#include "packet/headroom.hpp"

namespace fabricast::packet {

void Switch::set_up(Core& core_of_all, std::uint32_t number) {
  core = &core_of_all;
  node = number;
  const auto& given = core->network.nodes[number];
  if (given.kind == NodeKind::host) return;
  config = &core->network.switch_configs[given.config];
  ports = &given.ports;
  num_ports = static_cast<std::uint32_t>(given.ports.size());
  pool = config->buffer.value;
  for (const auto port : given.ports) {
    const std::int64_t per_class = headroom_of(core->network, port).value + config->reserved.value;
    pool -= std::popcount(core->ports[index(port)].lossless) * per_class;
  }
  if (config->pool) pool = std::min(pool, config->pool->value);
  pool = std::max<std::int64_t>(pool, 0);
}

void Switch::arrive(Port& port, std::uint32_t id) {
  auto& packet = core->packets[id];
  const std::uint32_t hop = packet.route;
  const std::uint32_t egress = next_port(packet);
  const auto cell = static_cast<std::uint32_t>(config->cell.value);
  packet.counted = cell == 1 ? packet.frame : (packet.frame + cell - 1) / cell * cell;
  packet.time = core->now + config->latency.ps;
  if (port.cuts_through && core->ports[egress].ps_per_byte < port.ps_per_byte) {
    // The egress would run ahead of the arrival: wait for the end.
    const std::uint32_t bytes = packet.frame + packet.gap;
    if (bytes > k_header_wire_bytes) packet.time += port.wire_time(bytes - k_header_wire_bytes);
  }
  if (port.has_credits) {
    port.receive_credited(id);
    packet.ingress_class = packet.traffic_class;
    if (hop < core->hop_lanes.size())
      packet.traffic_class = static_cast<std::uint8_t>(core->lane_on_hop(hop, packet.traffic_class));
    enqueue_at_input(egress, id);
    return;
  }
  const bool is_lossless = port.is_lossless(packet.traffic_class);
  if (!(is_lossless ? admit_lossless(port, id, egress) : admit_lossy(port, id, egress))) {
    port.drop(id);
    return;
  }
  core->ports[egress].enqueue(id);
  core->ports[egress].kick();
}

/// Dynamic or fixed threshold of the shared part of one ingress class.
std::int64_t Switch::threshold(const Port& port) const {
  if (config->pfc.xoff) return config->pfc.xoff->value;
  const std::int64_t free = pool - shared_used;
  return free > 0 ? static_cast<std::int64_t>(port.alpha * static_cast<double>(free)) : 0;
}

bool Switch::admit_lossless(Port& port, std::uint32_t id, std::uint32_t egress) {
  const auto& packet = core->packets[id];
  const int number = packet.traffic_class;
  auto& entry = port.at(number);
  const std::int64_t reserved = config->reserved.value;
  const std::int64_t bytes = packet.counted;
  const std::int64_t outside = entry.ingress - entry.in_headroom;
  const std::int64_t shared = std::max<std::int64_t>(0, outside + bytes - reserved);
  const bool has_room = shared_used + shared - entry.shared <= pool;
  const bool is_xoff = port.is_xoff(number);
  const bool is_in_headroom = (is_xoff && entry.ingress >= reserved + threshold(port)) || !has_room;
  if (is_in_headroom) {
    if (entry.in_headroom + bytes > entry.headroom) return false;
    entry.in_headroom += bytes;
    auto& seldom = port.count(number);
    seldom.max_headroom = std::max(seldom.max_headroom, entry.in_headroom);
  } else {
    shared_used += shared - entry.shared;
    entry.shared = shared;
  }
  entry.ingress += bytes;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  count(bytes);
  if (is_xoff) {
    auto& seldom = port.count(number);
    seldom.max_overshoot = std::max(seldom.max_overshoot, entry.ingress - entry.at_xoff);
  } else if (is_in_headroom || entry.ingress >= reserved + threshold(port)) {
    port.decide_xoff(number, egress);
  }
  return true;
}

bool Switch::admit_lossy(Port& port, std::uint32_t id, std::uint32_t egress) {
  const auto& packet = core->packets[id];
  const int number = packet.traffic_class;
  const std::int64_t bytes = packet.counted;
  if (shared_used + bytes > pool) return false;
  if (core->ports[egress].at(number).queue_bytes + packet.frame > config->lossy_limit.value) return false;
  auto& entry = port.at(number);
  entry.ingress += bytes;
  entry.shared += bytes;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  shared_used += bytes;
  count(bytes);
  return true;
}

// Gives memory back in the order headroom, shared, reserved; XON when the count has fallen far enough.
void Switch::release(Port& port, int traffic_class, std::uint32_t counted) {
  auto& entry = port.at(traffic_class);
  const std::int64_t from_headroom = std::min<std::int64_t>(entry.in_headroom, counted);
  const std::int64_t from_shared = std::min<std::int64_t>(entry.shared, counted - from_headroom);
  entry.in_headroom -= from_headroom;
  entry.shared -= from_shared;
  entry.ingress -= counted;
  shared_used -= from_shared;
  used -= counted;
  if (!port.is_xoff(traffic_class) || entry.in_headroom > 0) return;
  const std::int64_t limit = config->reserved.value + threshold(port);
  if (entry.ingress <= limit - config->pfc.xon_offset.value || entry.ingress == 0) port.decide_xon(traffic_class);
}

// `egress`, where the packet that tripped the threshold goes, when that is at least half as long as the longest, else
// by the first packets of each queue.
std::uint32_t Switch::congested_egress(const Port& port, int traffic_class, std::uint32_t egress) const {
  constexpr int k_packets_looked_at = 32;
  const auto queue_of = [&](PortId id) -> const ClassState& { return core->ports[index(id)].at(traffic_class); };
  const std::int64_t enough = 2 * queue_of(PortId{egress}).queue_bytes;
  if (std::ranges::none_of(*ports, [&](PortId id) { return queue_of(id).queue_bytes > enough; })) return egress;
  std::int64_t most = 0;
  for (const auto sibling : *ports) {
    std::int64_t bytes = 0;
    int looked_at = 0;
    for (auto id = queue_of(sibling).queue.head; id != k_none && looked_at < k_packets_looked_at;
         id = core->packets[id].next, ++looked_at)
      if (core->packets[id].ingress == port.port_id()) bytes += core->packets[id].frame;
    if (bytes <= most) continue;
    most = bytes;
    egress = index(sibling);
  }
  return egress;
}

void Switch::walk(StateWalk& walk) {
  if (config == nullptr) return;
  walk.same(static_cast<std::uint64_t>(used));
  walk.same(static_cast<std::uint64_t>(shared_used));
  walk.same(static_cast<std::uint64_t>(max_used));
  for (int lane = 0; lane < k_num_classes; ++lane) walk_inputs(walk, lane);
}

void Switch::walk_inputs(StateWalk& walk, int lane) {
  if (inputs[lane].empty()) return;
  walk.same(static_cast<std::uint64_t>(lane) + 1);
  for (std::uint32_t egress = 0; egress < num_ports && !walk.is_over(); ++egress) {
    walk.same(last_served[lane][egress]);
    for (std::uint32_t word = 0; word < words; ++word) {
      for (auto bits = waiting[lane][std::size_t{egress} * words + word]; bits != 0; bits &= bits - 1) {
        const auto input = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        walk.same_id(input);
        core->walk_list(walk, inputs[lane][std::size_t{egress} * num_ports + input], nullptr);
      }
    }
    walk.same(0);
  }
}

}  // namespace fabricast::packet
