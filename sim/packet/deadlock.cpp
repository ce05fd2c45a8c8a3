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
std::vector<std::uint32_t> Simulation::Engine::waits_for(std::uint32_t port, int traffic_class) const {
  std::vector<std::uint32_t> out;
  const std::uint32_t peer = ports[port].peer;
  for (const auto sibling_id : network.nodes[ports[peer].node].ports) {
    const std::uint32_t sibling = index(sibling_id);
    for (int lane = 0; lane < k_num_classes; ++lane) {
      if (!ports[peer].has_credits && lane != traffic_class) continue;
      if (holds_packets_of(sibling, lane, peer, traffic_class))
        out.push_back(sibling * k_num_classes + static_cast<unsigned>(lane));
    }
  }
  return out;
}

/// Whether a packet that came in by `ingress` in `in_class` waits in an egress queue.
bool Simulation::Engine::holds_packets_of(std::uint32_t egress, int traffic_class, std::uint32_t ingress,
                                          int in_class) const {
  auto id = k_none;
  if (ports[ingress].has_credits) {
    const auto& memory = switches[ports[ingress].node];
    const auto& lists = memory.inputs[traffic_class];
    if (!lists.empty()) id = lists[std::size_t{ports[egress].local} * memory.num_ports + ports[ingress].local].head;
    while (id != k_none && packets[id].ingress_class != in_class) id = packets[id].next;
  } else if (!ports[egress].is_host) {
    id = at(egress, traffic_class).queue.head;
    while (id != k_none && packets[id].ingress != ingress) id = packets[id].next;
  }
  return id != k_none;
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
      const bool is_paused = (state.paused >> number & 1) != 0;
      const bool is_starved = state.has_credits && count(port, number).starved_since != k_never;
      if ((is_paused || is_starved) && !ports[state.peer].is_host)
        stuck[port * k_num_classes + static_cast<unsigned>(number)] = waits_for(port, number);
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
