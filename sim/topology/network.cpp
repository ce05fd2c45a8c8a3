// SPDX-License-Identifier: Apache-2.0
#include "topology/network.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/connected_components.hpp>
#include <functional>
#include <limits>

namespace fabricast::topology {

namespace {

constexpr std::size_t k_max_distances = 128U << 20U;  // entries kept before they are found anew: 256 MiB
constexpr std::uint64_t k_max_steps = 1U << 19U;      // the same: 8 MiB, all of 512 switches

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

/// Picks among equal-cost links, the same every time.
class Network::Chooser {
 public:
  /// One hash per flow and pair of ends; each hop takes other bits, so that successive choices are independent.
  Chooser(bool by_destination, int from, int to, int to_port, std::uint64_t flow)
      : by_destination_(by_destination),
        destination_(static_cast<std::uint64_t>(to_port)),
        hash_(mixed(flow * 0x1000193ULL +
                    mixed((static_cast<std::uint64_t>(from) << 32) ^ static_cast<std::uint64_t>(to)))) {}

  std::size_t below(std::size_t count) {
    if (by_destination_) {
      const auto picked = destination_ % count;
      destination_ /= count;
      return picked;
    }
    const auto picked = hash_ % count;
    hash_ = mixed(hash_);
    return picked;
  }

  /// By destination: first among the next switches, then among the parallel cables to the one picked. The destination
  /// loses only the digit of the switch: the next tier picks by the rest, and the way down between the same two tiers
  /// picks among its parallel cables by the digit used on the way up.
  Edge among(const Step& next) {
    if (!by_destination_) return next.all[below(next.all.size())];
    if (next.all.size() == 1) return next.all.front();
    const auto& parallel = next.by_neighbour[below(next.by_neighbour.size())];
    return parallel[destination_ % parallel.size()];
  }

 private:
  bool by_destination_;
  std::uint64_t destination_;
  std::uint64_t hash_;
};

Network::~Network() = default;

Network::Network(NetworkPlan plan)
    : plan_(std::move(plan)), edges_(static_cast<std::size_t>(plan_.num_hcas + plan_.num_switches)) {
  plan_.coordinates.resize(static_cast<std::size_t>(plan_.num_switches));
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t c = 0; c < plan_.cables.size(); ++c) {
    const auto [a, b] = plan_.cables[c];
    const int link = plan_.first_link + 2 * static_cast<int>(c);
    edges_[static_cast<std::size_t>(a)].push_back({b, link});
    edges_[static_cast<std::size_t>(b)].push_back({a, link + 1});
    if (is_failed(c)) continue;
    // HCAs do not forward: only edges between switches count for distances.
    if (is_switch(a) && is_switch(b)) {
      pairs.emplace_back(a - plan_.num_hcas, b - plan_.num_hcas);
      pairs.emplace_back(b - plan_.num_hcas, a - plan_.num_hcas);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  graph_ = std::make_unique<SwitchGraph>();
  graph_->graph = {boost::edges_are_sorted, pairs.begin(), pairs.end(), static_cast<std::size_t>(plan_.num_switches)};
  steps_.resize(static_cast<std::size_t>(plan_.num_switches));
  label_parts();
  number_by_port();
  remove_failed();
  collect_global_cables();
  if (plan_.routing == Routing::up_down) choose_order();
}

void Network::remove_failed() {
  if (plan_.failed.empty()) return;
  for (auto& edges : edges_)
    std::erase_if(edges, [&](const Edge& edge) {
      return is_failed(static_cast<std::size_t>((edge.link - plan_.first_link) / 2));
    });
}

std::unique_ptr<Network> Network::without(const std::vector<int>& cables) const {
  auto plan = plan_;
  plan.failed.resize(plan.cables.size(), false);
  for (const int cable : cables) plan.failed[static_cast<std::size_t>(cable)] = true;
  return std::make_unique<Network>(std::move(plan));
}

void Network::label_parts() {
  part_.assign(static_cast<std::size_t>(plan_.num_switches), 0);
  if (plan_.num_switches > 0) boost::connected_components(graph_->graph, part_.data());
}

/// Subnet managers deal routes out leaf by leaf: HCAs of one switch get successive numbers, whatever hosts they are in.
void Network::number_by_port() {
  port_number_.assign(static_cast<std::size_t>(plan_.num_hcas), -1);
  int next = 0;
  for (int node = plan_.num_hcas; node < plan_.num_hcas + plan_.num_switches; ++node) {
    for (const auto& edge : edges_of(node)) {
      if (!is_switch(edge.to) && port_number_[static_cast<std::size_t>(edge.to)] < 0)
        port_number_[static_cast<std::size_t>(edge.to)] = next++;
    }
  }
}

int Network::group_of(int node) const {
  const int router = node - plan_.num_hcas;
  if (plan_.routers_per_group == 0 || router < 0 || router >= plan_.num_routers) return -1;
  return router / plan_.routers_per_group;
}

void Network::collect_global_cables() {
  for (int node = plan_.num_hcas; node < plan_.num_hcas + plan_.num_routers; ++node) {
    for (const auto& edge : edges_of(node)) {
      const int group = group_of(edge.to);
      if (group >= 0 && group != group_of(node)) global_cables_[{group_of(node), group}].push_back({node, edge});
    }
  }
}

/// [switch without the HCAs] -> switches on the way to `target`.
const std::vector<std::uint16_t>& Network::distances_to(int target) const {
  const auto known = distances_.find(target);
  if (known != distances_.end()) return known->second;
  if ((distances_.size() + 1) * static_cast<std::size_t>(plan_.num_switches) > k_max_distances) distances_.clear();
  if (plan_.routing == Routing::up_down) return distances_.emplace(target, up_down_distances(target)).first->second;
  const auto root = static_cast<std::size_t>(target - plan_.num_hcas);
  std::vector<std::uint16_t> distance(static_cast<std::size_t>(plan_.num_switches), k_unreachable);
  distance[root] = 0;
  boost::breadth_first_search(
      graph_->graph, root,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge()))));
  return distances_.emplace(target, std::move(distance)).first->second;
}

