// SPDX-License-Identifier: Apache-2.0
// PAUSE: decisions at the ingress, frames on the wire, and what a paused egress does. A frame speaks of all classes
// whose state changed since the last one; with quanta it is repeated while XOFF lasts and its effect ends by itself.
#include <algorithm>
#include <bit>

#include "packet/core.hpp"

namespace fabricast::packet {

namespace {

std::uint8_t with(std::uint8_t mask, int bit) { return static_cast<std::uint8_t>(mask | 1U << bit); }
std::uint8_t without(std::uint8_t mask, int bit) { return static_cast<std::uint8_t>(mask & ~(1U << bit)); }

}  // namespace

// `egress`: the port that the packet which tripped the threshold wants to leave by; none at a host.
void Port::decide_xoff(int traffic_class, std::uint32_t egress) {
  auto& entry = at(traffic_class);
  xoff = with(xoff, traffic_class);
  entry.at_xoff = entry.ingress;
  if (egress != k_none) egress = core->switches[owner].congested_egress(*this, traffic_class, egress);
  entry.cause = egress == k_none ? port_id() : egress;
  const bool is_relayed = egress != k_none && core->ports[egress].is_paused(traffic_class);
  entry.cause_root = is_relayed ? core->ports[egress].at(traffic_class).root : entry.cause;
  ++count(traffic_class).pauses_sent;
  tell_pause_state(traffic_class);
  if (config().pfc.pause_quanta > 0 && (refreshing >> traffic_class & 1) == 0) plan_refresh(traffic_class);
}

void Port::plan_refresh(int traffic_class) {
  refreshing = with(refreshing, traffic_class);
  const auto& pfc = config().pfc;
  const Time interval = pfc.refresh_interval.ps > 0 ? pfc.refresh_interval.ps : pause_time() / 2;
  ++core->idle_events;
  core->events.push(core->now + interval, EventKind::pause_refresh, event_id(traffic_class));
}

void Port::decide_xon(int traffic_class) {
  xoff = without(xoff, traffic_class);
  tell_pause_state(traffic_class);
}

void Port::tell_pause_state(int traffic_class) {
  pause_due = with(pause_due, traffic_class);
  if (!config().pfc.is_pause_out_of_band) {
    kick();
    return;
  }
  const std::uint32_t id = make_pause_frame();
  auto& line = core->ports[peer].pause_wire;
  core->packets[id].time = core->now + delay + core->ports[peer].pause_response();
  if (line.head == k_none) core->events.push(core->packets[id].time, EventKind::pause_arrival, peer);
  core->packets.append(line, id);
}

std::uint32_t Port::make_pause_frame() {
  const std::uint32_t id = core->packets.take();
  auto& packet = core->packets[id];
  packet.kind = PacketKind::pause;
  packet.queue_pair = pause_due;
  packet.number = pause_due & xoff;
  for (unsigned rest = pause_due; rest != 0; rest &= rest - 1) ++count(std::countr_zero(rest)).pause_frames;
  pause_due = 0;
  return id;
}

Time Port::pause_response() const { return is_host ? hca_config().pause_response.ps : config().pfc.pause_response.ps; }

// What the quanta of a PAUSE frame mean on this link.
Time Port::pause_time() const { return wire_time(config().pfc.pause_quanta * 64); }

// Whether the timers of PAUSE frames run on over many pauses, each begun and ended by XOFF and XON. They bound a train
// then, and disturb when they act.
bool Port::has_slow_pause_timers() const {
  constexpr Time slow = 20'000'000;
  return pause_time() > slow;
}

void Port::on_pause_arrival() {
  const std::uint32_t id = core->packets.take_first(pause_wire);
  if (pause_wire.head != k_none)
    core->events.push(core->packets[pause_wire.head].time, EventKind::pause_arrival, port_id());
  const Packet packet = core->packets[id];
  core->packets.give_back(id);
  if (packet.kind == PacketKind::credit) {
    on_credit_arrival(packet);
    return;
  }
  for (unsigned rest = packet.queue_pair; rest != 0; rest &= rest - 1) {
    const int number = std::countr_zero(rest);
    if ((packet.number >> number & 1) != 0) {
      pause_class(number);
    } else {
      resume_class(number);
    }
  }
}

void Port::pause_class(int traffic_class) {
  auto& entry = at(traffic_class);
  if (!is_paused(traffic_class)) {
    paused = with(paused, traffic_class);
    entry.paused_since = core->now;
    const auto& other = core->ports[peer].at(traffic_class);
    entry.root = other.cause_root;
    auto& seldom = count(traffic_class);
    ++seldom.pauses_received;
    seldom.first_paused = std::min(seldom.first_paused, core->now);
    core->count_pause_cause(*this, traffic_class, other.cause, other.cause_root);
  }
  if (config().pfc.pause_quanta == 0) return;
  count(traffic_class).paused_until = core->now + pause_time();
  if ((expiring >> traffic_class & 1) != 0) return;
  expiring = with(expiring, traffic_class);
  core->events.push(core->now + pause_time(), EventKind::pause_expiry, event_id(traffic_class));
}

void Port::resume_class(int traffic_class) {
  if (!is_paused(traffic_class)) return;
  paused = without(paused, traffic_class);
  auto& entry = at(traffic_class);
  auto& seldom = count(traffic_class);
  seldom.paused += core->now - entry.paused_since;
  seldom.last_paused = core->now;
  core->record_pause(*this, traffic_class, entry.root, entry.paused_since);
  entry.paused_since = k_never;
  if (((queued | ready) >> traffic_class & 1) != 0) kick();
}

void Port::on_pause_expiry(int traffic_class) {
  expiring = without(expiring, traffic_class);
  if (!is_paused(traffic_class)) return;
  const Time until = count(traffic_class).paused_until;
  if (core->now >= until) {
    if (has_slow_pause_timers()) core->trains.disturb();
    resume_class(traffic_class);
    return;
  }
  expiring = with(expiring, traffic_class);
  core->events.push(until, EventKind::pause_expiry, event_id(traffic_class));
}

void Port::on_pause_refresh(int traffic_class) {
  refreshing = without(refreshing, traffic_class);
  if (!is_xoff(traffic_class)) return;
  if (has_slow_pause_timers()) core->trains.disturb();
  tell_pause_state(traffic_class);
  plan_refresh(traffic_class);
}

}  // namespace fabricast::packet
