// SPDX-License-Identifier: Apache-2.0
#include "topology/network.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <functional>
#include <limits>

namespace fabricast::topology {

namespace {

constexpr auto k_unreachable = std::numeric_limits<std::uint16_t>::max();

/// splitmix64: spreads flow numbers evenly over equal-cost links, the same on every machine.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

struct Network::SwitchGraph {
  boost::compressed_sparse_row_graph<boost::directedS> graph;
};

Network::~Network() = default;

Network::Network(int num_nodes, std::vector<std::pair<int, int>> cables, int first_link, Options options)
    : edges_(static_cast<std::size_t>(num_nodes)),
      cables_(std::move(cables)),
      first_link_(first_link),
      coordinates_(std::move(options.coordinates)),
      dimensions_(std::move(options.dimensions)),
      groups_(std::move(options.groups)),
      is_switch_(std::move(options.is_switch)),
      is_routed_by_destination_(options.is_routed_by_destination),
      routing_(options.routing) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t c = 0; c < cables_.size(); ++c) {
    const auto [a, b] = cables_[c];
    const int link = first_link + 2 * static_cast<int>(c);
    edges_[static_cast<std::size_t>(a)].push_back({b, link});
    edges_[static_cast<std::size_t>(b)].push_back({a, link + 1});
    // HCAs do not forward: only edges between switches count for distances.
    if (is_switch_[static_cast<std::size_t>(a)] && is_switch_[static_cast<std::size_t>(b)]) {
      pairs.emplace_back(a, b);
      pairs.emplace_back(b, a);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  graph_ = std::make_unique<SwitchGraph>();
  graph_->graph = {boost::edges_are_sorted, pairs.begin(), pairs.end(), edges_.size()};
  if (routing_ == Routing::up_down) choose_order();
}

int Network::entry_of(int node) const {
  if (is_switch_[static_cast<std::size_t>(node)]) return node;
  for (const auto& edge : edges_[static_cast<std::size_t>(node)]) {
    if (is_switch_[static_cast<std::size_t>(edge.to)]) return edge.to;
  }
  return -1;
}

std::vector<std::uint16_t> Network::minimal_distances(int target) const {
  std::vector<std::uint16_t> distance(edges_.size(), k_unreachable);
  distance[static_cast<std::size_t>(target)] = 0;
  boost::breadth_first_search(
      graph_->graph, static_cast<std::size_t>(target),
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge()))));
  return distance;
}

const std::vector<std::uint16_t>& Network::distances_to(int target) const {
  const auto [it, is_new] = distances_.try_emplace(target);
  if (is_new) it->second = routing_ == Routing::up_down ? up_down_distances(target) : minimal_distances(target);
  return it->second;
}

bool Network::uses_dimension_order() const {
  return routing_ == Routing::automatic || routing_ == Routing::dimension_order;
}

/// The short way round in the first dimension that differs.
std::vector<Network::Edge> Network::next_in_dimension_order(int at, int to) const {
  std::vector<Edge> next;
  const auto& here = coordinates_[static_cast<std::size_t>(at)];
  const auto& there = coordinates_[static_cast<std::size_t>(to)];
  for (std::size_t d = 0; d < here.size(); ++d) {
    if (here[d] == there[d]) continue;
    const int size = dimensions_[d];
    const int ahead = (there[d] - here[d] + size) % size;
    const int step = 2 * ahead <= size ? 1 : size - 1;
    auto wanted = here;
    wanted[d] = (here[d] + step) % size;
    for (const auto& edge : edges_[static_cast<std::size_t>(at)]) {
      if (coordinates_[static_cast<std::size_t>(edge.to)] == wanted) next.push_back(edge);
    }
    return next;
  }
  return next;
}