Network::Edges Network::direct_edges(int from, int to) const {
  Edges direct;
  for (const auto& edge : edges_of(from)) {
    if (edge.to == to) direct.push_back(edge);
  }
  return direct;
}

/// Pairs of first and last switch with the fewest switches between: one pair unless an HCA has several cables.
std::vector<Network::Ends> Network::nearest_ends(int from, int to) const {
  std::vector<Ends> nearest;
  if (edges_of(from).size() == 1 && edges_of(to).size() == 1) {
    const auto& first = edges_of(from).front();
    const auto& last = edges_of(to).front();
    if (is_switch(first.to) && is_switch(last.to) && part_of(first.to) == part_of(last.to))
      nearest.push_back({first, {last.to, last.link ^ 1}});
    return nearest;
  }
  auto best = k_unreachable;
  for (const auto& last : edges_of(to)) {
    if (!is_switch(last.to)) continue;
    const auto& distance = distances_to(last.to);
    for (const auto& first : edges_of(from)) {
      if (!is_switch(first.to)) continue;
      const auto hops = distance[static_cast<std::size_t>(first.to - plan_.num_hcas)];
      if (hops > best || hops == k_unreachable) continue;
      if (hops < best) nearest.clear();
      best = hops;
      nearest.push_back({first, {last.to, last.link ^ 1}});
    }
  }
  return nearest;
}

/// The first dimension that differs, the short way round; both ways when they are equally long.
Network::Edges Network::next_on_torus(int at, int to) const {
  const auto& here = plan_.coordinates[static_cast<std::size_t>(at - plan_.num_hcas)];
  const auto& there = plan_.coordinates[static_cast<std::size_t>(to - plan_.num_hcas)];
  std::size_t d = 0;
  while (here[d] == there[d]) ++d;
  const int size = plan_.dimensions[d];
  const int ahead = (there[d] - here[d] + size) % size;
  Edges next;
  for (const auto& edge : edges_of(at)) {
    if (!is_switch(edge.to)) continue;
    const auto& place = plan_.coordinates[static_cast<std::size_t>(edge.to - plan_.num_hcas)];
    if (place.empty()) continue;
    auto along = here;
    along[d] = place[d];
    const int step = (place[d] - here[d] + size) % size;
    const bool is_short_way = (step == 1 && 2 * ahead <= size) || (step == size - 1 && 2 * ahead >= size);
    if (is_short_way && place == along) next.push_back(edge);
  }
  return next;
}

/// Local, global, local: over a cable between the two groups, never through a third group.
Network::Edges Network::next_on_dragonfly(int at, int to) const {
  if (group_of(at) == group_of(to)) return direct_edges(at, to);
  const auto cables = global_cables_.find({group_of(at), group_of(to)});
  if (cables == global_cables_.end()) return {};
  const auto hops = [&](const GlobalCable& cable) {
    return (cable.router != at ? 1 : 0) + (cable.edge.to != to ? 1 : 0);
  };
  int best = 2;
  for (const auto& cable : cables->second) best = std::min(best, hops(cable));
  Edges next;
  std::vector<int> gateways;
  for (const auto& cable : cables->second) {
    if (hops(cable) != best) continue;
    if (cable.router == at) {
      next.push_back(cable.edge);
    } else if (std::find(gateways.begin(), gateways.end(), cable.router) == gateways.end()) {
      gateways.push_back(cable.router);
      const auto local = direct_edges(at, cable.router);
      next.insert(next.end(), local.begin(), local.end());
    }
  }
  return next;
}

