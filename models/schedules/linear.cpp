// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

namespace fabricast::models::schedules {

Rounds linear(const Tree& tree) {
  Level level;
  for (int r = 1; r < tree.n; ++r) level.emplace_back(0, r);
  auto rounds = to_rounds({level}, tree);
  // The root combines what all others sent, one after the other.
  if (tree.is_gather && !rounds.empty()) rounds.front().reduced_bytes = tree.bytes * (tree.n - 1);
  return rounds;
}

}  // namespace fabricast::models::schedules