std::vector<Network::Edge> Network::next_edges(int at, int to, bool has_descended) const {
  const bool on_torus =
      !coordinates_[static_cast<std::size_t>(at)].empty() && !coordinates_[static_cast<std::size_t>(to)].empty();
  if (on_torus && uses_dimension_order()) return next_in_dimension_order(at, to);
  const auto& distance = distances_to(to);
  std::vector<Edge> next;
  if (routing_ != Routing::up_down) {
    const auto left = distance[static_cast<std::size_t>(at)];
    for (const auto& edge : edges_[static_cast<std::size_t>(at)]) {
      if (is_switch_[static_cast<std::size_t>(edge.to)] && distance[static_cast<std::size_t>(edge.to)] + 1 == left)
        next.push_back(edge);
    }
    return next;
  }
  const auto n = edges_.size();
  const auto left = distance[static_cast<std::size_t>(at) + (has_descended ? n : 0)];
  for (const auto& edge : edges_[static_cast<std::size_t>(at)]) {
    if (!is_switch_[static_cast<std::size_t>(edge.to)]) continue;
    const bool down = is_down(at, edge.to);
    if (has_descended && !down) continue;
    if (distance[static_cast<std::size_t>(edge.to) + (down ? n : 0)] + 1 == left) next.push_back(edge);
  }
  return next;
}

/// Destination modulo the number of next switches, then modulo the parallel cables to the one picked. `destination`
/// loses the digits used, so that the next tier picks by the remaining ones.
const Network::Edge& Network::by_destination(const std::vector<Edge>& next, std::uint64_t& destination) {
  std::vector<int> neighbours;
  for (const auto& edge : next) {
    if (std::find(neighbours.begin(), neighbours.end(), edge.to) == neighbours.end()) neighbours.push_back(edge.to);
  }
  const int neighbour = neighbours[destination % neighbours.size()];
  destination /= neighbours.size();
  std::vector<const Edge*> parallel;
  for (const auto& edge : next) {
    if (edge.to == neighbour) parallel.push_back(&edge);
  }
  return *parallel[destination % parallel.size()];
}

std::vector<LinkId> Network::route(int from, int to, std::uint64_t flow) const {
  if (from == to) return {};
  for (const auto& edge : edges_[static_cast<std::size_t>(from)]) {
    if (edge.to == to) return {{edge.link}};
  }
  const int first = entry_of(from);
  const int last = entry_of(to);
  if (first < 0 || last < 0) return {};
  std::vector<LinkId> links;
  for (const auto& edge : edges_[static_cast<std::size_t>(from)]) {
    if (first == from) break;
    if (edge.to == first) {
      links.push_back({edge.link});
      break;
    }
  }
  const auto& distance = distances_to(last);
  if (distance[static_cast<std::size_t>(first)] == k_unreachable) return {};
  // One hash per flow and pair of ends; each hop takes other bits, so that successive choices are independent.
  auto hash =
      mixed(flow * 0x1000193ULL + mixed((static_cast<std::uint64_t>(from) << 32) ^ static_cast<std::uint64_t>(to)));
  auto destination = static_cast<std::uint64_t>(to);
  bool has_descended = false;
  for (int at = first; at != last;) {
    const auto next = next_edges(at, last, has_descended);
    if (next.empty()) return {};
    const auto& edge = is_routed_by_destination_ ? by_destination(next, destination) : next[hash % next.size()];
    hash = mixed(hash);
    links.push_back({edge.link});
    if (routing_ == Routing::up_down) has_descended = is_down(at, edge.to);
    at = edge.to;
  }
  for (const auto& edge : edges_[static_cast<std::size_t>(last)]) {
    if (last == to) break;
    if (edge.to == to) {
      links.push_back({edge.link});
      break;
    }
  }
  return links;
}

std::vector<std::vector<LinkId>> Network::all_routes(int from, int to, std::size_t limit) const {
  std::vector<std::vector<LinkId>> routes;
  const auto one = route(from, to, 0);
  const int first = entry_of(from);
  const int last = entry_of(to);
  if (one.size() < 2 || first < 0 || last < 0) {
    if (!one.empty()) routes.push_back(one);
    return routes;
  }
  std::vector<LinkId> links{one.front()};
  if (first == from) links.clear();
  const std::function<void(int, bool)> walk = [&](int at, bool has_descended) {
    if (routes.size() >= limit) return;
    if (at == last) {
      auto whole = links;
      if (last != to) whole.push_back(one.back());
      routes.push_back(std::move(whole));
      return;
    }
    for (const auto& edge : next_edges(at, last, has_descended)) {
      links.push_back({edge.link});
      walk(edge.to, routing_ == Routing::up_down && is_down(at, edge.to));
      links.pop_back();
    }
  };
  walk(first, false);
  return routes;
}

}  // namespace fabricast::topology