Network::Edges Network::next_by_distance(int at, int to) const {
  const auto& distance = distances_to(to);
  const auto left = distance[static_cast<std::size_t>(at - plan_.num_hcas)];
  Edges next;
  for (const auto& edge : edges_of(at)) {
    if (is_switch(edge.to) && distance[static_cast<std::size_t>(edge.to - plan_.num_hcas)] + 1 == left)
      next.push_back(edge);
  }
  return next;
}

Network::Edges Network::next_edges(int at, int to, bool has_descended) const {
  if (plan_.routing == Routing::up_down) return next_up_down(at, to, has_descended);
  if (plan_.routing == Routing::minimal) return next_by_distance(at, to);
  const auto has_place = [&](int node) {
    return !plan_.coordinates[static_cast<std::size_t>(node - plan_.num_hcas)].empty();
  };
  if (!plan_.dimensions.empty() && has_place(at) && has_place(to)) return next_on_torus(at, to);
  if (group_of(at) >= 0 && group_of(to) >= 0) {
    auto next = next_on_dragonfly(at, to);
    if (!next.empty()) return next;
  }
  return next_by_distance(at, to);
}

Network::Step Network::step_of(Edges edges) {
  Step step;
  step.all = std::move(edges);
  for (const auto& edge : step.all) {
    const auto known =
        std::ranges::find_if(step.by_neighbour, [&](const Edges& one) { return one.front().to == edge.to; });
    if (known == step.by_neighbour.end()) {
      step.by_neighbour.push_back({edge});
    } else {
      known->push_back(edge);
    }
  }
  return step;
}

const Network::Step& Network::next_step(int at, int to, bool has_descended) const {
  const auto num_switches = static_cast<std::uint64_t>(plan_.num_switches);
  const auto from = static_cast<std::uint64_t>(at - plan_.num_hcas);
  const auto key =
      2 * (from * num_switches + static_cast<std::uint64_t>(to - plan_.num_hcas)) + (has_descended ? 1 : 0);
  if (known_steps_.empty()) known_steps_.resize(std::min(k_max_steps, 2 * num_switches * num_switches));
  auto& known = known_steps_[key % known_steps_.size()];
  if (known.key == key) return *known.step;
  auto edges = next_edges(at, to, has_descended);
  auto& own = steps_[static_cast<std::size_t>(at - plan_.num_hcas)];
  auto same = std::ranges::find(own, edges, &Step::all);
  if (same == own.end()) same = own.insert(own.end(), step_of(std::move(edges)));
  known = {key, &*same};
  return *same;
}

std::optional<int> Network::common_start(int hca) const {
  const auto& edges = edges_of(hca);
  if (!plan_.is_routed_by_destination || edges.size() != 1 || !is_switch(edges.front().to)) return std::nullopt;
  return edges.front().to;
}

std::vector<LinkId> Network::route(int from, int to, std::uint64_t flow) const {
  if (from == to) return {};
  Chooser chooser(plan_.is_routed_by_destination, from, to, port_number_[static_cast<std::size_t>(to)], flow);
  if (const auto direct = direct_edges(from, to); !direct.empty()) return {{chooser.among(step_of(direct)).link}};
  const auto ends = nearest_ends(from, to);
  if (ends.empty()) return {};
  const auto& end = ends.size() == 1 ? ends.front() : ends[chooser.below(ends.size())];
  constexpr std::size_t usual_length = 6;  // three tiers
  std::vector<LinkId> links;
  links.reserve(usual_length);
  links.push_back({end.out.link});
  bool has_descended = false;
  for (int at = end.out.to; at != end.in.to;) {
    const auto edge = chooser.among(next_step(at, end.in.to, has_descended));
    links.push_back({edge.link});
    if (plan_.routing == Routing::up_down) has_descended = is_down(at, edge.to);
    at = edge.to;
  }
  links.push_back({end.in.link});
  return links;
}

std::vector<std::vector<LinkId>> Network::all_routes(int from, int to, std::size_t limit) const {
  std::vector<std::vector<LinkId>> routes;
  if (from == to) return routes;
  if (const auto direct = direct_edges(from, to); !direct.empty()) {
    for (const auto& edge : direct) {
      if (routes.size() < limit) routes.push_back({{edge.link}});
    }
    return routes;
  }
  std::vector<LinkId> links;
  const std::function<void(int, const Edge&, bool)> walk = [&](int at, const Edge& in, bool has_descended) {
    if (routes.size() >= limit) return;
    if (at == in.to) {
      routes.push_back(links);
      routes.back().push_back({in.link});
      return;
    }
    for (const auto& edge : next_edges(at, in.to, has_descended)) {
      links.push_back({edge.link});
      walk(edge.to, in, plan_.routing == Routing::up_down && is_down(at, edge.to));
      links.pop_back();
    }
  };
  for (const auto& end : nearest_ends(from, to)) {
    links = {{end.out.link}};
    walk(end.out.to, end.in, false);
  }
  return routes;
}

}  // namespace fabricast::topology
