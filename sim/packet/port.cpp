// SPDX-License-Identifier: Apache-2.0
// A port's set-up, arrivals, statistics, and its part in a period (packet/trains.hpp).
#include "packet/port.hpp"

#include <algorithm>
#include <cmath>

#include "packet/core.hpp"
#include "packet/headroom.hpp"

namespace fabricast::packet {

namespace {

/// What a look at one port or class costs besides its words, in words: cache lines.
constexpr std::int64_t k_price_of_port = 6;
constexpr std::int64_t k_price_of_class = 6;

bool has_list(const PacketList& list) { return list.head != k_none; }

}  // namespace

void Port::set_up(Core& core_of_all, std::uint32_t number) {
  core = &core_of_all;
  const auto& network = core->network;
  const auto& given = network.ports[number];
  owner = index(given.node);
  peer = index(given.peer);
  delay = given.delay.ps;
  ps_per_byte = 1e12 / given.rate.bytes_per_s;
  is_host = network.nodes[owner].kind == NodeKind::host;
  const auto& ruling = is_host ? network.node_of(given.peer) : network.nodes[owner];
  core->link_configs[number] =
      ruling.kind == NodeKind::host ? &core->direct_link : &network.switch_configs[ruling.config];
  for (unsigned one = 0; one < k_num_classes; ++one)
    if (config().classes[one].lossless && config().flow_control != FlowControl::none)
      lossless = static_cast<std::uint8_t>(lossless | 1U << one);
  lossless = static_cast<std::uint8_t>(lossless & ~given.unprotected);
  has_credits = config().flow_control == FlowControl::credits;
  const auto& pfc = config().pfc;
  alpha = pfc.alpha;
  if (pfc.alpha_reference_rate.bytes_per_s > 0) {
    const double doublings = std::log2(given.rate.bytes_per_s / pfc.alpha_reference_rate.bytes_per_s);
    alpha = std::min(1.0, pfc.alpha * std::exp2(std::max(0.0, std::floor(doublings + 1e-9))));
  }
  cuts_through = !is_host && config().cut_through;
}

// When the first queue pair uses the class.
void Port::use_class(int traffic_class) {
  if (!is_lossless(traffic_class)) return;
  at(traffic_class).headroom = headroom_of(core->network, PortId{port_id()}).value;
  if (!has_credits) return;
  auto& lane = lane_of(traffic_class);
  // A sender begins with the credits of the buffer at the other end.
  const auto blocks = [](const SwitchConfig& end) {
    return static_cast<std::uint32_t>(end.credits.lane_buffer.value / k_credit_block);
  };
  lane.limit = blocks(*core->link_configs[peer]);
  lane.granted = blocks(config());
}

void Port::on_packet_arrival() {
  const std::uint32_t packet = core->packets.take_first(wire);
  if (has_list(wire)) core->events.push(core->packets[packet].next_time, EventKind::packet_arrival, port_id());
  if (is_host) {
    core->hcas[owner].arrive(packet);
  } else {
    core->switches[owner].arrive(*this, packet);
  }
}

void Port::drop(std::uint32_t id) {
  core->trains.disturb();
  const auto& packet = core->packets[id];
  auto& seldom = count(packet.traffic_class);
  ++seldom.dropped;
  seldom.dropped_bytes += packet.frame;
  ++(is_lossless(packet.traffic_class) ? core->lossless_drops : core->lossy_drops);
  auto& queue_pair = core->queue_pairs[packet.queue_pair];
  const Time timeout = core->transport_of(queue_pair.source).timeout.ps;
  if (!queue_pair.has_timeout && timeout > 0) {
    queue_pair.has_timeout = true;
    core->events.push(core->now + timeout, EventKind::timeout, packet.queue_pair);
  }
  core->packets.give_back(id);
}

PortStatistics Port::statistics(int traffic_class) const {
  PortStatistics out;
  out.is_lossless = is_lossless(traffic_class);
  if (!core->is_used(traffic_class)) return out;
  const auto& entry = at(traffic_class);
  const auto& seldom = count(traffic_class);
  const Time now = core->now;
  out.sent_packets = entry.sent_packets;
  out.sent = {static_cast<std::int64_t>(entry.sent_bytes)};
  out.max_queue = {entry.max_queue};
  out.marked_packets = seldom.marked;
  out.pauses_received = seldom.pauses_received;
  out.paused = {seldom.paused + (entry.paused_since < now ? now - entry.paused_since : 0)};
  out.starved = {seldom.starved + (seldom.starved_since < now ? now - seldom.starved_since : 0)};
  out.pauses_sent = seldom.pauses_sent;
  out.pause_frames = seldom.pause_frames;
  out.max_ingress = {entry.max_ingress};
  out.max_overshoot = {seldom.max_overshoot};
  out.max_headroom = {seldom.max_headroom};
  out.headroom = {entry.headroom};
  out.dropped_packets = seldom.dropped;
  out.dropped = {seldom.dropped_bytes};
  return out;
}

void Port::walk(StateWalk& walk) {
  walk.look_at(k_price_of_port);
  const bool is_quiet = (paused | queued | ready | xoff | pause_due | expiring | refreshing) == 0 && !has_list(wire) &&
                        !has_list(pause_wire) && !has_control && free_at <= walk.now() && wake_at == k_never &&
                        in_service == 0 && serving == k_none && served == k_none;
  walk.same((is_quiet ? 0U : 1U) | (schedule_tag > 0 ? 2U : 0U));
  const std::uint64_t floor = schedule_tag;
  if (floor > 0) walk.counter(schedule_tag);
  LaneBases lanes;
  for (int number = 0; number < k_num_classes; ++number) {
    if (!core->is_used(number)) continue;
    walk_class(walk, number, floor);
    if (has_credits) walk_lane(walk, number, lanes);
  }
  if (!is_quiet) walk_link(walk, lanes);
}

void Port::walk_link(StateWalk& walk, const LaneBases& lanes) {
  walk.same(bits(paused) | bits(queued) << 8U | bits(ready) << 16U);
  walk.same(bits(xoff) | bits(pause_due) << 8U | bits(expiring) << 16U);
  walk.same(static_cast<std::uint64_t>(refreshing) | in_service << 8U);
  walk.same_id(serving);
  walk.same_id(served);
  walk.due(free_at);
  walk.due(wake_at);
  core->walk_list(walk, wire, nullptr);
  core->walk_list(walk, pause_wire, &lanes.coming);
  core->walk_list(walk, control, &lanes.going);
}

// The class's place in weighted sharing counts from the port's `floor`; what lies below it counts as there.
void Port::walk_class(StateWalk& walk, int traffic_class, std::uint64_t floor) {
  auto& entry = at(traffic_class);
  walk.look_at(k_price_of_class);
  const bool is_used = entry.sent_packets > 0 || entry.max_queue > 0 || entry.max_ingress > 0 || entry.ring != k_none;
  walk.same(is_used ? 1 : 0);
  walk_seldom(walk, traffic_class);
  if (!is_used) return;
  walk.same(std::max(entry.tag, floor) - floor);
  if (walk.is_shift()) entry.tag = std::max(entry.tag, floor) + (schedule_tag - floor);
  core->walk_list(walk, entry.queue, nullptr);
  for (auto id = entry.ring; id != k_none;) {
    id = core->queue_pairs[id].ring_next;
    walk.same_id(id);
    if (id == entry.ring) break;
  }
  walk.same(0);
  walk.same_id(entry.root);
  walk.same_id(entry.cause);
  walk.same_id(entry.cause_root);
  for (const auto bytes : {entry.queue_bytes, entry.max_queue, entry.ingress, entry.max_ingress, entry.shared,
                           entry.in_headroom, entry.at_xoff})
    walk.same(static_cast<std::uint64_t>(bytes));
  walk.counter(entry.sent_packets);
  walk.counter(entry.sent_bytes);
}

// Pauses, waits for credits and marks, where there are any.
void Port::walk_seldom(StateWalk& walk, int traffic_class) {
  auto& entry = at(traffic_class);
  auto& seldom = count(traffic_class);
  const bool has_any = (seldom.marked | seldom.pauses_received | seldom.pauses_sent | seldom.pause_frames) != 0 ||
                       seldom.first_paused != k_never || seldom.max_headroom > 0;
  walk.same(has_any ? 1 : 0);
  if (!has_any) return;
  walk.same(static_cast<std::uint64_t>(seldom.first_paused));
  walk.same(static_cast<std::uint64_t>(seldom.max_overshoot));
  walk.same(static_cast<std::uint64_t>(seldom.max_headroom));
  walk.since(entry.paused_since);
  walk.since(seldom.starved_since);
  if (!has_slow_pause_timers()) {
    walk.due(seldom.paused_until);
  } else if (walk.is_shift() && seldom.paused_until - pause_time() > core->trains.begin) {
    seldom.paused_until += walk.shift();
  }
  walk.stamp(seldom.last_paused);
  walk.counter(seldom.paused);
  walk.counter(seldom.starved);
  for (auto* counter : {&seldom.marked, &seldom.pauses_received, &seldom.pauses_sent, &seldom.pause_frames})
    walk.counter(*counter);
}

void Port::walk_lane(StateWalk& walk, int traffic_class, LaneBases& lanes) {
  auto& lane = lane_of(traffic_class);
  walk.same(lane.limit - lane.sent);
  walk.same(lane.granted - lane.received);
  walk.same((lane.is_due ? 1U : 0U) | (lane.has_head ? 2U : 0U));
  walk.due(lane.next_update);
  const auto number = static_cast<std::size_t>(traffic_class);
  lanes.coming.base[number] = lane.limit;
  lanes.going.base[number] = lane.granted;
  const auto periods = static_cast<std::uint32_t>(walk.periods());
  const std::uint32_t sent = walk.counter(lane.sent) * periods;
  const std::uint32_t received = walk.counter(lane.received) * periods;
  core->walk_list(walk, lane.behind, nullptr);
  if (!walk.is_shift()) return;
  lane.limit += lanes.coming.shift[number] = sent;
  lane.granted += lanes.going.shift[number] = received;
}

}  // namespace fabricast::packet
