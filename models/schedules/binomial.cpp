// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

#include <algorithm>
#include <bit>

namespace fabricast::models::schedules {

namespace {

/// The parent of a rank lacks its lowest digit: all ranks below one follow it [Open MPI build_kmtree,
/// build_in_order_bmtree; MPICH bcast and reduce]. The farthest first.
std::vector<Level> in_order(int n, int radix) {
  int farthest = 1;
  while (farthest * radix < n) farthest *= radix;
  std::vector<Level> levels;
  for (int d = farthest; d >= 1; d /= radix) {
    Level level;
    for (int k = 1; k < radix; ++k) {
      for (int r = 0; r + k * d < n; r += radix * d) level.emplace_back(r, r + k * d);
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

/// The parent of a rank lacks its highest bit [Open MPI build_bmtree, libnbc]. The nearest first.
std::vector<Level> by_highest_bit(int n) {
  std::vector<Level> levels;
  for (int d = 1; d < n; d *= 2) {
    Level level;
    for (int r = 0; r < d && r + d < n; ++r) level.emplace_back(r, r + d);
    levels.push_back(std::move(level));
  }
  return levels;
}

}  // namespace

Rounds knomial(const Tree& tree, int radix) { return to_rounds(in_order(tree.n, radix), tree); }

Rounds binomial(const Tree& tree) {
  return to_rounds(tree.is_gather || tree.is_in_order ? in_order(tree.n, 2) : by_highest_bit(tree.n), tree);
}

Rounds binomial_scatter(int n, double bytes, int root) {
  Rounds rounds;
  for (int d = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; d >= 1; d /= 2) {
    Round round;
    for (int r = 0; r + d < n; r += 2 * d) {
      const int ranks_below = std::min(d, n - r - d);
      round.steps.push_back({(r + root) % n, (r + d + root) % n, bytes * ranks_below / n});
    }
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds binomial_gather(int n, double block, int root) {
  auto rounds = binomial_scatter(n, n * block, root);
  std::ranges::reverse(rounds);
  for (auto& round : rounds) {
    for (auto& step : round.steps) std::swap(step.from, step.to);
  }
  return rounds;
}

}  // namespace fabricast::models::schedules
