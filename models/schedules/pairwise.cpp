// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

Rounds pairwise(int n, double block, double reduced) {
  Rounds rounds;
  for (int k = 1; k < n; ++k) {
    Round round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, peer(r, k, n), block});
    round.reduced_bytes = reduced;
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds all_at_once(int n, double block) {
  Round round;
  round.is_posted = true;
  for (int r = 0; r < n; ++r) {
    for (int k = 1; k < n; ++k) round.steps.push_back({r, peer(r, k, n), block});
  }
  return {round};
}

}  // namespace fabricast::models::schedules
