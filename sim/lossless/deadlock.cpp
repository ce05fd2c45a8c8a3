// SPDX-License-Identifier: Apache-2.0
// The channel dependency graph of all routes and a cycle in it. Nodes are buffers (link x lane); an edge says that some
// packet holds the first while it waits for the second, so a buffer that drops when full is on no edge. Cycles by
// Tarjan's strongly connected components, without recursion; the named cycle is the shortest one through the
// component's first buffer.
#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>

#include "fabricast/lossless.hpp"

namespace fabricast {

namespace {

/// Work above which the search is not made: links x switches with HCAs. A torus of 1,000 switches is well inside.
constexpr std::int64_t k_largest_search = 40'000'000;

/// Every route of a generated tree goes up, then down: buffers can be numbered in the order routes use them.
bool is_tree(const FabricSpec& fabric) {
  switch (fabric.kind) {
    case FabricKind::none:
    case FabricKind::single_switch:
    case FabricKind::leaf_spine:
    case FabricKind::fat_tree:
    case FabricKind::rail_optimized:
      return fabric.switches.empty();
    case FabricKind::dragonfly:
    case FabricKind::torus:
    case FabricKind::list:
      return false;
  }
  return false;
}

bool contains(const std::vector<int>& ascending, int priority) {
  return std::ranges::binary_search(ascending, priority);
}

class DependencyGraph {
 public:
  DependencyGraph(const Topology& topology, int num_lanes, const std::set<LinkId>& lossy)
      : topology_(topology), num_lanes_(num_lanes), lossy_(lossy) {
    const auto first = topology.first_network_link();
    edges_.resize(static_cast<std::size_t>(topology.num_links() - first) * static_cast<std::size_t>(num_lanes));
    for (const auto hca : topology.devices(DeviceKind::hca)) {
      // One HCA stands for all of its switch: routes between switches depend on nothing else.
      for (const auto up : topology.uplinks(hca)) {
        if (leaves_.insert(topology.link(up).to.value).second) uplinks_.push_back(up);
      }
    }
  }

  [[nodiscard]] std::int64_t work() const {
    return static_cast<std::int64_t>(edges_.size()) * static_cast<std::int64_t>(leaves_.size());
  }

  void follow_all_routes() {
    for (const auto leaf : leaves_) follow_routes_to(DeviceId{leaf});
    for (auto& successors : edges_) {
      std::sort(successors.begin(), successors.end());
      successors.erase(std::unique(successors.begin(), successors.end()), successors.end());
    }
  }

  [[nodiscard]] int num_buffers() const {
    std::set<int> used;
    for (std::size_t b = 0; b < edges_.size(); ++b) {
      if (!edges_[b].empty()) used.insert(static_cast<int>(b));
      used.insert(edges_[b].begin(), edges_[b].end());
    }
    return static_cast<int>(used.size());
  }
  [[nodiscard]] int num_dependencies() const {
    std::size_t count = 0;
    for (const auto& successors : edges_) count += successors.size();
    return static_cast<int>(count);
  }

  /// The shortest cycle through the first buffer that is on one.
  [[nodiscard]] std::vector<LinkBuffer> cycle() const {
    const int start = first_on_a_cycle();
    if (start < 0) return {};
    std::vector<int> before(edges_.size(), -1);
    std::queue<int> open;
    open.push(start);
    while (!open.empty()) {
      const int at = open.front();
      open.pop();
      for (const int next : edges_[static_cast<std::size_t>(at)]) {
        if (next == start) {
          std::vector<LinkBuffer> found;
          for (int b = at; b >= 0; b = before[static_cast<std::size_t>(b)]) found.push_back(place(b));
          std::reverse(found.begin(), found.end());
          return found;
        }
        if (next != start && before[static_cast<std::size_t>(next)] < 0) {
          before[static_cast<std::size_t>(next)] = at;
          open.push(next);
        }
      }
    }
    return {};
  }

 private:
  [[nodiscard]] int number(LinkId link, int lane) const {
    return (link.value - topology_.first_network_link()) * num_lanes_ + lane;
  }
  [[nodiscard]] LinkBuffer place(int buffer) const {
    return {LinkId{topology_.first_network_link() + buffer / num_lanes_}, buffer % num_lanes_};
  }

  void follow_routes_to(DeviceId leaf) {
    std::vector<bool> seen(edges_.size(), false);
    std::vector<int> open;
    const auto visit = [&](int buffer) {
      if (seen[static_cast<std::size_t>(buffer)]) return;
      seen[static_cast<std::size_t>(buffer)] = true;
      open.push_back(buffer);
    };
    for (const auto up : uplinks_) visit(number(up, 0));
    while (!open.empty()) {
      const int buffer = open.back();
      open.pop_back();
      const auto [link, lane] = place(buffer);
      const bool drops = lossy_.contains(link);
      // The link behind `leaf` ends in an HCA, which always takes what comes.
      for (const auto next : topology_.next_network_links(link, leaf)) {
        const int after = number(next, topology_.next_lane(link, lane, next, num_lanes_));
        if (!drops && !lossy_.contains(next)) edges_[static_cast<std::size_t>(buffer)].push_back(after);
        visit(after);
      }
    }
  }

