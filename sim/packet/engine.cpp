// SPDX-License-Identifier: Apache-2.0
#include "packet/engine.hpp"

#include <algorithm>
#include <bit>

namespace fabricast::packet {

Simulation::Engine::Engine(const Network& given, Options wanted) : Core(given, std::move(wanted)) {
  sampled_bytes.resize(options.sampled_queues.size());
  if (options.shortcuts) trains.enable();
}

// Sampling and the search for deadlocks end with the last message and begin again with the next one.
void Simulation::Engine::start_watching() {
  if (!is_anything_under_way()) return;
  if (!is_sampling && options.sample_interval.ps > 0) {
    is_sampling = true;
    last_sample = now;
    ++idle_events;
    events.push(now + as_step(options.sample_interval), EventKind::sample, 0);
  }
  if (!is_watching && options.deadlock_interval.ps > 0) {
    is_watching = true;
    ++idle_events;
    events.push(now + as_step(options.deadlock_interval), EventKind::watch, 0);
  }
}

// What is left when all is done (watches, credits, ports with nothing to send) happens without moving the clock.
bool Simulation::Engine::moves_clock(Event event) const {
  if (event.kind() == EventKind::pace) return queue_pairs[event.id()].sending != k_none;
  if (event.kind() != EventKind::port_ready)
    return event.kind() <= EventKind::input_free || event.kind() == EventKind::message_done ||
           event.kind() == EventKind::timer;
  return ports[event.id()].has_to_send();
}

StopReason Simulation::Engine::run(Time until) {
  until = std::min(until, k_last_time);
  start_watching();
  stop_reason = StopReason::finished;
  std::uint64_t look = num_events + options.progress_events;
  while (!events.empty() && !deadlock) {
    if (is_past_range) return stop_reason = StopReason::past_range;
    const Time next = events.next().time;
    if (next > until) {
      now = until;
      trains.is_due = false;
      return stop_reason = StopReason::time_limit;
    }
    if (trains.is_due && next > now) {
      look_for_train(until);
      continue;
    }
    const Event event = events.pop();
    if (unfinished_messages > 0 || moves_clock(event)) now = event.time;
    fetch_ahead();
    handle(event);
    if (++num_events < look) continue;
    look = num_events + options.progress_events;
    if (options.progress) options.progress({Duration{now}, finished_messages, Bytes{delivered_bytes}});
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed))
      return stop_reason = StopReason::interrupted;
  }
  if (events.empty()) events.assign({}, now);  // what is posted next is due from here on, not from the last idle event
  if (!deadlock && is_anything_under_way()) find_deadlock(true);
  if (deadlock) stop_reason = deadlock->cycle.empty() ? StopReason::stalled : StopReason::deadlock;
  return stop_reason;
}

// Asks for the memory that the next events touch; in a big network it is in no cache.
void Simulation::Engine::fetch_ahead() const {
  const auto soon = events.soon();
  for (std::size_t i = 1; i < std::min<std::size_t>(soon.size(), 4); ++i)
    if (soon[i].kind() <= EventKind::port_ready) __builtin_prefetch(&ports[soon[i].id()]);
  if (soon.empty()) return;
  const Event next = soon.front();
  std::uint32_t packet = k_none;
  if (next.kind() == EventKind::packet_arrival) {
    packet = ports[next.id()].wire.head;
  } else if (next.kind() == EventKind::port_ready && ports[next.id()].queued != 0) {
    packet = ports[next.id()].at(std::countr_zero(ports[next.id()].queued)).queue.head;
  }
  if (packet != k_none) __builtin_prefetch(&packets[packet]);
}

void Simulation::Engine::handle(Event event) {
  switch (event.kind()) {
    case EventKind::packet_arrival:
      ports[event.id()].on_packet_arrival();
      return;
    case EventKind::port_ready:
      if (ports[event.id()].wake_at != event.time) return;
      ports[event.id()].wake_at = k_never;
      if (is_anything_under_way() || ports[event.id()].has_to_send()) ports[event.id()].kick();
      return;
    case EventKind::pause_arrival:
      ports[event.id()].on_pause_arrival();
      return;
    case EventKind::receive_done:
      hca_of(event.id()).on_receive_done();
      return;
    case EventKind::input_free:
      switches[ports[event.id()].owner].on_input_free(ports[event.id()]);
      return;
    case EventKind::pace:
      hca_of(queue_pairs[event.id()].source).on_pace(event.id());
      return;
    case EventKind::credit_due:
    case EventKind::pause_expiry:
    case EventKind::pause_refresh:
    case EventKind::message_done:
    case EventKind::timer:
    case EventKind::timeout:
    case EventKind::sample:
    case EventKind::watch:
      handle_rare(event);
      return;
  }
}

void Simulation::Engine::handle_rare(Event event) {
  const auto port = [&]() -> Port& { return ports[event.id() / k_num_classes]; };
  const int traffic_class = static_cast<int>(event.id() % k_num_classes);
  const auto kind = event.kind();
  if (kind == EventKind::sample || kind == EventKind::watch || kind == EventKind::pause_refresh) --idle_events;
  switch (kind) {
    case EventKind::credit_due:
      port().send_credit(traffic_class);
      return;
    case EventKind::pause_expiry:
      port().on_pause_expiry(traffic_class);
      return;
    case EventKind::pause_refresh:
      port().on_pause_refresh(traffic_class);
      return;
    case EventKind::message_done:
      hca_of(queue_pairs[messages[event.id()].queue_pair].destination).on_message_done(event.id());
      return;
    case EventKind::timer:
      on_timer(event.id());
      return;
    case EventKind::timeout:
      hca_of(queue_pairs[event.id()].source).on_timeout(event.id());
      return;
    case EventKind::sample:
      take_sample();
      return;
    default:
      watch();
      return;
  }
}

void Simulation::Engine::on_timer(std::uint32_t timer) {
  const auto handler = std::move(timers[timer]);
  timers[timer] = nullptr;
  free_timers.push_back(timer);
  handler();
}

void Simulation::Engine::take_sample() {
  is_sampling = false;
  if (!is_anything_under_way()) return;
  const double span_s = static_cast<double>(now - last_sample) * 1e-12;
  last_sample = now;
  const auto rate = [&](auto bytes) { return Bandwidth{span_s > 0 ? static_cast<double>(bytes) / span_s : 0}; };
  for (std::size_t i = 0; i < options.sampled_queues.size() && queue_samples.size() < options.max_samples; ++i) {
    const auto& where = options.sampled_queues[i];
    if (!is_used(where.traffic_class)) continue;
    const auto& queue = ports[index(where.port)].at(where.traffic_class);
    queue_samples.push_back(
        {Duration{now}, where, Bytes{queue.queue_bytes}, rate(queue.sent_bytes - sampled_bytes[i])});
    sampled_bytes[i] = queue.sent_bytes;
  }
  for (std::uint32_t id = 0; options.sample_flows && id < queue_pairs.size(); ++id) {
    if (flow_samples.size() >= options.max_samples) break;
    auto& state = queue_pairs[id];
    flow_samples.push_back(
        {Duration{now}, QueuePairId{id}, rate(state.delivered - state.sampled), Bandwidth{state.control->rate()}});
    state.sampled = state.delivered;
  }
  is_sampling = events.size() > idle_events;
  if (!is_sampling) return;
  ++idle_events;
  events.push(now + as_step(options.sample_interval), EventKind::sample, 0);
}

}  // namespace fabricast::packet
