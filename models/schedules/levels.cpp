// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace fabricast::models::schedules {

namespace {

int most_received(const Round& round) {
  std::map<int, int> received;
  int most = 0;
  for (const auto& step : round.steps) most = std::max(most, ++received[step.to]);
  return most;
}

}  // namespace

Rounds to_rounds(const std::vector<Level>& levels, const Tree& tree) {
  const auto parts = tree.segment > 0 ? std::max(1.0, std::ceil(tree.bytes / tree.segment)) : 1.0;
  const double bytes = tree.bytes / parts;
  const auto add_level = [&](const Level& level, Round& round) {
    for (const auto& [parent, child] : level) {
      const int near = (parent + tree.root) % tree.n;
      const int far = (child + tree.root) % tree.n;
      round.steps.push_back(tree.is_gather ? Step{far, near, bytes} : Step{near, far, bytes});
    }
    round.reduced_bytes = tree.is_gather ? bytes * most_received(round) : 0;
    round.is_posted = !tree.is_gather;
  };
  Rounds rounds;
  for (const auto& level : levels) {
    Round round;
    add_level(level, round);
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  if (tree.is_gather) std::reverse(rounds.begin(), rounds.end());
  if (parts < 2 || rounds.empty()) return rounds;
  // The first segment passes every level; the others follow it with all levels at work.
  Round steady;
  for (const auto& level : levels) add_level(level, steady);
  steady.repeat = static_cast<std::int64_t>(parts) - 1;
  steady.order = RoundOrder::pipeline;
  rounds.push_back(std::move(steady));
  return rounds;
}

Rounds by_generation(const Rounds& rounds, const std::vector<int>& hosts) {
  Rounds out;
  std::set<int> senders;
  for (const auto& round : rounds)
    for (const auto& step : round.steps) senders.insert(step.from);
  const bool has_network = std::ranges::adjacent_find(hosts, std::not_equal_to<>()) != hosts.end();
  const auto is_inner_leaf = [&](const Step& step) {
    if (senders.contains(step.to) || !has_network) return false;
    return hosts[static_cast<std::size_t>(step.from)] == hosts[static_cast<std::size_t>(step.to)];
  };
  std::vector<Step> inner_leaves;
  std::map<int, std::size_t> generation;  // by rank; of those that hold the message before all rounds 0
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) {
      const auto of_parent = generation[step.from];
      generation[step.to] = of_parent + 1;
      if (of_parent >= out.size()) out.resize(of_parent + 1);
      out[of_parent].is_posted = round.is_posted;
      (is_inner_leaf(step) ? inner_leaves : out[of_parent].steps).push_back(step);
    }
  }
  if (!out.empty()) out.back().steps.insert(out.back().steps.end(), inner_leaves.begin(), inner_leaves.end());
  std::erase_if(out, [](const Round& round) { return round.steps.empty(); });
  return out;
}

std::vector<Level> complete_tree(int n, int fanout) {
  std::vector<Level> levels;
  for (int first = 0, count = 1; first < n; first += count, count *= fanout) {
    Level level;
    for (int child = 1; child <= fanout; ++child) {
      for (int parent = first; parent < first + count && parent + child * count < n; ++parent)
        level.emplace_back(parent, parent + child * count);
    }
    if (!level.empty()) levels.push_back(std::move(level));
  }
  return levels;
}

}  // namespace fabricast::models::schedules
