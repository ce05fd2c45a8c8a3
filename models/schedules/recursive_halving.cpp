// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter: half of the vector to the farthest rank first, so that every rank ends with its own block.
#include <algorithm>

#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

Rounds recursive_halving(int n, double bytes) {
  Rounds rounds;
  const double block = bytes / n;
  const Fold fold(n, Fold::Stays::odd);
  fold.enter(rounds, bytes);
  for (int d = fold.power() / 2; d >= 1; d /= 2) {
    Round round;
    for (int place = 0; place < fold.power(); ++place) {
      const int other = (place ^ d) & ~(d - 1);  // the first of the other half's places
      const double sent = block * fold.ranks_of(other, other + d);
      round.steps.push_back({fold.rank(place), fold.rank(place ^ d), sent});
      round.reduced_bytes = std::max(round.reduced_bytes, sent);
    }
    rounds.push_back(std::move(round));
  }
  fold.leave(rounds, block);
  return rounds;
}

}  // namespace fabricast::models::schedules
