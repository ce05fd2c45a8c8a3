// SPDX-License-Identifier: Apache-2.0
// Who waits for whom. An egress class is blocked when PAUSE or missing credits stop it. It can go on once its peer's
// ingress drains, and that ingress drains as long as one of its packets lies in an egress queue that can move. Blocked
// queues that are left when all others are taken away can never move again: a deadlock, whatever the rest of the
// network does.
#include <fmt/format.h>

#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

namespace {

// So many watches in a row with traffic and without a packet accepted are a livelock of retransmissions.
constexpr int k_futile_watches = 200;

// Follows the first queue that each one waits for until one comes again.
std::vector<PortClass> cycle_in(const std::map<std::uint32_t, std::vector<std::uint32_t>>& stuck) {
  std::vector<std::uint32_t> path{stuck.begin()->first};
  for (;;) {
    const auto& waits = stuck.at(path.back());
    const auto next = std::ranges::find_if(waits, [&](auto queue) { return stuck.contains(queue); });
    if (next == waits.end()) return {};
    const auto seen = std::ranges::find(path, *next);
    if (seen == path.end()) {
      path.push_back(*next);
      continue;
    }
    std::vector<PortClass> cycle;
    for (auto at = seen; at != path.end(); ++at)
      cycle.push_back({PortId{*at / k_num_classes}, static_cast<std::uint8_t>(*at % k_num_classes)});
    return cycle;
  }
}

}  // namespace

// Egress queues of the peer with packets that came in from `port` in this class.
std::vector<std::uint32_t> Simulation::Engine::waits_for(const Port& port, int traffic_class) const {
  std::vector<std::uint32_t> out;
  const auto& peer = ports[port.peer];
  const auto& memory = switches[peer.owner];
  for (const auto sibling : *memory.ports) {
    for (int lane = 0; lane < k_num_classes; ++lane) {
      if (!peer.has_credits && lane != traffic_class) continue;
      if (memory.holds_packets_of(ports[index(sibling)], lane, peer, traffic_class))
        out.push_back(index(sibling) * k_num_classes + static_cast<unsigned>(lane));
    }
  }
  return out;
}

void Simulation::Engine::watch() {
  is_watching = false;
  if (!is_anything_under_way()) return;
  const bool is_idle = events.size() <= idle_events;
  const bool is_futile = packet_hops > hops_at_watch && accepted_packets == accepted_at_watch;
  futile_watches = is_futile ? futile_watches + 1 : packet_hops > hops_at_watch ? 0 : futile_watches;
  hops_at_watch = packet_hops;
  accepted_at_watch = accepted_packets;
  find_deadlock(is_idle || futile_watches >= k_futile_watches);
  if (deadlock) return;
  is_watching = true;
  ++idle_events;
  // Nothing changes before the next event, however far that is.
  const Time usual = now + as_step(options.deadlock_interval);
  events.push(events.empty() ? usual : std::max(usual, events.next().time), EventKind::watch, 0);
}

void Simulation::Engine::find_deadlock(bool is_stalled) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> stuck;
  for (std::uint32_t port = 0; port < ports.size(); ++port) {
    const auto& state = ports[port];
    for (int number = 0; number < k_num_classes; ++number) {
      if (((state.queued | state.ready) >> number & 1) == 0) continue;
      if ((state.is_paused(number) || state.is_starved(number)) && !ports[state.peer].is_host)
        stuck[port * k_num_classes + static_cast<unsigned>(number)] = waits_for(state, number);
    }
  }
  for (bool has_changed = true; has_changed;) {
    has_changed =
        std::erase_if(stuck, [&](const auto& entry) {
          const auto& waits = entry.second;
          return waits.empty() || std::ranges::any_of(waits, [&](auto queue) { return !stuck.contains(queue); });
        }) > 0;
  }
  if (stuck.empty() && !is_stalled) return;
  Deadlock found;
  found.time = Duration{now};
  if (!stuck.empty()) found.cycle = cycle_in(stuck);
  for (std::uint32_t id = 0; id < queue_pairs.size(); ++id)
    if (queue_pairs[id].oldest != k_none) found.stuck.push_back(QueuePairId{id});
  found.reason = futile_watches >= k_futile_watches ? "packets move, but all are lost or out of order"
                                                    : "no packet can move and nothing is planned";
  for (std::size_t i = 0; i < found.cycle.size(); ++i)
    found.reason = (i == 0 ? std::string() : found.reason + ", waits for ") + network.link_name(found.cycle[i].port);
  if (!found.cycle.empty()) found.reason += fmt::format(", waits for {}", network.link_name(found.cycle[0].port));
  deadlock = std::move(found);
}

}  // namespace fabricast::packet
