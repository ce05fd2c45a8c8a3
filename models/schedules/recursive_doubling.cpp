// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

Rounds all_reduce_recursive_doubling(int n, double bytes) {
  Rounds rounds;
  const Fold fold(n, Fold::Stays::odd);
  fold.enter(rounds, bytes);
  for (int d = 1; d < fold.power(); d *= 2) rounds.push_back(fold.exchange(d, bytes, bytes));
  fold.leave(rounds, bytes);
  return rounds;
}

Rounds all_gather_recursive_doubling(int n, double block) {
  const Fold fold(n, Fold::Stays::odd);
  if (fold.extra() > 0) return all_gather_bruck(n, block);
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) rounds.push_back(fold.exchange(d, block * d, 0));
  return rounds;
}

}  // namespace fabricast::models::schedules
