// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

Rounds all_reduce_recursive_doubling(int n, double bytes) {
  Rounds rounds;
  add_fold(rounds, n, bytes, true);
  for (int d = 1; d < floor_power_of_two(n); d *= 2) rounds.push_back(exchange(floor_power_of_two(n), d, bytes, bytes));
  add_fold(rounds, n, bytes, false);
  return rounds;
}

Rounds all_gather_recursive_doubling(int n, double block) {
  if (floor_power_of_two(n) != n) return all_gather_bruck(n, block);
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) rounds.push_back(exchange(n, d, block * d, 0));
  return rounds;
}

}  // namespace fabricast::models::schedules
