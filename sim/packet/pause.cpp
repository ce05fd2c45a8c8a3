// SPDX-License-Identifier: Apache-2.0
// PAUSE: decisions at the ingress, frames on the wire, and what a paused egress does. A frame speaks of all classes
// whose state changed since the last one; with quanta it is repeated while XOFF lasts and its effect ends by itself.
#include <algorithm>
#include <bit>

#include "packet/engine.hpp"

namespace fabricast::packet {

namespace {

std::uint8_t with(std::uint8_t mask, int bit) { return static_cast<std::uint8_t>(mask | 1U << bit); }
std::uint8_t without(std::uint8_t mask, int bit) { return static_cast<std::uint8_t>(mask & ~(1U << bit)); }

}  // namespace

// The egress queue with the most bytes that came in by `port`: `egress`, where the packet that tripped the threshold
// goes, when that is at least half as long as the longest, else by the first packets of each queue.
std::uint32_t Simulation::Engine::congested_egress(std::uint32_t port, int traffic_class, std::uint32_t egress) const {
  constexpr int k_packets_looked_at = 32;
  const auto& siblings = network.nodes[ports[port].node].ports;
  const std::int64_t enough = 2 * at(egress, traffic_class).queue_bytes;
  const auto is_longer = [&](PortId id) { return at(index(id), traffic_class).queue_bytes > enough; };
  if (std::ranges::none_of(siblings, is_longer)) return egress;
  std::int64_t most = 0;
  for (const auto sibling : siblings) {
    std::int64_t bytes = 0;
    int looked_at = 0;
    for (auto id = at(index(sibling), traffic_class).queue.head; id != k_none && looked_at < k_packets_looked_at;
         id = packets[id].next, ++looked_at)
      if (packets[id].ingress == port) bytes += packets[id].frame;
    if (bytes <= most) continue;
    most = bytes;
    egress = index(sibling);
  }
  return egress;
}

// `egress`: the port that the packet which tripped the threshold wants to leave by; none at a host.
void Simulation::Engine::decide_xoff(std::uint32_t port, int traffic_class, std::uint32_t egress) {
  auto& state = ports[port];
  auto& entry = at(port, traffic_class);
  state.xoff = with(state.xoff, traffic_class);
  entry.at_xoff = entry.ingress;
  if (egress != k_none) egress = congested_egress(port, traffic_class, egress);
  entry.cause = egress == k_none ? port : egress;
  const bool is_relayed = egress != k_none && (ports[egress].paused >> traffic_class & 1) != 0;
  entry.cause_root = is_relayed ? at(egress, traffic_class).root : entry.cause;
  ++count(port, traffic_class).pauses_sent;
  tell_pause_state(port, traffic_class);
  const auto& pfc = config_of(port).pfc;
  if (pfc.pause_quanta == 0 || (state.refreshing >> traffic_class & 1) != 0) return;
  state.refreshing = with(state.refreshing, traffic_class);
  const Time interval = pfc.refresh_interval.ps > 0 ? pfc.refresh_interval.ps : pause_time(port) / 2;
  ++idle_events;
  events.push(now + interval, EventKind::pause_refresh, port * k_num_classes + static_cast<unsigned>(traffic_class));
}

void Simulation::Engine::decide_xon(std::uint32_t port, int traffic_class) {
  ports[port].xoff = without(ports[port].xoff, traffic_class);
  tell_pause_state(port, traffic_class);
}

void Simulation::Engine::tell_pause_state(std::uint32_t port, int traffic_class) {
  auto& state = ports[port];
  state.pause_due = with(state.pause_due, traffic_class);
  if (!config_of(port).pfc.is_pause_out_of_band) {
    kick(port);
    return;
  }
  const std::uint32_t id = make_pause_frame(port);
  auto& wire = ports[state.peer].pause_wire;
  packets[id].time = now + state.delay + pause_response_of(state.peer);
  if (wire.head == k_none) events.push(packets[id].time, EventKind::pause_arrival, state.peer);
  append(wire, id);
}

std::uint32_t Simulation::Engine::make_pause_frame(std::uint32_t port) {
  auto& state = ports[port];
  const std::uint32_t id = take_packet();
  auto& packet = packets[id];
  packet.kind = PacketKind::pause;
  packet.queue_pair = state.pause_due;
  packet.number = state.pause_due & state.xoff;
  for (unsigned rest = state.pause_due; rest != 0; rest &= rest - 1) ++count(port, std::countr_zero(rest)).pause_frames;
  state.pause_due = 0;
  return id;
}

Time Simulation::Engine::pause_response_of(std::uint32_t port) const {
  return ports[port].is_host ? hca_of(port).pause_response.ps : config_of(port).pfc.pause_response.ps;
}

/// What the quanta of a PAUSE frame mean on this link.
Time Simulation::Engine::pause_time(std::uint32_t port) const {
  return wire_time(ports[port], config_of(port).pfc.pause_quanta * 64);
}

void Simulation::Engine::on_pause_arrival(std::uint32_t port) {
  auto& wire = ports[port].pause_wire;
  const std::uint32_t id = take_first(wire);
  if (wire.head != k_none) events.push(packets[wire.head].time, EventKind::pause_arrival, port);
  const Packet packet = packets[id];
  give_back(id);
  if (packet.kind == PacketKind::credit) {
    on_credit_arrival(port, packet);
    return;
  }
  for (unsigned rest = packet.queue_pair; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    if ((packet.number >> number & 1) != 0) {
      pause_class(port, number);
    } else {
      resume_class(port, number);
    }
  }
}

void Simulation::Engine::pause_class(std::uint32_t port, int traffic_class) {
  auto& state = ports[port];
  auto& entry = at(port, traffic_class);
  if ((state.paused >> traffic_class & 1) == 0) {
    state.paused = with(state.paused, traffic_class);
    entry.paused_since = now;
    const auto& peer = at(state.peer, traffic_class);
    entry.root = peer.cause_root;
    auto& seldom = count(port, traffic_class);
    ++seldom.pauses_received;
    seldom.first_paused = std::min(seldom.first_paused, now);
    count_pause_cause(port, traffic_class, peer.cause, peer.cause_root);
  }
  if (config_of(port).pfc.pause_quanta == 0) return;
  count(port, traffic_class).paused_until = now + pause_time(port);
  if ((state.expiring >> traffic_class & 1) != 0) return;
  state.expiring = with(state.expiring, traffic_class);
  events.push(now + pause_time(port), EventKind::pause_expiry,
              port * k_num_classes + static_cast<unsigned>(traffic_class));
}

void Simulation::Engine::resume_class(std::uint32_t port, int traffic_class) {
  auto& state = ports[port];
  if ((state.paused >> traffic_class & 1) == 0) return;
  state.paused = without(state.paused, traffic_class);
  auto& entry = at(port, traffic_class);
  auto& seldom = count(port, traffic_class);
  seldom.paused += now - entry.paused_since;
  seldom.last_paused = now;
  record_pause(port, traffic_class, entry.root, entry.paused_since);
  entry.paused_since = k_never;
  if (((state.queued | state.ready) >> traffic_class & 1) != 0) kick(port);
}

void Simulation::Engine::on_pause_expiry(std::uint32_t port, int traffic_class) {
  auto& state = ports[port];
  state.expiring = without(state.expiring, traffic_class);
  if ((state.paused >> traffic_class & 1) == 0) return;
  const Time until = count(port, traffic_class).paused_until;
  if (now >= until) {
    if (has_slow_pause_timers(port)) trains.disturb();
    resume_class(port, traffic_class);
    return;
  }
  state.expiring = with(state.expiring, traffic_class);
  events.push(until, EventKind::pause_expiry, port * k_num_classes + static_cast<unsigned>(traffic_class));
}

void Simulation::Engine::on_pause_refresh(std::uint32_t port, int traffic_class) {
  auto& state = ports[port];
  state.refreshing = without(state.refreshing, traffic_class);
  if ((state.xoff >> traffic_class & 1) == 0) return;
  state.refreshing = with(state.refreshing, traffic_class);
  if (has_slow_pause_timers(port)) trains.disturb();
  tell_pause_state(port, traffic_class);
  const auto& pfc = config_of(port).pfc;
  const Time interval = pfc.refresh_interval.ps > 0 ? pfc.refresh_interval.ps : pause_time(port) / 2;
  ++idle_events;
  events.push(now + interval, EventKind::pause_refresh, port * k_num_classes + static_cast<unsigned>(traffic_class));
}

}  // namespace fabricast::packet