  /// The lowest buffer in a strongly connected component of more than one, or -1.
  [[nodiscard]] int first_on_a_cycle() const {
    const auto n = edges_.size();
    std::vector<int> index(n, -1);
    std::vector<int> low(n, 0);
    std::vector<bool> on_stack(n, false);
    std::vector<int> stack;
    std::vector<std::pair<int, std::size_t>> calls;
    int counter = 0;
    int found = -1;
    const auto enter = [&](int b) {
      index[static_cast<std::size_t>(b)] = low[static_cast<std::size_t>(b)] = counter++;
      stack.push_back(b);
      on_stack[static_cast<std::size_t>(b)] = true;
      calls.emplace_back(b, 0);
    };
    const auto close_component = [&](int b) {
      std::vector<int> component;
      while (true) {
        const int top = stack.back();
        stack.pop_back();
        on_stack[static_cast<std::size_t>(top)] = false;
        component.push_back(top);
        if (top == b) break;
      }
      if (component.size() < 2) return;
      const int lowest = *std::min_element(component.begin(), component.end());
      found = found < 0 ? lowest : std::min(found, lowest);
    };
    for (std::size_t root = 0; root < n; ++root) {
      if (index[root] >= 0 || edges_[root].empty()) continue;
      enter(static_cast<int>(root));
      while (!calls.empty()) {
        const int b = calls.back().first;
        const auto i = static_cast<std::size_t>(b);
        if (calls.back().second < edges_[i].size()) {
          const int next = edges_[i][calls.back().second++];
          const auto j = static_cast<std::size_t>(next);
          if (index[j] < 0) {
            enter(next);
          } else if (on_stack[j]) {
            low[i] = std::min(low[i], index[j]);
          }
          continue;
        }
        calls.pop_back();
        if (!calls.empty()) {
          auto& above = low[static_cast<std::size_t>(calls.back().first)];
          above = std::min(above, low[i]);
        }
        if (low[i] == index[i]) close_component(b);
      }
    }
    return found;
  }

  const Topology& topology_;
  int num_lanes_;
  const std::set<LinkId>& lossy_;
  std::set<std::int32_t> leaves_;        ///< switches with HCAs
  std::vector<LinkId> uplinks_;          ///< of one HCA each
  std::vector<std::vector<int>> edges_;  ///< [buffer] -> buffers waited for
};

}  // namespace

DeadlockReport find_buffer_cycle(const Topology& topology, int num_lanes, const std::set<LinkId>& lossy) {
  DeadlockReport report;
  if (is_tree(topology.spec().fabric)) {
    report.is_analysed = true;
    report.reason = "every route of a tree goes up, then down";
    return report;
  }
  DependencyGraph graph(topology, std::max(1, num_lanes), lossy);
  if (graph.work() > k_largest_search) {
    report.reason = "the fabric is too large for the search";
    return report;
  }
  graph.follow_all_routes();
  report.is_analysed = true;
  report.num_buffers = graph.num_buffers();
  report.num_dependencies = graph.num_dependencies();
  report.cycle = graph.cycle();
  return report;
}

std::set<LinkId> lossy_links(const Topology& topology, const LosslessSettings& settings, int priority) {
  std::set<LinkId> out;
  if (settings.flow_control == FlowControl::credits) return out;
  for (int l = topology.first_network_link(); l < topology.num_links(); ++l) {
    const auto protects = cable_priorities(topology, settings, topology.link(LinkId{l}));
    if (!std::ranges::binary_search(protects, priority)) out.insert(LinkId{l});
  }
  return out;
}

DeadlockReport find_deadlock(const Topology& topology, const LosslessSettings& settings,
                             const std::set<int>& priorities, int num_lanes) {
  if (settings.flow_control == FlowControl::credits || settings.port_pfc.empty()) {
    const bool is_held = settings.flow_control == FlowControl::credits ||
                         std::ranges::any_of(priorities, [&](int p) { return contains(settings.pfc, p); });
    if (is_held) return find_buffer_cycle(topology, num_lanes);
  }
  DeadlockReport report;
  report.is_analysed = true;
  report.reason = "no priority that travels is paused anywhere";
  std::set<std::set<LinkId>> searched;
  for (const int priority : priorities) {
    auto lossy = lossy_links(topology, settings, priority);
    if (static_cast<int>(lossy.size()) == topology.num_links() - topology.first_network_link()) continue;
    if (!searched.insert(lossy).second) continue;
    auto found = find_buffer_cycle(topology, num_lanes, lossy);
    found.priority = priority;
    if (!found.is_analysed || !found.cycle.empty()) return found;
    if (found.num_buffers >= report.num_buffers) report = std::move(found);
  }
  return report;
}

std::string describe_cycle(const Topology& topology, const DeadlockReport& report) {
  if (report.cycle.empty()) return "";
  std::string text = topology.device(topology.link(report.cycle.front().link).from).name;
  bool has_lanes = false;
  for (const auto& one : report.cycle) has_lanes = has_lanes || one.lane > 0;
  for (const auto& one : report.cycle) {
    text += fmt::format(" -> {}", topology.device(topology.link(one.link).to).name);
    if (has_lanes) text += fmt::format(" (lane {})", one.lane);
  }
  return text;
}

}  // namespace fabricast
