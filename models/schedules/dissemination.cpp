// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

Rounds dissemination(int n) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    Round round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, 0});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::schedules
