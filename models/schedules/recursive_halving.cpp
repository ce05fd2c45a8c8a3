// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter: half of the vector to the farthest rank first, so that every rank ends with its own block.
#include <algorithm>
#include <numeric>

#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

Rounds recursive_halving(const std::vector<double>& blocks) {
  Rounds rounds;
  const Fold fold(static_cast<int>(blocks.size()), Fold::Stays::odd);
  std::vector<double> before{0};  // [place], B of the ranks of all places before it and of their neighbours
  auto block = blocks.begin();
  for (int place = 0; place < fold.power(); ++place) {
    const auto next = block + fold.ranks_of(place, place + 1);
    before.push_back(std::accumulate(block, next, before.back()));
    block = next;
  }
  const auto between = [&](int from, int to) {
    return before[static_cast<std::size_t>(to)] - before[static_cast<std::size_t>(from)];
  };
  fold.enter(rounds, before.back());
  for (int d = fold.power() / 2; d >= 1; d /= 2) {
    Round round;
    for (int place = 0; place < fold.power(); ++place) {
      const int other = (place ^ d) & ~(d - 1);  // the first of the other half's places
      const double sent = between(other, other + d);
      if (sent > 0) round.steps.push_back({fold.rank(place), fold.rank(place ^ d), sent});
      round.reduced_bytes = std::max(round.reduced_bytes, sent);
    }
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  Round leaving;
  for (int place = 0; place < fold.extra(); ++place) {
    const double due = blocks[static_cast<std::size_t>(fold.neighbour(place))];
    if (due > 0) leaving.steps.push_back({fold.rank(place), fold.neighbour(place), due});
  }
  if (!leaving.steps.empty()) rounds.push_back(std::move(leaving));
  return rounds;
}

}  // namespace fabricast::models::schedules
