// SPDX-License-Identifier: Apache-2.0
// Set-up of the engine's tables and its event loop.
#include "packet/engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "packet/headroom.hpp"

namespace fabricast::packet {

Simulation::Engine::Engine(const Network& given, Options wanted) : network(given), options(std::move(wanted)) {
  FABRICAST_ASSERT(network.ports.size() * k_num_classes < (1U << 28), "{} ports are too many", network.ports.size());
  const std::size_t num_ports = network.ports.size();
  direct_link.flow_control = FlowControl::none;
  for (auto& traffic_class : direct_link.classes) traffic_class.lossless = true;
  ports.resize(num_ports);
  switches.resize(network.nodes.size());
  link_configs.resize(num_ports);
  adaptive_grade = k_adaptive_grade_frames * largest_frame(network).value;
  receive_queues.resize(num_ports);
  for (std::uint32_t port = 0; port < num_ports; ++port) set_up_port(port);
  set_up_buffers();
  sampled_bytes.resize(options.sampled_queues.size());
  if (options.shortcuts) trains.enable();
}

void Simulation::Engine::set_up_port(std::uint32_t port) {
  const auto& given = network.ports[port];
  auto& state = ports[port];
  state.node = index(given.node);
  state.peer = index(given.peer);
  state.delay = given.delay.ps;
  state.ps_per_byte = 1e12 / given.rate.bytes_per_s;
  const auto& node = network.nodes[state.node];
  const auto& other = network.nodes[index(network.ports[state.peer].node)];
  state.is_host = node.kind == NodeKind::host;
  const auto& ruling = state.is_host ? other : node;
  link_configs[port] = ruling.kind == NodeKind::host ? &direct_link : &network.switch_configs[ruling.config];
  const auto& config = *link_configs[port];
  for (unsigned number = 0; number < k_num_classes; ++number)
    if (config.classes[number].lossless && config.flow_control != FlowControl::none)
      state.lossless = static_cast<std::uint8_t>(state.lossless | 1U << number);
  state.has_credits = config.flow_control == FlowControl::credits;
  state.alpha = config.pfc.alpha;
  if (config.pfc.alpha_reference_rate.bytes_per_s > 0) {
    const double doublings = std::log2(given.rate.bytes_per_s / config.pfc.alpha_reference_rate.bytes_per_s);
    state.alpha = std::min(1.0, config.pfc.alpha * std::exp2(std::max(0.0, std::floor(doublings + 1e-9))));
  }
  state.cuts_through = !state.is_host && config.cut_through;
}

void Simulation::Engine::set_up_buffers() {
  for (std::uint32_t node = 0; node < network.nodes.size(); ++node) {
    if (network.nodes[node].kind == NodeKind::host) continue;
    auto& state = switches[node];
    state.config = &network.switch_configs[network.nodes[node].config];
    state.num_ports = static_cast<std::uint32_t>(network.nodes[node].ports.size());
    state.pool = state.config->buffer.value;
  }
  for (const auto& node : network.nodes)
    for (std::uint32_t local = 0; local < node.ports.size(); ++local) ports[index(node.ports[local])].local = local;
  for (std::uint32_t port = 0; port < ports.size(); ++port) {
    if (ports[port].is_host) continue;
    const std::int64_t per_class = headroom_of(network, PortId{port}).value + config_of(port).reserved.value;
    switches[ports[port].node].pool -= std::popcount(ports[port].lossless) * per_class;
  }
  for (auto& state : switches) {
    if (state.config == nullptr) continue;
    if (state.config->pool) state.pool = std::min(state.pool, state.config->pool->value);
    state.pool = std::max<std::int64_t>(state.pool, 0);
  }
}

// Makes the tables of a class when the first queue pair uses it.
void Simulation::Engine::use_class(int traffic_class) {
  if (is_used(traffic_class)) return;
  const auto number = static_cast<std::size_t>(traffic_class);
  classes[number].resize(ports.size());
  counters[number].resize(ports.size());
  if (std::ranges::any_of(ports, [](const PortState& port) { return port.has_credits; }))
    credits[number].resize(ports.size());
  for (std::uint32_t port = 0; port < ports.size(); ++port) {
    if ((ports[port].lossless >> traffic_class & 1) == 0) continue;
    at(port, traffic_class).headroom = headroom_of(network, PortId{port}).value;
    if (!ports[port].has_credits) continue;
    auto& lane = lane_of(port, traffic_class);
    lane.limit = static_cast<std::uint32_t>(config_of(port).credits.lane_buffer.value / k_credit_block);
    lane.granted = lane.limit;
  }
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
  return has_to_send(event.id());
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
    packet = at(next.id(), std::countr_zero(ports[next.id()].queued)).queue.head;
  }
  if (packet != k_none) __builtin_prefetch(&packets[packet]);
}

void Simulation::Engine::handle(Event event) {
  switch (event.kind()) {
    case EventKind::packet_arrival:
      on_packet_arrival(event.id());
      return;
    case EventKind::port_ready:
      if (ports[event.id()].wake_at != event.time) return;
      ports[event.id()].wake_at = k_never;
      if (is_anything_under_way() || has_to_send(event.id())) kick(event.id());
      return;
    case EventKind::pause_arrival:
      on_pause_arrival(event.id());
      return;
    case EventKind::receive_done:
      on_receive_done(event.id());
      return;
    case EventKind::input_free:
      on_input_free(event.id());
      return;
    case EventKind::pace:
      on_pace(event.id());
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
  const std::uint32_t port = event.id() / k_num_classes;
  const int traffic_class = static_cast<int>(event.id() % k_num_classes);
  const auto kind = event.kind();
  if (kind == EventKind::sample || kind == EventKind::watch || kind == EventKind::pause_refresh) --idle_events;
  switch (kind) {
    case EventKind::credit_due:
      send_credit(port, traffic_class);
      return;
    case EventKind::pause_expiry:
      on_pause_expiry(port, traffic_class);
      return;
    case EventKind::pause_refresh:
      on_pause_refresh(port, traffic_class);
      return;
    case EventKind::message_done:
      on_message_done(event.id());
      return;
    case EventKind::timer:
      on_timer(event.id());
      return;
    case EventKind::timeout:
      on_timeout(event.id());
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
    const auto sent = at(index(where.port), where.traffic_class).sent_bytes;
    const auto& queue = at(index(where.port), where.traffic_class);
    queue_samples.push_back({Duration{now}, where, Bytes{queue.queue_bytes}, rate(sent - sampled_bytes[i])});
    sampled_bytes[i] = sent;
  }
  for (std::uint32_t id = 0; options.sample_flows && id < queue_pairs.size(); ++id) {
    if (flow_samples.size() >= options.max_samples) break;
    auto& state = queue_pairs[id];
    flow_samples.push_back(
        {Duration{now}, QueuePairId{id}, rate(state.delivered - state.sampled), Bandwidth{state.machine.rate}});
    state.sampled = state.delivered;
  }
  is_sampling = events.size() > idle_events;
  if (!is_sampling) return;
  ++idle_events;
  events.push(now + as_step(options.sample_interval), EventKind::sample, 0);
}

}  // namespace fabricast::packet
