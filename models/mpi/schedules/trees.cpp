// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "mpi/schedules/families.hpp"

namespace fabricast::models::mpi {

namespace {

using Level = std::vector<std::pair<int, int>>;  ///< parent and child, counted from the root

/// Levels of a tree to rounds: whole messages level by level, or segments that fill the levels one after the other.
Rounds to_rounds(const std::vector<Level>& levels, const Tree& tree) {
  const auto parts = tree.segment > 0 ? std::max(1.0, std::ceil(tree.bytes / tree.segment)) : 1.0;
  const double bytes = tree.bytes / parts;
  const auto add_level = [&](const Level& level, ScheduleRound& round) {
    for (const auto& [parent, child] : level) {
      const int near = (parent + tree.root) % tree.n;
      const int far = (child + tree.root) % tree.n;
      round.steps.push_back(tree.is_gather ? Step{far, near, bytes} : Step{near, far, bytes});
    }
    round.reduced_bytes = tree.is_gather ? bytes : 0;
    round.is_posted = parts > 1 && !tree.is_gather;
  };
  Rounds rounds;
  for (const auto& level : levels) {
    ScheduleRound round;
    add_level(level, round);
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  if (tree.is_gather) std::reverse(rounds.begin(), rounds.end());
  if (parts < 2 || rounds.empty()) return rounds;
  // The first segment passes every level; the others follow it with all levels at work.
  ScheduleRound steady;
  for (const auto& level : levels) add_level(level, steady);
  steady.repeat = static_cast<std::int64_t>(parts) - 1;
  steady.order = RoundOrder::pipeline;
  rounds.push_back(std::move(steady));
  return rounds;
}

/// Levels of a complete tree in which rank r has the children fanout * r + 1 ...
std::vector<Level> complete_tree(int n, int fanout) {
  std::vector<Level> levels;
  std::vector<int> depth(static_cast<std::size_t>(n), 0);
  for (int child = 1; child < n; ++child) {
    const int parent = (child - 1) / fanout;
    const int level = depth[static_cast<std::size_t>(parent)];
    depth[static_cast<std::size_t>(child)] = level + 1;
    if (static_cast<std::size_t>(level) >= levels.size()) levels.emplace_back();
    levels[static_cast<std::size_t>(level)].emplace_back(parent, child);
  }
  return levels;
}

}  // namespace

Rounds knomial(const Tree& tree, int radix) {
  std::vector<Level> levels;
  for (int d = 1; d < tree.n; d *= radix) {
    Level level;
    for (int k = 1; k < radix; ++k) {
      for (int r = 0; r < d && r + k * d < tree.n; ++r) level.emplace_back(r, r + k * d);
    }
    levels.push_back(std::move(level));
  }
  return to_rounds(levels, tree);
}

Rounds binomial(const Tree& tree) { return knomial(tree, 2); }

Rounds binary(const Tree& tree) { return to_rounds(complete_tree(tree.n, 2), tree); }

Rounds chain(const Tree& tree) { return to_rounds(complete_tree(tree.n, 1), tree); }

Rounds linear(const Tree& tree) {
  Level level;
  for (int r = 1; r < tree.n; ++r) level.emplace_back(0, r);
  auto rounds = to_rounds({level}, tree);
  // The root combines what all others sent, one after the other.
  if (tree.is_gather && !rounds.empty()) rounds.front().reduced_bytes = tree.bytes * (tree.n - 1);
  return rounds;
}

Rounds split_binary(const Tree& tree) {
  if (tree.n < 3) return chain(tree);
  auto half = tree;
  half.bytes = tree.bytes / 2;
  auto rounds = binary(half);
  // Each rank of the left subtree has a partner in the right one, a rank without one asks the root.
  ScheduleRound swap;
  const auto is_left = [](int rank) {
    while (rank > 2) rank = (rank - 1) / 2;
    return rank == 1;
  };
  std::vector<int> left;
  std::vector<int> right;
  for (int r = 1; r < tree.n; ++r) (is_left(r) ? left : right).push_back(r);
  const auto real = [&](int rank) { return (rank + tree.root) % tree.n; };
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const int a = i < left.size() ? left[i] : 0;
    const int b = i < right.size() ? right[i] : 0;
    if (b != 0) swap.steps.push_back({real(a), real(b), half.bytes});
    if (a != 0) swap.steps.push_back({real(b), real(a), half.bytes});
  }
  rounds.push_back(std::move(swap));
  return rounds;
}

Rounds binomial_scatter(int n, double bytes, int root) {
  Rounds rounds;
  for (int d = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; d >= 1; d /= 2) {
    ScheduleRound round;
    for (int r = 0; r + d < n; r += 2 * d) {
      const int ranks_below = std::min(d, n - r - d);
      round.steps.push_back({(r + root) % n, (r + d + root) % n, bytes * ranks_below / n});
    }
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::mpi
