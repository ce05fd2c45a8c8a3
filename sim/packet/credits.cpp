// SPDX-License-Identifier: Apache-2.0
// InfiniBand links: credits per lane in 64-byte blocks, counters modulo 2^32.
#include <algorithm>

#include "packet/core.hpp"

namespace fabricast::packet {

namespace {

std::uint32_t blocks_of(std::uint32_t bytes) { return (bytes + k_credit_block - 1) / k_credit_block; }

}  // namespace

bool Port::has_credit(int traffic_class, std::uint32_t frame) {
  if (!is_lossless(traffic_class)) return true;
  const auto& lane = lane_of(traffic_class);
  if (static_cast<std::int32_t>(lane.limit - lane.sent - blocks_of(frame)) >= 0) return true;
  if (count(traffic_class).starved_since == k_never) begin_starvation(traffic_class);
  return false;
}

void Port::take_credit(int traffic_class, std::uint32_t frame) {
  if (!is_lossless(traffic_class)) return;
  lane_of(traffic_class).sent += blocks_of(frame);
  if (count(traffic_class).starved_since != k_never) end_starvation(traffic_class);
}

// A packet waits for credits: blames the egress queue that fills the peer's input, and what blocks that queue. A slow
// host blames itself.
void Port::begin_starvation(int traffic_class) {
  auto& seldom = count(traffic_class);
  seldom.starved_since = core->now;
  seldom.first_paused = std::min(seldom.first_paused, core->now);
  auto& root = at(traffic_class).root;
  const auto& other = core->ports[peer];
  const auto [because, lane] = other.is_host
                                   ? std::pair{other.at(traffic_class).ingress > 0 ? peer : k_none, traffic_class}
                                   : core->switches[other.owner].blocking_egress(other, traffic_class);
  root = because;
  if (because == k_none) return;
  const auto& blamed = core->ports[because];
  const std::uint32_t above = blamed.at(lane).root;
  if (blamed.count(lane).starved_since != k_never && above != k_none) root = above;
  core->count_pause_cause(*this, traffic_class, because, root);
}

void Port::end_starvation(int traffic_class) {
  auto& seldom = count(traffic_class);
  const std::uint32_t root = at(traffic_class).root;
  seldom.starved += core->now - seldom.starved_since;
  seldom.last_paused = core->now;
  if (root != k_none) core->record_pause(*this, traffic_class, root, seldom.starved_since);
  seldom.starved_since = k_never;
}

// Counts a packet in the input buffer of its lane.
void Port::receive_credited(std::uint32_t id) {
  auto& packet = core->packets[id];
  packet.counted = blocks_of(packet.frame) * k_credit_block;
  auto& entry = at(packet.traffic_class);
  entry.ingress += packet.counted;
  entry.max_ingress = std::max(entry.max_ingress, entry.ingress);
  if (is_lossless(packet.traffic_class)) lane_of(packet.traffic_class).received += blocks_of(packet.frame);
  if (!is_host) core->switches[owner].count(packet.counted);
}

void Port::release_credited(int traffic_class, std::uint32_t bytes) {
  const std::uint32_t counted = blocks_of(bytes) * k_credit_block;
  at(traffic_class).ingress -= counted;
  if (!is_host) core->switches[owner].used -= counted;
  if (is_lossless(traffic_class)) consider_credit_update(traffic_class);
}

// An update goes out when the limit changed and the interval since the last one has passed.
void Port::consider_credit_update(int traffic_class) {
  auto& lane = lane_of(traffic_class);
  if (lane.is_due) return;
  const Time due = std::max(lane.next_update, core->now + config().credits.turnaround.ps);
  if (due <= core->now) {
    send_credit(traffic_class);
    return;
  }
  lane.is_due = true;
  core->events.push(due, EventKind::credit_due, event_id(traffic_class));
}

void Port::send_credit(int traffic_class) {
  auto& lane = lane_of(traffic_class);
  lane.is_due = false;
  const auto& rules = config().credits;
  const auto used = static_cast<std::uint32_t>(at(traffic_class).ingress / k_credit_block);
  const auto size = static_cast<std::uint32_t>(rules.lane_buffer.value / k_credit_block);
  const std::uint32_t limit = lane.received + size - used;
  if (limit == lane.granted) return;
  lane.granted = limit;
  lane.next_update = core->now + rules.credit_interval.ps;
  const std::uint32_t id = core->packets.take();
  auto& packet = core->packets[id];
  packet.kind = PacketKind::credit;
  packet.traffic_class = static_cast<std::uint8_t>(traffic_class);
  packet.number = limit;
  core->packets.append(control, id);
  has_control = true;
  ++count(traffic_class).pause_frames;
  kick();
}

void Port::on_credit_arrival(const Packet& packet) {
  lane_of(packet.traffic_class).limit = packet.number;
  if (((queued | ready) >> packet.traffic_class & 1) != 0) kick();
}

}  // namespace fabricast::packet
