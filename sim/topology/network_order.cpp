// SPDX-License-Identifier: Apache-2.0
// Up-down routing and virtual lanes: which links go up, how far a target is when a packet may not go up again, and in
// which lane a packet goes on. Up-down: Schroeder et al., Autonet, 1991.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "topology/network.hpp"

namespace fabricast::topology {

std::pair<int, int> Network::ends_of(LinkId link) const {
  const int number = link.value - plan_.first_link;
  const auto [a, b] = plan_.cables[static_cast<std::size_t>(number / 2)];
  return number % 2 == 0 ? std::pair(a, b) : std::pair(b, a);
}

std::vector<LinkId> Network::uplinks(int node) const {
  std::vector<LinkId> links;
  for (const auto& edge : edges_of(node)) {
    if (is_switch(edge.to)) links.push_back({edge.link});
  }
  return links;
}

std::vector<LinkId> Network::next_links(LinkId arrived, int to) const {
  const auto [from, at] = ends_of(arrived);
  std::vector<LinkId> links;
  if (at == to || !is_switch(at)) return links;
  const bool has_descended = plan_.routing == Routing::up_down && is_switch(from) && is_down(from, at);
  if (is_switch(to)) {
    if (part_of(to) != part_of(at)) return links;
    for (const auto& edge : next_edges(at, to, has_descended)) links.push_back({edge.link});
    return links;
  }
  for (const auto& edge : direct_edges(at, to)) links.push_back({edge.link});
  if (!links.empty()) return links;
  for (const auto& last : edges_of(to)) {
    if (!is_switch(last.to) || part_of(last.to) != part_of(at)) continue;
    for (const auto& edge : next_edges(at, last.to, has_descended)) links.push_back({edge.link});
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

Network::Edges Network::next_up_down(int at, int to, bool has_descended) const {
  const auto& distance = distances_to(to);
  const auto n = static_cast<std::size_t>(plan_.num_switches);
  const auto place = [&](int node, bool down) {
    return static_cast<std::size_t>(node - plan_.num_hcas) + (down ? n : 0);
  };
  const auto left = distance[place(at, has_descended)];
  Edges next;
  for (const auto& edge : edges_of(at)) {
    if (!is_switch(edge.to)) continue;
    const bool down = is_down(at, edge.to);
    if (has_descended && !down) continue;
    if (distance[place(edge.to, down)] + 1 == left) next.push_back(edge);
  }
  return next;
}

std::vector<std::uint16_t> Network::up_down_distances(int target) const {
  const auto n = static_cast<std::size_t>(plan_.num_switches);
  std::vector<std::uint16_t> distance(2 * n, k_unreachable);
  using Entry = std::pair<int, std::size_t>;  // hops, state
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto reach = [&](std::size_t state, int hops) {
    if (hops >= distance[state]) return;
    distance[state] = static_cast<std::uint16_t>(hops);
    open.emplace(hops, state);
  };
  reach(n + static_cast<std::size_t>(target - plan_.num_hcas), 0);
  while (!open.empty()) {
    const auto [hops, state] = open.top();
    open.pop();
    if (hops > distance[state]) continue;
    const bool descended = state >= n;
    const auto local = descended ? state - n : state;
    const int node = static_cast<int>(local) + plan_.num_hcas;
    if (descended) reach(local, hops);  // a packet may start to descend anywhere
    for (const auto& edge : edges_of(node)) {
      if (!is_switch(edge.to) || is_down(edge.to, node) != descended) continue;
      reach(static_cast<std::size_t>(edge.to - plan_.num_hcas) + (descended ? n : 0), hops + 1);
    }
  }
  return distance;
}

/// Hops of every switch from the nearest of `sources`, by breadth-first search; -1 = not reached.
template <typename ForEachNeighbour>
std::vector<int> hops_from(const std::vector<int>& sources, std::size_t num_nodes, const ForEachNeighbour& visit) {
  std::vector<int> hops(num_nodes, -1);
  std::queue<int> open;
  for (const int source : sources) {
    hops[static_cast<std::size_t>(source)] = 0;
    open.push(source);
  }
  while (!open.empty()) {
    const int node = open.front();
    open.pop();
    visit(node, [&](int next) {
      if (hops[static_cast<std::size_t>(next)] >= 0) return;
      hops[static_cast<std::size_t>(next)] = hops[static_cast<std::size_t>(node)] + 1;
      open.push(next);
    });
  }
  return hops;
}

/// Places by hops from the nearest top, then by number.
void Network::order_from(const std::vector<int>& tops) {
  const auto level = hops_from(tops, edges_.size(), [this](int node, const auto& reach) {
    for (const auto& edge : edges_of(node)) {
      if (is_switch(edge.to)) reach(edge.to);
    }
  });
  const auto n = static_cast<std::int64_t>(edges_.size());
  order_.clear();
  for (int node = plan_.num_hcas; node < static_cast<int>(n); ++node) {
    const auto hops = level[static_cast<std::size_t>(node)];
    order_.push_back((hops < 0 ? n : hops) * n + node);
  }
  distances_.clear();
}

/// Every switch with an HCA reaches every other one of its part by a legal route.
bool Network::reaches_everybody() const {
  std::vector<int> entries;
  for (int hca = 0; hca < plan_.num_hcas; ++hca) {
    for (const auto& edge : edges_of(hca)) {
      if (is_switch(edge.to)) entries.push_back(edge.to);
    }
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  for (const int target : entries) {
    const auto distance = up_down_distances(target);
    for (const int from : entries) {
      if (part_of(from) == part_of(target) &&
          distance[static_cast<std::size_t>(from - plan_.num_hcas)] == k_unreachable)
        return false;
    }
  }
  return true;
}

/// Tops are the switches farthest from any HCA (the cores of a tree); where that leaves pairs without a legal route, or
/// every switch has HCAs, the one switch with the least sum of distances.
void Network::choose_order() {
  std::vector<int> hcas(static_cast<std::size_t>(plan_.num_hcas));
  std::iota(hcas.begin(), hcas.end(), 0);
  const auto to_switches = [this](int node, const auto& reach) {
    for (const auto& edge : edges_of(node)) {
      if (is_switch(edge.to)) reach(edge.to);
    }
  };
  const auto hops = hops_from(hcas, edges_.size(), to_switches);
  const int farthest = edges_.empty() ? 0 : *std::max_element(hops.begin(), hops.end());
  std::vector<int> tops;
  for (int node = plan_.num_hcas; node < static_cast<int>(edges_.size()); ++node) {
    if (farthest > 1 && hops[static_cast<std::size_t>(node)] == farthest) tops.push_back(node);
  }
  order_from(tops);
  if (!tops.empty() && reaches_everybody()) return;
  int middle = -1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int node = plan_.num_hcas; node < static_cast<int>(edges_.size()); ++node) {
    if (hops[static_cast<std::size_t>(node)] < 0) continue;
    std::int64_t sum = 0;
    for (const int d : hops_from({node}, edges_.size(), to_switches)) sum += std::max(0, d);
    if (sum >= least) continue;
    least = sum;
    middle = node;
  }
  if (middle >= 0) order_from({middle});
}

int Network::changed_dimension(LinkId link) const {
  const auto [from, to] = ends_of(link);
  if (!is_switch(from) || !is_switch(to)) return -1;
  const auto& a = plan_.coordinates[static_cast<std::size_t>(from - plan_.num_hcas)];
  const auto& b = plan_.coordinates[static_cast<std::size_t>(to - plan_.num_hcas)];
  for (std::size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
    if (a[d] != b[d]) return static_cast<int>(d);
  }
  return -1;
}

bool Network::wraps_around(LinkId link) const {
  const int d = changed_dimension(link);
  if (d < 0) return false;
  const auto [from, to] = ends_of(link);
  const auto i = static_cast<std::size_t>(d);
  const auto place = [&](int node) { return plan_.coordinates[static_cast<std::size_t>(node - plan_.num_hcas)][i]; };
  const int step = place(to) - place(from);
  return plan_.dimensions[i] > 2 && (step == plan_.dimensions[i] - 1 || step == 1 - plan_.dimensions[i]);
}

int Network::next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const {
  if (num_lanes < 2) return 0;
  const int dimension = changed_dimension(next);
  if (dimension >= 0) {
    const int before = changed_dimension(arrived) == dimension ? lane : 0;
    return wraps_around(next) ? 1 : before;
  }
  const auto [from, at] = ends_of(arrived);
  const int group = group_of(at);
  const int group_before = group_of(from);
  if (group >= 0 && group_before >= 0 && group != group_before) return std::min(lane + 1, num_lanes - 1);
  return lane;
}

}  // namespace fabricast::topology
