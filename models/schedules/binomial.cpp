// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

#include <algorithm>
#include <bit>

namespace fabricast::models::schedules {

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

}  // namespace fabricast::models::schedules
