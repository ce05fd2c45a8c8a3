// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

Rounds neighbor_exchange(int n, double block) {
  if (n % 2 != 0) return ring(n, block, 0);
  const auto with = [n](int first, double bytes, std::int64_t repeat) {
    Round round;
    for (int r = first; r < n + first; r += 2) {
      round.steps.push_back({r % n, (r + 1) % n, bytes});
      round.steps.push_back({(r + 1) % n, r % n, bytes});
    }
    round.repeat = repeat;
    return round;
  };
  // Sides alternate; equal rounds are listed together.
  Rounds rounds{with(0, block, 1)};
  const int later = n / 2 - 1;
  if (later > 0) rounds.push_back(with(1, 2 * block, (later + 1) / 2));
  if (later > 1) rounds.push_back(with(0, 2 * block, later / 2));
  return rounds;
}

}  // namespace fabricast::models::schedules
