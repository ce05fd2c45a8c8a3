// SPDX-License-Identifier: Apache-2.0
// The search for periods, how many of them may be left out, and the leap. See packet/trains.hpp. The state is what the
// walks of all parts name: it is seen from the clock and from the packet numbers of each queue pair. Not walked: what
// only a disturbance changes (messages, routes, idle queue pairs, drops, CNPs), and events and ticks that bound a train
// instead (timers, samples, starts of messages).
#include "packet/trains.hpp"

#include <algorithm>

#include "packet/engine.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

namespace {

/// Shorter messages end before a train would pay.
constexpr std::uint32_t k_least_packets = 48;
/// A record is not longer than this: 0.5 MB.
constexpr std::size_t k_most_words = 250'000;
/// Pauses counted in one period.
constexpr std::size_t k_most_pauses = 4096;
/// Events handled that pay for one word, while records succeed; measured: an event takes 80 to 160 ns, a word 2 to 4.
constexpr std::int64_t k_events_per_word = 2;
/// So many records in vain halve what events pay, at most this often.
constexpr std::uint32_t k_patience = 2;
constexpr std::uint32_t k_most_halvings = 4;
/// Words that one event left out pays.
constexpr std::int64_t k_words_per_event_saved = 4;
/// What a look at one queue pair or event costs besides its words, in words: cache lines.
constexpr std::int64_t k_price_of_pair = 4;
constexpr std::int64_t k_price_of_event = 4;

}  // namespace

// Called between two instants, after the watched queue pair has sent.
void Simulation::Engine::look_for_train(Time until) {
  trains.is_due = false;
  if (!is_anything_under_way()) return;
  if (trains.watched == Trains::k_any) {
    if (!may_watch(trains.sender)) return;
    trains.watched = trains.sender;
  }
  ++trains.num_sends;
  if (trains.pauses.size() > k_most_pauses) trains.disturb();
  if (trains.has_record && now >= trains.not_before && key_of_state() == trains.key) {
    settle_allowance();
    if (trains.allowance >= 0 && is_repeated()) {
      ride(until);
      return;
    }
  }
  if (trains.num_sends < trains.next_record) return;
  settle_allowance();
  if (trains.allowance >= trains.price) record_state();
}

bool Simulation::Engine::may_watch(std::uint32_t id) const {
  const auto& state = queue_pairs[id];
  if (state.sending == k_none) return false;
  const auto& message = messages[state.sending];
  return message.first_packet + message.packets - state.next_packet >= k_least_packets;
}

void Simulation::Engine::settle_allowance() {
  const auto handled = static_cast<std::int64_t>(num_events - trains.events_paid) / k_events_per_word;
  trains.allowance += handled >> std::min(trains.failures / k_patience, k_most_halvings);
  trains.allowance = std::min(trains.allowance, std::max<std::int64_t>(4 * trains.price, k_most_words));
  trains.events_paid = num_events;
}

/// Of the watched queue pair: what differs between most states.
std::uint64_t Simulation::Engine::key_of_state() const {
  const auto& state = queue_pairs[trains.watched];
  const std::uint64_t phase = state.ack_every == k_none ? 0 : state.next_packet % state.ack_every;
  const std::uint64_t flight = state.unacknowledged();
  return mix(flight << 32 | (state.next_packet - state.expected)) + mix(phase << 32 | state.sending);
}

void Simulation::Engine::record_state() {
  if (trains.has_record) ++trains.failures;
  StateWalk walk(StateWalk::Mode::record, trains.words, now, now, 0);
  walk.limit(k_most_words);
  walk_state(walk);
  trains.price = walk.cost();
  trains.allowance -= trains.price;
  trains.has_record = !walk.is_over();
  trains.recorded_at = trains.num_sends;
  trains.next_record = 2 * trains.num_sends;
  trains.begin = now;
  trains.not_before = 0;
  trains.key = key_of_state();
  trains.events_then = num_events;
  trains.pauses.clear();
}

bool Simulation::Engine::is_repeated() {
  StateWalk walk(StateWalk::Mode::compare, trains.words, now, trains.begin, 0);
  walk_state(walk);
  trains.allowance -= walk.cost();
  return walk.is_equal() && do_sprays_repeat();
}

// The number of a packet decides its choices modulo the cycle of its queue pair.
bool Simulation::Engine::do_sprays_repeat() {
  return std::ranges::all_of(trains.steps, [&](const auto& step) {
    const auto& state = queue_pairs[step.number];
    if (!state.has_free_route) return true;
    const auto cycle = spray_cycle(state);
    return cycle != 0 && step.steps % cycle == 0;
  });
}

