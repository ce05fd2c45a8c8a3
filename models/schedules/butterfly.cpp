// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

Rounds butterfly(int n, double bytes) {
  Rounds rounds;
  const int power = floor_power_of_two(n);
  add_fold(rounds, n, bytes, true);
  double part = bytes / 2;
  for (int d = 1; d < power; d *= 2, part /= 2) rounds.push_back(exchange(power, d, part, part));
  Round last;
  for (int r = 0; r < power; ++r) {
    int mirrored = 0;
    for (int d = 1, e = power / 2; d < power; d *= 2, e /= 2) mirrored |= (r & d) != 0 ? e : 0;
    if (mirrored != r) last.steps.push_back({r, mirrored, bytes / n});
  }
  for (int r = power; r < n; ++r) last.steps.push_back({r - power, r, bytes / n});
  if (!last.steps.empty()) rounds.push_back(std::move(last));
  return rounds;
}

}  // namespace fabricast::models::schedules
