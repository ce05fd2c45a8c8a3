// SPDX-License-Identifier: Apache-2.0
// The engine's state seen from the clock and from the packet numbers of each queue pair, field by field, for trains
// (packet/trains.hpp). What is not walked: what only a disturbance changes (messages, routes, idle queue pairs, drops,
// CNPs), and events and ticks that bound a train instead (timers, samples, starts of messages).
#include <algorithm>
#include <bit>

#include "packet/engine.hpp"
#include "packet/state_walk.hpp"

namespace fabricast::packet {

namespace {

/// What a look at one port, class, queue pair or event costs besides its words, in words: cache lines.
constexpr std::int64_t k_price_of_port = 6;
constexpr std::int64_t k_price_of_class = 6;
constexpr std::int64_t k_price_of_pair = 4;
constexpr std::int64_t k_price_of_event = 4;

std::uint64_t from(std::uint32_t identifier) { return identifier + std::uint32_t{1}; }  // none = 0

std::uint64_t bits(auto value) { return static_cast<std::uint64_t>(value); }

bool has_list(const PacketList& list) { return list.head != k_none; }

}  // namespace

/// What the numbers of credit frames count from, by lane, and how far it moves on.
struct Simulation::Engine::CreditBase {
  std::array<std::uint32_t, k_num_classes> base{};
  std::array<std::uint32_t, k_num_classes> shift{};
};

/// Of the frames on their way to a port and of those that it will send.
struct Simulation::Engine::LaneBases {
  CreditBase coming;
  CreditBase going;
};

void Simulation::Engine::walk_state(StateWalk& walk) {
  walk.same(options.record_pauses ? pause_intervals.size() : 0);
  walk.counter(packet_hops);
  walk.counter(delivered_packets);
  walk.counter(accepted_packets);
  walk.counter(delivered_bytes);
  trains.steps.clear();
  for (std::uint32_t id = 0; id < queue_pairs.size() && !walk.is_over(); ++id) walk_pair(walk, id);
  walk.same(0);
  walk_switches(walk);
  for (auto& time : stage_free) walk_host_time(walk, time);
  for (std::uint32_t port = 0; port < ports.size() && !walk.is_over(); ++port) walk_port(walk, port);
  walk_events(walk);
}

/// Idle ones wait for a message, which disturbs: they are left out.
bool Simulation::Engine::is_idle(const QueuePairState& state) {
  return state.oldest == k_none && state.sending == k_none && !state.has_pace_event &&
         state.expected == state.end_packet;
}

/// Packets on their way and not yet acknowledged. The data of READs have no acknowledgement before the last one.
std::uint32_t Simulation::Engine::unacknowledged(const QueuePairState& state) {
  return state.is_response ? state.acknowledged : state.next_packet - state.acknowledged;
}

void Simulation::Engine::walk_pair(StateWalk& walk, std::uint32_t id) {
  auto& state = queue_pairs[id];
  walk.look_at(k_price_of_pair);
  if (is_idle(state)) return;
  walk.same(from(id));
  walk.same(state.ack_every == k_none ? 0 : state.next_packet % state.ack_every);
  walk.same(unacknowledged(state));
  walk.same(state.next_packet - state.expected);
  walk.same(state.furthest - state.next_packet);
  walk.same(from(state.sending));
  walk.same(from(state.oldest));
  walk.same(bits(state.is_in_ring) | bits(state.has_pace_event) << 1U | bits(state.has_timeout) << 2U |
            bits(state.has_sent_nak) << 3U | bits(may_not_notify(state)) << 4U | bits(state.machine.is_active) << 5U |
            bits(state.reads_outstanding) << 6U);
  walk.same(state.last_wire);
  walk.due(state.next_time);
  if (host_reach > 0) {
    walk.same(state.has_host_packet ? 1 : 0);
    walk_host_time(walk, state.host_ready);
  }
  walk.same(state.arrived.size());
  for (const auto word : state.arrived) walk.same(word >> 32), walk.same(word & 0xffff'ffff);
  if (transport_of(state.source).out_of_order)
    for (auto message = state.oldest; message != k_none && messages[message].first_packet < state.furthest;
         message = messages[message].next)
      walk.counter(messages[message].received);
  const std::uint32_t before = state.next_packet;
  const std::uint32_t step = walk.counter(state.next_packet);
  const std::int64_t bytes = walk_machine(walk, state);
  if (walk.is_compare() && step != 0) trains.steps.push_back({id, step, bytes});
  const std::uint32_t moved = walk.is_shift() ? state.next_packet - before : 0;
  state.expected += moved;
  state.furthest += moved;
  if (!state.is_response) state.acknowledged += moved;
  walk.counter(state.delivered);
  walk.counter(state.packets);
  walk.counter(state.retransmitted);
  walk.counter(state.marked);
  walk.stamp(state.last_progress);
  walk.stamp(state.last_delivered);
}

/// Whether the receiver has to wait before it may send another CNP.
bool Simulation::Engine::may_not_notify(const QueuePairState& state) const {
  const auto& dcqcn = transport_of(state.destination).dcqcn;
  return dcqcn.enabled && now - state.last_cnp < dcqcn.cnp_interval.ps;
}

/// Whether a tick of the increase timer can change the rate.
bool Simulation::Engine::may_increase(const RateMachine& machine) {
  return machine.rate < machine.line || machine.target < machine.line;
}

/// Ticks are not walked: those that change something bound the train, the others are replayed when the rate is used.
/// So is alpha, which nothing but the next CNP asks for. Gives what the byte counter grew by.
std::int64_t Simulation::Engine::walk_machine(StateWalk& walk, QueuePairState& state) {
  auto& machine = state.machine;
  if (!machine.is_active) {
    walk.stamp(state.last_sent);
    return 0;
  }
  for (const double value : {machine.rate, machine.target}) walk.same(std::bit_cast<std::uint64_t>(value));
  if (may_increase(machine)) walk.same(static_cast<std::uint64_t>(machine.time_stage));
  walk.same(static_cast<std::uint64_t>(machine.byte_stage));
  walk.same(machine.saw_cnp_for_decrease ? 1 : 0);
  walk.same(static_cast<std::uint64_t>(walk.now() - state.last_sent));
  if (walk.is_shift()) state.last_sent += walk.shift();
  return walk.counter(machine.bytes);
}

/// Decides as long as a packet that is asked for now could have been begun before it.
void Simulation::Engine::walk_host_time(StateWalk& walk, Time& time) const {
  Time end = time + host_reach;
  walk.due(end);
  time = end - host_reach;
}

void Simulation::Engine::walk_switches(StateWalk& walk) {
  for (std::uint32_t node = 0; node < switches.size() && !walk.is_over(); ++node) {
    auto& memory = switches[node];
    if (memory.config == nullptr) continue;
    walk.same(static_cast<std::uint64_t>(memory.used));
    walk.same(static_cast<std::uint64_t>(memory.shared_used));
    walk.same(static_cast<std::uint64_t>(memory.max_used));
    for (int lane = 0; lane < k_num_classes; ++lane) walk_inputs(walk, memory, lane);
  }
}

void Simulation::Engine::walk_inputs(StateWalk& walk, SwitchState& memory, int lane) {
  if (memory.inputs[lane].empty()) return;
  walk.same(static_cast<std::uint64_t>(lane) + 1);
  for (std::uint32_t egress = 0; egress < memory.num_ports && !walk.is_over(); ++egress) {
    walk.same(memory.last_served[lane][egress]);
    for (std::uint32_t word = 0; word < memory.words; ++word) {
      for (auto bits = memory.waiting[lane][std::size_t{egress} * memory.words + word]; bits != 0; bits &= bits - 1) {
        const auto input = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        walk.same(from(input));
        walk_list(walk, memory.inputs[lane][std::size_t{egress} * memory.num_ports + input], nullptr);
      }
    }
    walk.same(0);
  }
}

void Simulation::Engine::walk_port(StateWalk& walk, std::uint32_t port) {
  auto& state = ports[port];
  walk.look_at(k_price_of_port);
  const bool is_quiet =
      (state.paused | state.queued | state.ready | state.xoff | state.pause_due | state.expiring | state.refreshing) ==
          0 &&
      !has_list(state.wire) && !has_list(state.pause_wire) && !state.has_control && state.free_at <= walk.now() &&
      state.wake_at == k_never && state.in_service == 0 && state.serving == k_none && state.served == k_none;
  walk.same((is_quiet ? 0U : 1U) | (state.schedule_tag > 0 ? 2U : 0U));
  const std::uint64_t floor = state.schedule_tag;
  if (floor > 0) walk.counter(state.schedule_tag);
  LaneBases lanes;
  for (int number = 0; number < k_num_classes; ++number) {
    if (!is_used(number)) continue;
    walk_class(walk, port, number, floor);
    if (state.has_credits) walk_lane(walk, port, number, lanes);
  }
  if (!is_quiet) walk_link(walk, state, lanes);
  if (state.is_host && (host_reach > 0 || hca_of(port).receive_rate.bytes_per_s > 0))
    walk_list(walk, receive_queues[port], nullptr);
}

void Simulation::Engine::walk_link(StateWalk& walk, PortState& state, const LaneBases& lanes) {
  walk.same(bits(state.paused) | bits(state.queued) << 8U | bits(state.ready) << 16U);
  walk.same(bits(state.xoff) | bits(state.pause_due) << 8U | bits(state.expiring) << 16U);
  walk.same(static_cast<std::uint64_t>(state.refreshing) | state.in_service << 8U);
  walk.same(from(state.serving));
  walk.same(from(state.served));
  walk.due(state.free_at);
  walk.due(state.wake_at);
  walk_list(walk, state.wire, nullptr);
  walk_list(walk, state.pause_wire, &lanes.coming);
  walk_list(walk, state.control, &lanes.going);
}

// The class's place in weighted sharing counts from the port's `floor`; what lies below it counts as there.
void Simulation::Engine::walk_class(StateWalk& walk, std::uint32_t port, int traffic_class, std::uint64_t floor) {
  auto& entry = at(port, traffic_class);
  walk.look_at(k_price_of_class);
  const bool is_used = entry.sent_packets > 0 || entry.max_queue > 0 || entry.max_ingress > 0 || entry.ring != k_none;
  walk.same(is_used ? 1 : 0);
  walk_seldom(walk, port, traffic_class);
  if (!is_used) return;
  walk.same(std::max(entry.tag, floor) - floor);
  if (walk.is_shift()) entry.tag = std::max(entry.tag, floor) + (ports[port].schedule_tag - floor);
  walk_list(walk, entry.queue, nullptr);
  for (auto id = entry.ring; id != k_none;) {
    id = queue_pairs[id].ring_next;
    walk.same(from(id));
    if (id == entry.ring) break;
  }
  walk.same(0);
  walk.same(from(entry.root));
  walk.same(from(entry.cause));
  walk.same(from(entry.cause_root));
  for (const auto bytes : {entry.queue_bytes, entry.max_queue, entry.ingress, entry.max_ingress, entry.shared,
                           entry.in_headroom, entry.at_xoff})
    walk.same(static_cast<std::uint64_t>(bytes));
  walk.counter(entry.sent_packets);
  walk.counter(entry.sent_bytes);
}

// Pauses, waits for credits and marks, where there are any.
void Simulation::Engine::walk_seldom(StateWalk& walk, std::uint32_t port, int traffic_class) {
  auto& entry = at(port, traffic_class);
  auto& seldom = count(port, traffic_class);
  const bool has_any = (seldom.marked | seldom.pauses_received | seldom.pauses_sent | seldom.pause_frames) != 0 ||
                       seldom.first_paused != k_never || seldom.max_headroom > 0;
  walk.same(has_any ? 1 : 0);
  if (!has_any) return;
  walk.same(static_cast<std::uint64_t>(seldom.first_paused));
  walk.same(static_cast<std::uint64_t>(seldom.max_overshoot));
  walk.same(static_cast<std::uint64_t>(seldom.max_headroom));
  walk.since(entry.paused_since);
  walk.since(seldom.starved_since);
  if (!has_slow_pause_timers(port)) {
    walk.due(seldom.paused_until);
  } else if (walk.is_shift() && seldom.paused_until - pause_time(port) > trains.begin) {
    seldom.paused_until += walk.shift();
  }
  walk.stamp(seldom.last_paused);
  walk.counter(seldom.paused);
  walk.counter(seldom.starved);
  for (auto* counter : {&seldom.marked, &seldom.pauses_received, &seldom.pauses_sent, &seldom.pause_frames})
    walk.counter(*counter);
}

void Simulation::Engine::walk_lane(StateWalk& walk, std::uint32_t port, int traffic_class, LaneBases& lanes) {
  auto& lane = lane_of(port, traffic_class);
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
  walk_list(walk, lane.behind, nullptr);
  if (!walk.is_shift()) return;
  lane.limit += lanes.coming.shift[number] = sent;
  lane.granted += lanes.going.shift[number] = received;
}

/// `base`: for lists that may hold credit frames.
void Simulation::Engine::walk_list(StateWalk& walk, const PacketList& list, const CreditBase* base) {
  for (auto id = list.head; id != k_none && !walk.is_over(); id = packets[id].next)
    walk_packet(walk, packets[id], base);
  walk.same(0);
}

void Simulation::Engine::walk_packet(StateWalk& walk, Packet& packet, const CreditBase* base) {
  walk.same(1U + bits(packet.kind) + (bits(packet.traffic_class) << 4U) + (bits(packet.ingress_class) << 8U) +
            (bits(packet.gap) << 12U) + (bits(packet.is_marked) << 20U) + (bits(packet.asks_ack) << 21U) +
            (bits(packet.is_last) << 22U));
  walk.due(packet.time);
  if (walk.is_shift()) packet.next_time += walk.shift();  // on a wire; elsewhere it says nothing
  walk.same(packet.queue_pair);
  walk.same(packet.message);
  walk.same(packet.frame);
  walk.same(packet.counted);
  walk.same(from(packet.ingress));
  walk.same(from(packet.egress));
  walk.same(from(packet.route));
  walk.same(packet.stride);
  if (packet.kind == PacketKind::pause) {
    walk.same(packet.number);
  } else if (packet.kind == PacketKind::credit) {
    walk.same(packet.number - base->base[packet.traffic_class]);
    if (walk.is_shift()) packet.number += base->shift[packet.traffic_class];
  } else {
    walk.same(queue_pairs[packet.queue_pair].next_packet - packet.number);
    if (walk.is_shift() && packet.queue_pair < trains.pair_shifts.size())
      packet.number += trains.pair_shifts[packet.queue_pair];
  }
}

/// Whether the timers of PAUSE frames run on over many pauses, each begun and ended by XOFF and XON. They bound a train
/// then, and disturb when they act.
bool Simulation::Engine::has_slow_pause_timers(std::uint32_t port) const {
  constexpr Time slow = 20'000'000;
  return pause_time(port) > slow;
}

/// Whether an event repeats with the state, and does not bound it.
bool Simulation::Engine::is_of_state(Event event) const {
  const auto kind = event.kind();
  if (kind == EventKind::pause_expiry || kind == EventKind::pause_refresh)
    return !has_slow_pause_timers(event.id() / k_num_classes);
  if (kind != EventKind::pace) return kind < EventKind::message_done;
  const auto sending = queue_pairs[event.id()].sending;
  return sending == k_none || messages[sending].start <= now;
}

void Simulation::Engine::walk_events(StateWalk& walk) {
  if (walk.is_over()) return;
  trains.events.clear();
  events.for_each([&](const Event& event) {
    if (is_of_state(event)) trains.events.push_back(event);
  });
  std::sort(trains.events.begin(), trains.events.end());
  walk.look_at(static_cast<std::int64_t>(trains.events.size()) * k_price_of_event);
  for (auto& event : trains.events) {
    walk.same(event.code);
    walk.due(event.time);
  }
}

}  // namespace fabricast::packet
