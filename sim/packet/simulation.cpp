// SPDX-License-Identifier: Apache-2.0
// The public face of the engine.
#include "packet/simulation.hpp"

#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

QueuePairId Simulation::Engine::add_queue_pair(const QueuePair& given) {
  const auto is_host_port = [&](PortId port) { return index(port) < ports.size() && ports[index(port)].is_host; };
  FABRICAST_ASSERT(is_host_port(given.source) && is_host_port(given.destination),
                   "queue pair between ports {} and {}, which are not both ports of hosts", index(given.source),
                   index(given.destination));
  FABRICAST_ASSERT(given.traffic_class >= 0 && given.traffic_class < k_num_classes, "class {}", given.traffic_class);
  QueuePairState state;
  state.source = index(given.source);
  state.destination = index(given.destination);
  const auto& transport = transport_of(state.source);
  state.traffic_class = static_cast<std::uint8_t>(given.traffic_class);
  state.ack_class = static_cast<std::uint8_t>(transport.ack_class < 0 ? given.traffic_class : transport.ack_class);
  state.packet_bytes = transport.mtu.value;
  state.ack_every = transport.ack_every;
  if (transport.window.value > 0) {
    state.window = static_cast<std::uint32_t>(transport.window.value / transport.mtu.value);
    state.ack_every = std::clamp(state.window / 2, 1U, state.ack_every);
  }
  state.control =
      make_congestion_control(transport, transport_of(state.destination), network.ports[state.source].rate.bytes_per_s);
  const int cnp_class = transport_of(state.destination).cnp_class;
  for (const int used : {int{state.traffic_class}, int{state.ack_class}, transport.cnp_class, cnp_class})
    use_class(used);
  set_routes(state, given);
  FABRICAST_ASSERT(!state.has_free_route || (transport.out_of_order && transport_of(state.destination).out_of_order),
                   "queue pair {} chooses ports per packet, and its ends take packets in order only",
                   queue_pairs.size());
  trains.disturb();
  queue_pairs.push_back(std::move(state));
  return QueuePairId{static_cast<std::uint32_t>(queue_pairs.size() - 1)};
}

MessageId Simulation::Engine::post(const Message& message) {
  const std::uint32_t id = index(message.queue_pair);
  FABRICAST_ASSERT(id < queue_pairs.size(), "message for queue pair {} of {}", id, queue_pairs.size());
  if (message.verb == Verb::read && queue_pairs[id].response == k_none) {
    // The data of READs travel on a queue pair of the other direction, with the routes exchanged.
    QueuePairState data;
    const auto& owner = queue_pairs[id];
    data.source = owner.destination;
    data.destination = owner.source;
    data.route = owner.reverse_route;
    data.route_hops = owner.reverse_hops;
    data.reverse_route = owner.route;
    data.reverse_hops = owner.route_hops;
    data.has_free_route = owner.has_free_route;
    data.traffic_class = owner.traffic_class;
    data.ack_class = owner.ack_class;
    data.packet_bytes = owner.packet_bytes;
    data.ack_every = k_none;  // the requester's own count of the data stands for acknowledgements
    data.is_response = true;
    data.control = make_congestion_control(transport_of(data.source), transport_of(data.destination),
                                           network.ports[data.source].rate.bytes_per_s);
    queue_pairs[id].response = static_cast<std::uint32_t>(queue_pairs.size());
    queue_pairs.push_back(std::move(data));
  }
  auto& sender = hca_of(queue_pairs[id].source);
  const std::uint32_t number = sender.append_message(id, message);
  ++unfinished_messages;
  sender.update_readiness(id);
  start_watching();
  return MessageId{number};
}

HostPathId Simulation::Engine::add_host_path(const HostPath& path) {
  trains.disturb();
  std::int64_t most = 0;
  for (const auto& hca : network.hca_configs) most = std::max(most, hca.transport.mtu.value);
  return stages.add_path(path, most);
}

Simulation::Simulation(const Network& network, Options options)
    : engine_(std::make_unique<Engine>(network, std::move(options))) {}
Simulation::~Simulation() = default;
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;

QueuePairId Simulation::add_queue_pair(const QueuePair& queue_pair) { return engine_->add_queue_pair(queue_pair); }
MessageId Simulation::post(const Message& message) { return engine_->post(message); }
StageId Simulation::add_stage(Bandwidth rate) { return engine_->add_stage(rate); }
Duration Simulation::pass(HostPathId path, double bytes) {
  auto& stages = engine_->stages;
  const auto& entry = stages.paths[static_cast<std::uint32_t>(path)];
  return Duration{stages.pass(entry.first, entry.sending, bytes, engine_->now, engine_->now)};
}
HostPathId Simulation::add_host_path(const HostPath& path) { return engine_->add_host_path(path); }

void Simulation::on_delivered(std::function<void(const Completion&)> handler) {
  engine_->on_delivered = std::move(handler);
}

void Simulation::on_completed(std::function<void(const Completion&)> handler) {
  engine_->on_completed = std::move(handler);
}

void Simulation::at(Duration time, std::function<void()> handler) {
  auto& engine = *engine_;
  std::uint32_t slot = static_cast<std::uint32_t>(engine.timers.size());
  if (engine.free_timers.empty()) {
    engine.timers.emplace_back();
  } else {
    slot = engine.free_timers.back();
    engine.free_timers.pop_back();
  }
  engine.timers[slot] = std::move(handler);
  engine.events.push(std::max(engine.now, within_range(time)), EventKind::timer, slot);
}

StopReason Simulation::run(Duration until) { return engine_->run(until.ps); }
Duration Simulation::now() const { return Duration{engine_->now}; }

std::vector<PortId> Simulation::route(QueuePairId queue_pair) const {
  std::vector<PortId> path;
  for (const auto port : engine_->hops_of(engine_->queue_pairs[index(queue_pair)])) path.push_back(PortId{port});
  return path;
}

Results Simulation::results() const { return engine_->results(); }

}  // namespace fabricast::packet