/// The first instant of something that is no part of the state.
Time Simulation::Engine::first_disturbance(Time until) const {
  Time first = until == k_never ? k_never : until + 1;
  events.for_each([&](const Event& event) {
    if (!is_of_state(event)) first = std::min(first, event.time);
  });
  for (const auto& state : queue_pairs) {
    if (!state.is_idle()) first = std::min(first, state.control->next_change(now));
  }
  return first;
}

/// Periods in which no queue pair sends the last packet of its message, nor asks for credits for it: it may be shorter.
std::int64_t Simulation::Engine::periods_of_messages() const {
  std::int64_t most = INT64_MAX;
  for (const auto& step : trains.steps) {
    const auto& state = queue_pairs[step.number];
    if (state.sending == k_none || static_cast<std::int32_t>(step.steps) < 0) return 0;
    const auto& message = messages[state.sending];
    const std::int64_t left = std::int64_t{message.first_packet} + message.packets - 2 - state.next_packet;
    most = std::min(most, std::max<std::int64_t>(0, left) / step.steps);
  }
  return trains.steps.empty() ? 0 : most;
}

/// Periods in which no byte counter of congestion control takes a step.
std::int64_t Simulation::Engine::periods_of_byte_counters() const {
  std::int64_t most = INT64_MAX;
  for (const auto& step : trains.steps) {
    if (step.counted_bytes <= 0) continue;
    most = std::min(most, queue_pairs[step.number].control->periods_until_step(step.counted_bytes));
  }
  return most;
}

// The state repeats: leaves out as many periods as are known to be equal.
void Simulation::Engine::ride(Time until) {
  const Time period = now - trains.begin;
  const Time first = first_disturbance(until);
  const std::int64_t in_time = std::max<std::int64_t>(0, (first - 1 - now) / period);
  const std::int64_t in_counters = std::min(in_time, periods_of_byte_counters());
  const std::int64_t in_messages = periods_of_messages();
  const std::int64_t periods = std::min(in_counters, in_messages);
  const auto saved = periods * static_cast<std::int64_t>(num_events - trains.events_then);
  const bool pays = saved * k_words_per_event_saved > trains.price;
  trains.failures = 0;
  trains.first_record = std::max(Trains::k_first_record, trains.recorded_at);
  if (pays) {
    leave_out(periods);
    trains.allowance += saved * k_words_per_event_saved - trains.price;
  }
  if (in_messages <= in_counters) {
    trains.watched = Trains::k_nobody;  // until a message ends
    trains.has_record = false;
    return;
  }
  if (pays) {
    trains.num_sends = Trains::k_first_record;
    record_state();
    trains.failures = 0;
  }
  trains.not_before = in_time <= in_counters ? first : now + 1;
}

void Simulation::Engine::leave_out(std::int64_t periods) {
  const auto before = delivered_packets;
  trains.pair_shifts.assign(queue_pairs.size(), 0);
  for (const auto& step : trains.steps)
    trains.pair_shifts[step.number] = step.steps * static_cast<std::uint32_t>(periods);
  for (const auto& cause : trains.pauses) pause_causes[cause] += static_cast<std::uint64_t>(periods);
  StateWalk walk(StateWalk::Mode::shift, trains.words, now, trains.begin, periods);
  walk_state(walk);
  FABRICAST_ASSERT(walk.is_equal(), "a train of {} periods at {} ps ends in another state", periods, now);
  events.for_each([&](const Event& event) {
    if (!is_of_state(event)) trains.events.push_back(event);
  });
  now += walk.shift();
  events.assign(trains.events, now);
  ++trains.num_trains;
  trains.packets += delivered_packets - before;
}

void Simulation::Engine::walk_state(StateWalk& walk) {
  walk.same(options.record_pauses ? pause_intervals.size() : 0);
  walk.counter(packet_hops);
  walk.counter(delivered_packets);
  walk.counter(accepted_packets);
  walk.counter(delivered_bytes);
  trains.steps.clear();
  for (std::uint32_t id = 0; id < queue_pairs.size() && !walk.is_over(); ++id) {
    walk.look_at(k_price_of_pair);
    if (!queue_pairs[id].is_idle()) hca_of(queue_pairs[id].source).walk_pair(walk, id);
  }
  walk.same(0);
  for (std::uint32_t node = 0; node < switches.size() && !walk.is_over(); ++node) switches[node].walk(walk);
  stages.walk(walk);
  for (std::uint32_t port = 0; port < ports.size() && !walk.is_over(); ++port) {
    ports[port].walk(walk);
    if (ports[port].is_host) hca_of(port).walk(walk);
  }
  walk_events(walk);
}

/// Whether an event repeats with the state, and does not bound it.
bool Simulation::Engine::is_of_state(Event event) const {
  const auto kind = event.kind();
  if (kind == EventKind::pause_expiry || kind == EventKind::pause_refresh)
    return !ports[event.id() / k_num_classes].has_slow_pause_timers();
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
