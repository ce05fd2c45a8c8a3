// SPDX-License-Identifier: Apache-2.0
// The part of queue pairs and receive buffers in a period (packet/trains.hpp).
#include "packet/core.hpp"

namespace fabricast::packet {

void Hca::walk(StateWalk& walk) const {
  if (core->stages.reach > 0 || config->receive_rate.bytes_per_s > 0) core->walk_list(walk, receiving, nullptr);
}

// Of one that sends from here.
void Hca::walk_pair(StateWalk& walk, std::uint32_t id) const {
  auto& state = core->queue_pairs[id];
  walk.same_id(id);
  walk.same(state.ack_every == k_none ? 0 : state.next_packet % state.ack_every);
  walk.same(state.unacknowledged());
  walk.same(state.next_packet - state.expected);
  walk.same(state.furthest - state.next_packet);
  walk.same_id(state.sending);
  walk.same_id(state.oldest);
  walk.same(bits(state.is_in_ring) | bits(state.has_pace_event) << 1U | bits(state.has_timeout) << 2U |
            bits(state.has_sent_nak) << 3U | bits(state.control->phase(walk.now())) << 4U |
            bits(state.reads_outstanding) << 6U);
  walk.same(state.last_wire);
  walk.due(state.next_time);
  if (core->stages.reach > 0) {
    walk.same(state.has_host_packet ? 1 : 0);
    core->stages.walk_time(walk, state.host_ready);
  }
  walk.same(state.arrived.size());
  for (const auto word : state.arrived) walk.same(word >> 32), walk.same(word & 0xffff'ffff);
  auto& messages = core->messages;
  if (transport().out_of_order)
    for (auto message = state.oldest; message != k_none && messages[message].first_packet < state.furthest;
         message = messages[message].next)
      walk.counter(messages[message].received);
  walk_numbers(walk, id);
  walk.counter(state.delivered);
  walk.counter(state.packets);
  walk.counter(state.retransmitted);
  walk.counter(state.marked);
  walk.stamp(state.last_progress);
  walk.stamp(state.last_delivered);
}

// Packet numbers and pace: what a period grows by.
void Hca::walk_numbers(StateWalk& walk, std::uint32_t id) const {
  auto& state = core->queue_pairs[id];
  const std::uint32_t before = state.next_packet;
  const std::uint32_t step = walk.counter(state.next_packet);
  std::int64_t bytes = 0;
  if (state.is_paced) {
    bytes = state.control->walk(walk);
    walk.same(static_cast<std::uint64_t>(walk.now() - state.last_sent));
    if (walk.is_shift()) state.last_sent += walk.shift();
  } else {
    walk.stamp(state.last_sent);
  }
  if (walk.is_compare() && step != 0) core->trains.steps.push_back({id, step, bytes});
  if (!walk.is_shift()) return;
  const std::uint32_t moved = state.next_packet - before;
  state.expected += moved;
  state.furthest += moved;
  if (!state.is_response) state.acknowledged += moved;
}

}  // namespace fabricast::packet
