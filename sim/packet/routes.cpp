// SPDX-License-Identifier: Apache-2.0
// Paths of queue pairs (ECMP by hash, or given), and the choice of a port per packet (spraying in turn per queue pair,
// adaptive by queue).
#include <algorithm>
#include <numeric>
#include <set>

#include "packet/engine.hpp"
#include "packet/random.hpp"

namespace fabricast::packet {

namespace {

/// Longer ones begin anew: paths over dozens of switches with two choices each.
constexpr std::uint32_t k_longest_stride = 1U << 20;

std::uint32_t stride_behind(std::uint32_t stride, std::uint32_t choices) {
  return std::uint64_t{stride} * choices > k_longest_stride ? 1 : stride * choices;
}

}  // namespace

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
  const std::uint32_t goal = ports[last_hop].owner;
  std::uint32_t arrival = ports[from].peer;
  std::uint32_t node = ports[arrival].owner;
  std::uint32_t length = 1;
  while (node != goal) {
    const auto& choices = network.routing.candidates(NodeId{node}, NodeId{goal}, PortId{arrival});
    FABRICAST_ASSERT(!choices.empty(), "no route from {} to {}", network.nodes[node].name, network.nodes[goal].name);
    FABRICAST_ASSERT(length < 64, "the routes from {} to {} do not end", network.nodes[node].name,
                     network.nodes[goal].name);
    const std::uint64_t hash = mix(mix(options.seed + 0x9e3779b97f4a7c15ULL * (flow + 1)) + node);
    const std::uint32_t port = index(choices[hash % choices.size()]);
    hops.push_back(port);
    arrival = ports[port].peer;
    node = ports[arrival].owner;
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

std::uint32_t Switch::next_port(Packet& packet) const {
  if (packet.route != k_none) return core->hops[packet.route++];
  return choose_port(packet);
}

// A queue pair takes its choices in turn, from a first one that differs from switch to switch. The packets that one
// switch sees of it have all taken the same choice before, so its turn moves on once per `stride` packets: over
// (choices x choices behind x ...) packets every path is used once.
std::uint32_t Switch::choose_port(Packet& packet) const {
  const std::uint32_t last_hop = core->ports[core->queue_pairs[packet.queue_pair].destination].peer;
  const std::uint32_t goal = core->ports[last_hop].owner;
  if (goal == node) return last_hop;
  const auto& choices = core->network.routing.candidates(NodeId{node}, NodeId{goal}, PortId{packet.ingress});
  FABRICAST_ASSERT(!choices.empty(), "no route from {}", core->network.nodes[node].name);
  const auto number = static_cast<std::uint32_t>(choices.size());
  const std::uint64_t first = mix(mix(core->options.seed + 0x9e3779b97f4a7c15ULL * (packet.queue_pair + 1)) + node);
  const auto turn = static_cast<std::uint32_t>((packet.number / packet.stride + first % number) % number);
  packet.stride = stride_behind(packet.stride, number);
  std::uint32_t best = index(choices[turn]);
  if (core->options.routing == RoutingMode::spray) return best;
  for (std::uint32_t i = 1; i < number; ++i) {
    const std::uint32_t port = index(choices[(turn + i) % number]);
    if (is_less_loaded(port, best, packet.traffic_class)) best = port;
  }
  return best;
}

// Ports that PAUSE or missing credits have stopped come last, then queues count in grades.
bool Switch::is_less_loaded(std::uint32_t port, std::uint32_t than, int traffic_class) const {
  const auto load = [&](std::uint32_t id) {
    const auto& one = core->ports[id];
    const bool is_stopped = one.is_paused(traffic_class) || one.is_starved(traffic_class);
    return std::pair{is_stopped, one.at(traffic_class).queue_bytes / core->adaptive_grade};
  };
  return load(port) < load(than);
}

/// So many packets of a queue pair on, each of its choices is the same again, whatever it took before; 0 = more packets
/// than anybody counts.
std::uint64_t Simulation::Engine::spray_cycle(const QueuePairState& state) {
  constexpr std::uint64_t k_longest = 1U << 31;
  if (ports[state.source].peer == state.destination) return 1;
  const std::uint32_t goal = ports[ports[state.destination].peer].owner;
  const std::uint32_t start = ports[state.source].peer;
  const auto [known, is_new] = spray_cycles.try_emplace({ports[start].owner, goal}, 1);
  if (!is_new) return known->second;
  auto& cycle = known->second;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen{{start, 1}};  // {arrival, stride}
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open(seen.begin(), seen.end());
  while (!open.empty() && cycle != 0) {
    const auto [arrival, stride] = open.back();
    open.pop_back();
    const std::uint32_t node = ports[arrival].owner;
    if (node == goal) continue;
    const auto& choices = network.routing.candidates(NodeId{node}, NodeId{goal}, PortId{arrival});
    const auto number = static_cast<std::uint32_t>(choices.size());
    cycle = std::lcm(cycle, std::uint64_t{stride} * number);
    if (cycle > k_longest) cycle = 0;
    for (const auto port : choices) {
      const std::pair next{ports[index(port)].peer, stride_behind(stride, number)};
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return cycle;
}

}  // namespace fabricast::packet
