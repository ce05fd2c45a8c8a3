// SPDX-License-Identifier: Apache-2.0
// From the engine's counters to Results: pauses and buffers per port, the pause tree, victims.
#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

namespace {

PortClass port_class(std::uint32_t port, std::uint32_t traffic_class) {
  return {PortId{port}, static_cast<std::uint8_t>(traffic_class)};
}

}  // namespace

// Pauses and waits for credits that have not ended.
std::vector<PauseInterval> Simulation::Engine::open_pauses() const {
  std::vector<PauseInterval> out;
  for (int number = 0; number < k_num_classes; ++number) {
    if (!is_used(number)) continue;
    for (const auto& port : ports) {
      const auto& entry = port.at(number);
      const Time since = std::min(entry.paused_since, port.count(number).starved_since);
      if (since >= now || entry.root == k_none) continue;
      out.push_back({port_class(port.port_id(), static_cast<std::uint32_t>(number)), PortId{entry.root},
                     Duration{since}, Duration{now}});
    }
  }
  return out;
}

std::vector<PauseEdge> Simulation::Engine::pause_tree() const {
  std::vector<PauseEdge> tree;
  for (const auto& [key, times] : pause_causes) {
    const auto [root, paused, because, number] = key;
    tree.push_back({port_class(paused, number), port_class(because, number), port_class(root, number), 0, times});
  }
  // Depth: 1 next to the root, one more than the edge that paused `because` elsewhere.
  std::map<std::pair<PortId, PortId>, int> depth_of;  // {root, paused}
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (auto& edge : tree) {
      if (edge.depth > 0) continue;
      const auto above = depth_of.find({edge.root.port, edge.because.port});
      if (edge.because == edge.root) edge.depth = 1;
      if (edge.depth == 0 && above != depth_of.end()) edge.depth = above->second + 1;
      if (edge.depth == 0) continue;
      auto& least = depth_of.try_emplace({edge.root.port, edge.paused.port}, edge.depth).first->second;
      least = std::min(least, edge.depth);
      has_changed = true;
    }
  }
  for (auto& edge : tree) edge.depth = std::max(edge.depth, 1);
  std::ranges::stable_sort(tree, [](const auto& a, const auto& b) {
    return std::pair{a.root.port, a.depth} < std::pair{b.root.port, b.depth};
  });
  return tree;
}

std::vector<std::uint32_t> Simulation::Engine::hops_of(const QueuePairState& state) const {
  std::vector<std::uint32_t> path{state.source};
  path.insert(path.end(), hops.begin() + state.route, hops.begin() + state.route + state.route_hops);
  return path;
}

// A flow is a victim of the longest pause on its path when none of that pause's roots, weighed by count, is a queue it
// uses.
std::vector<Victim> Simulation::Engine::victims() const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::uint32_t, std::uint64_t>> roots_of;
  for (const auto& [key, times] : pause_causes) roots_of[{key[1], key[3]}][key[0]] += times;
  std::vector<Victim> out;
  for (std::uint32_t id = 0; id < queue_pairs.size(); ++id) {
    const auto& state = queue_pairs[id];
    if (state.first_sent == k_never || state.has_free_route) continue;
    const auto path = hops_of(state);
    Victim victim{QueuePairId{id}, {}, {}, Duration{0}};
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      const auto port = path[hop];
      const int lane = hop == 0 ? state.traffic_class
                                : lane_on_hop(state.route + static_cast<std::uint32_t>(hop) - 1, state.traffic_class);
      const auto& seldom = ports[port].count(lane);
      const auto statistics = ports[port].statistics(lane);
      const Time paused = (statistics.paused + statistics.starved).ps;
      const bool is_over = state.oldest == k_none;
      const bool overlaps = seldom.first_paused < (is_over ? state.last_delivered : now) &&
                            (seldom.last_paused > state.first_sent || seldom.starved_since < now ||
                             ports[port].at(lane).paused_since < now);
      const auto roots = roots_of.find({port, static_cast<std::uint32_t>(lane)});
      if (!overlaps || roots == roots_of.end() || paused <= victim.paused.ps) continue;
      const auto main_root =
          std::ranges::max_element(roots->second, {}, [](const auto& entry) { return entry.second; })->first;
      if (std::ranges::find(path, main_root) != path.end() || main_root == state.destination) continue;
      victim.paused_at = port_class(port, static_cast<std::uint32_t>(lane));
      victim.root = port_class(main_root, static_cast<std::uint32_t>(lane));
      victim.paused = {paused};
    }
    if (victim.paused.ps > 0) out.push_back(victim);
  }
  return out;
}

Results Simulation::Engine::results() const {
  Results out;
  out.stop = stop_reason;
  out.now = Duration{now};
  out.events = num_events;
  out.packet_hops = packet_hops;
  out.delivered_packets = delivered_packets;
  out.trains = trains.num_trains;
  out.train_packets = trains.packets;
  out.lossless_drops = lossless_drops;
  out.lossy_drops = lossy_drops;
  out.ports.resize(ports.size());
  for (std::uint32_t port = 0; port < ports.size(); ++port)
    for (int number = 0; number < k_num_classes; ++number)
      out.ports[port][static_cast<std::size_t>(number)] = ports[port].statistics(number);
  for (const auto& memory : switches) out.max_switch_buffer.push_back(Bytes{memory.max_used});
  for (std::uint32_t id = 0; id < messages.size(); ++id) {
    const auto& message = messages[id];
    if (message.parent != k_none) continue;
    out.messages.push_back({MessageId{id}, QueuePairId{message.queue_pair}, message.tag, Bytes{message.bytes},
                            Duration{message.posted}, Duration{message.started}, Duration{message.delivered},
                            Duration{message.completed}});
  }
  for (const auto& state : queue_pairs)
    out.queue_pairs.push_back({Bytes{state.delivered}, state.packets, state.retransmitted, state.marked, state.cnps,
                               Bandwidth{state.control->rate()}});
  out.pause_tree = pause_tree();
  out.victims = victims();
  out.queue_samples = queue_samples;
  out.flow_samples = flow_samples;
  out.pause_intervals = pause_intervals;
  if (options.record_pauses) {
    const auto still = open_pauses();
    out.pause_intervals.insert(out.pause_intervals.end(), still.begin(), still.end());
  }
  out.deadlock = deadlock;
  return out;
}

}  // namespace fabricast::packet
