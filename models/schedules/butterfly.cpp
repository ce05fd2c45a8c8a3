// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

namespace {

int mirrored(int place, int power) {
  int out = 0;
  for (int d = 1, e = power / 2; d < power; d *= 2, e /= 2) out |= (place & d) != 0 ? e : 0;
  return out;
}

}  // namespace

Rounds butterfly(int n, double bytes) {
  Rounds rounds;
  const double block = bytes / n;
  const Fold fold(n, Fold::Stays::odd);
  const int power = fold.power();
  fold.enter(rounds, bytes);
  std::vector<int> window(static_cast<std::size_t>(power), 0);  // [place] the first place whose blocks it still has
  for (int d = 1, places = power / 2; d < power; d *= 2, places /= 2) {
    Round round;
    for (int place = 0; place < power; ++place) {
      auto& first = window[static_cast<std::size_t>(place)];
      const bool keeps_lower = (place & d) == 0;
      const int given = first + (keeps_lower ? places : 0);
      const double sent = block * fold.ranks_of(given, given + places);
      round.steps.push_back({fold.rank(place), fold.rank(place ^ d), sent});
      round.reduced_bytes = std::max(round.reduced_bytes, sent);
      if (!keeps_lower) first += places;
    }
    rounds.push_back(std::move(round));
  }
  // Each has the blocks of its mirrored place: of the rank there, and of the neighbour that left.
  Round last;
  for (int place = 0; place < power; ++place) {
    const int owner = mirrored(place, power);
    if (owner < fold.extra()) last.steps.push_back({fold.rank(place), fold.neighbour(owner), block});
    if (owner != place) last.steps.push_back({fold.rank(place), fold.rank(owner), block});
  }
  if (!last.steps.empty()) rounds.push_back(std::move(last));
  return rounds;
}

}  // namespace fabricast::models::schedules
