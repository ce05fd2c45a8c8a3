// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

#include <algorithm>

namespace fabricast::models::schedules {

Rounds all_gather_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    Round round;
    const double bytes = block * std::min(d, n - d);  // the last round carries the rest
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r - d + n) % n, bytes});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds all_to_all_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    int blocks = 0;
    for (int b = 1; b < n; ++b) blocks += (b & d) != 0 ? 1 : 0;
    Round round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, block * blocks});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::schedules
