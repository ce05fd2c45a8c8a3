// SPDX-License-Identifier: Apache-2.0
// Up-down routing and virtual lanes: which links go up, how far a target is when a packet may not go up again, and in
// which lane a packet goes on. Up-down: Schroeder et al., Autonet, 1991.
#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "topology/network.hpp"

namespace fabricast::topology {

namespace {

constexpr auto k_unreachable = std::numeric_limits<std::uint16_t>::max();

}  // namespace

std::pair<int, int> Network::ends_of(LinkId link) const {
  const int number = link.value - first_link_;
  const auto [a, b] = cables_[static_cast<std::size_t>(number / 2)];
  return number % 2 == 0 ? std::pair(a, b) : std::pair(b, a);
}

LinkId Network::uplink(int node) const {
  for (const auto& edge : edges_[static_cast<std::size_t>(node)]) {
    if (is_switch_[static_cast<std::size_t>(edge.to)]) return {edge.link};
  }
  return {-1};
}

std::vector<LinkId> Network::next_links(LinkId arrived, int to) const {
  const auto [from, at] = ends_of(arrived);
  std::vector<LinkId> links;
  if (at == to) return links;
  const int last = entry_of(to);
  if (last < 0) return links;
  if (at == last) {
    for (const auto& edge : edges_[static_cast<std::size_t>(at)]) {
      if (edge.to == to) return {{edge.link}};
    }
  }
  const bool from_switch = is_switch_[static_cast<std::size_t>(from)];
  const bool has_descended = routing_ == Routing::up_down && from_switch && is_down(from, at);
  for (const auto& edge : next_edges(at, last, has_descended)) links.push_back({edge.link});
  return links;
}

/// Hops to `target` per node: while the packet may still go up, then (second half) when it has gone down.
std::vector<std::uint16_t> Network::up_down_distances(int target) const {
  const auto n = edges_.size();
  std::vector<std::uint16_t> distance(2 * n, k_unreachable);
  using Entry = std::pair<int, std::size_t>;  // hops, state
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto reach = [&](std::size_t state, int hops) {
    if (hops >= distance[state]) return;
    distance[state] = static_cast<std::uint16_t>(hops);
    open.emplace(hops, state);
  };
  reach(n + static_cast<std::size_t>(target), 0);
  while (!open.empty()) {
    const auto [hops, state] = open.top();
    open.pop();
    if (hops > distance[state]) continue;
    const bool descended = state >= n;
    const int node = static_cast<int>(descended ? state - n : state);
    if (descended) reach(static_cast<std::size_t>(node), hops);  // a packet may start to descend anywhere
    for (const auto& edge : edges_[static_cast<std::size_t>(node)]) {
      if (!is_switch_[static_cast<std::size_t>(edge.to)] || is_down(edge.to, node) != descended) continue;
      reach(static_cast<std::size_t>(edge.to) + (descended ? n : 0), hops + 1);
    }
  }
  return distance;
}

/// Places by hops from the nearest top, then by number.
void Network::order_from(const std::vector<int>& tops) {
  const auto n = static_cast<std::int64_t>(edges_.size());
  std::vector<std::int64_t> level(edges_.size(), n);
  std::queue<int> open;
  for (const int top : tops) {
    level[static_cast<std::size_t>(top)] = 0;
    open.push(top);
  }
  while (!open.empty()) {
    const int node = open.front();
    open.pop();
    for (const auto& edge : edges_[static_cast<std::size_t>(node)]) {
      if (!is_switch_[static_cast<std::size_t>(edge.to)] || level[static_cast<std::size_t>(edge.to)] < n) continue;
      level[static_cast<std::size_t>(edge.to)] = level[static_cast<std::size_t>(node)] + 1;
      open.push(edge.to);
    }
  }
  order_.resize(edges_.size());
  for (std::int64_t node = 0; node < n; ++node) {
    const auto i = static_cast<std::size_t>(node);
    order_[i] = level[i] * n + node;
  }
  distances_.clear();
}

/// Every switch with an HCA reaches every other one by a legal route.
bool Network::reaches_everybody() const {
  std::vector<int> entries;
  for (std::size_t node = 0; node < edges_.size(); ++node) {
    if (!is_switch_[node] && uplink(static_cast<int>(node)).value >= 0)
      entries.push_back(entry_of(static_cast<int>(node)));
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  for (const int target : entries) {
    const auto distance = up_down_distances(target);
    const auto minimal = minimal_distances(target);
    for (const int from : entries) {
      const auto i = static_cast<std::size_t>(from);
      if (distance[i] == k_unreachable && minimal[i] != k_unreachable) return false;
    }
  }
  return true;
}

/// Tops are the switches farthest from any HCA (the cores of a tree); where that leaves pairs without a legal route, or
/// every switch has HCAs, the one switch with the least sum of distances.
void Network::choose_order() {
  std::vector<int> hops(edges_.size(), -1);
  std::queue<int> open;
  for (std::size_t node = 0; node < edges_.size(); ++node) {
    if (is_switch_[node]) continue;
    for (const auto& edge : edges_[node]) {
      if (!is_switch_[static_cast<std::size_t>(edge.to)] || hops[static_cast<std::size_t>(edge.to)] == 0) continue;
      hops[static_cast<std::size_t>(edge.to)] = 0;
      open.push(edge.to);
    }
  }
  int farthest = 0;
  while (!open.empty()) {
    const int node = open.front();
    open.pop();
    farthest = std::max(farthest, hops[static_cast<std::size_t>(node)]);
    for (const auto& edge : edges_[static_cast<std::size_t>(node)]) {
      if (!is_switch_[static_cast<std::size_t>(edge.to)] || hops[static_cast<std::size_t>(edge.to)] >= 0) continue;
      hops[static_cast<std::size_t>(edge.to)] = hops[static_cast<std::size_t>(node)] + 1;
      open.push(edge.to);
    }
  }
  std::vector<int> tops;
  for (std::size_t node = 0; node < edges_.size(); ++node) {
    if (farthest > 0 && hops[node] == farthest) tops.push_back(static_cast<int>(node));
  }
  if (!tops.empty()) order_from(tops);
  if (!tops.empty() && reaches_everybody()) return;
  int middle = -1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t node = 0; node < edges_.size(); ++node) {
    if (!is_switch_[node]) continue;
    std::int64_t sum = 0;
    for (const auto d : minimal_distances(static_cast<int>(node))) sum += d == k_unreachable ? 0 : d;
    if (hops[node] < 0 || sum >= least) continue;
    least = sum;
    middle = static_cast<int>(node);
  }
  if (middle >= 0) order_from({middle});
}

int Network::changed_dimension(LinkId link) const {
  const auto [from, to] = ends_of(link);
  const auto& a = coordinates_[static_cast<std::size_t>(from)];
  const auto& b = coordinates_[static_cast<std::size_t>(to)];
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
  const int step = coordinates_[static_cast<std::size_t>(to)][i] - coordinates_[static_cast<std::size_t>(from)][i];
  return dimensions_[i] > 2 && (step == dimensions_[i] - 1 || step == 1 - dimensions_[i]);
}

int Network::next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const {
  if (num_lanes < 2) return 0;
  const int dimension = changed_dimension(next);
  if (dimension >= 0) {
    const int before = changed_dimension(arrived) == dimension ? lane : 0;
    return wraps_around(next) ? 1 : before;
  }
  const auto [from, at] = ends_of(arrived);
  const int group = groups_[static_cast<std::size_t>(at)];
  const int group_before = groups_[static_cast<std::size_t>(from)];
  if (group >= 0 && group_before >= 0 && group != group_before) return std::min(lane + 1, num_lanes - 1);
  return lane;
}

}  // namespace fabricast::topology
