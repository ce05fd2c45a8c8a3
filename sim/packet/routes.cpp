// SPDX-License-Identifier: Apache-2.0
// Paths of queue pairs (ECMP by hash, or given), and the choice of a port per packet (spraying, adaptive by queue).
#include <algorithm>

#include "packet/engine.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

void Simulation::Engine::set_routes(QueuePairState& state, const QueuePair& given) {
  const std::uint64_t flow = queue_pairs.size();
  state.has_free_route = given.route.empty() && options.routing != RoutingMode::ecmp;
  state.route = static_cast<std::uint32_t>(hops.size());
  state.route_hops = add_route(state.source, state.destination, 2 * flow, given.route);
  state.reverse_route = static_cast<std::uint32_t>(hops.size());
  state.reverse_hops = add_route(state.destination, state.source, 2 * flow + 1, given.reverse_route);
  set_lanes(state.route, given.lanes);
  set_lanes(state.reverse_route, given.reverse_lanes);
}

// Appends the egress ports of all switches between two host ports to the table of hops; gives their number.
std::uint32_t Simulation::Engine::add_route(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                                            const std::vector<PortId>& given) {
  for (const auto port : given) hops.push_back(index(port));
  if (!given.empty()) return static_cast<std::uint32_t>(given.size());
  const std::uint32_t last_hop = ports[to].peer;
  if (ports[from].peer == to) return 0;
  const std::uint32_t goal = ports[last_hop].node;
  std::uint32_t node = ports[ports[from].peer].node;
  std::uint32_t length = 1;
  while (node != goal) {
    const auto& choices = network.routing.candidates(NodeId{node}, NodeId{goal});
    FABRICAST_ASSERT(!choices.empty(), "no route from {} to {}", network.nodes[node].name, network.nodes[goal].name);
    FABRICAST_ASSERT(length < 64, "the routes from {} to {} do not end", network.nodes[node].name,
                     network.nodes[goal].name);
    const std::uint64_t hash = mix(mix(options.seed + 0x9e3779b97f4a7c15ULL * (flow + 1)) + node);
    const std::uint32_t port = index(choices[hash % choices.size()]);
    hops.push_back(port);
    node = ports[ports[port].peer].node;
    ++length;
  }
  hops.push_back(last_hop);
  return length;
}

void Simulation::Engine::set_lanes(std::uint32_t first_hop, const std::vector<std::uint8_t>& lanes) {
  if (lanes.empty()) return;
  hop_lanes.resize(hops.size(), k_same_lane);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    FABRICAST_ASSERT(lanes[i] < k_num_classes && first_hop + i < hops.size(), "lane {} of hop {}", lanes[i], i);
    hop_lanes[first_hop + i] = lanes[i];
    use_class(lanes[i]);
  }
}

std::uint32_t Simulation::Engine::next_port(std::uint32_t node, Packet& packet) {
  if (packet.route != k_none) return hops[packet.route++];
  return choose_port(node, queue_pairs[packet.queue_pair], packet.traffic_class);
}

std::uint32_t Simulation::Engine::choose_port(std::uint32_t node, const QueuePairState& state, int traffic_class) {
  const std::uint32_t last_hop = ports[state.destination].peer;
  if (ports[last_hop].node == node) return last_hop;
  const auto& choices = network.routing.candidates(NodeId{node}, NodeId{ports[last_hop].node});
  FABRICAST_ASSERT(!choices.empty(), "no route from {}", network.nodes[node].name);
  const auto number = static_cast<std::uint32_t>(choices.size());
  const std::uint32_t turn = spray_turn[node]++;
  std::uint32_t best = index(choices[turn % number]);
  if (options.routing == RoutingMode::spray) return best;
  for (std::uint32_t i = 1; i < number; ++i) {
    const std::uint32_t port = index(choices[(turn + i) % number]);
    const bool is_paused = (ports[port].paused >> traffic_class & 1) != 0;
    const bool is_best_paused = (ports[best].paused >> traffic_class & 1) != 0;
    if (is_paused != is_best_paused) {
      if (is_best_paused) best = port;
      continue;
    }
    const auto load = at(port, traffic_class).queue_bytes + (ports[port].free_at > now ? 1 : 0);
    const auto best_load = at(best, traffic_class).queue_bytes + (ports[best].free_at > now ? 1 : 0);
    if (load < best_load) best = port;
  }
  return best;
}

}  // namespace fabricast::packet
