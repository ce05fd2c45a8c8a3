// SPDX-License-Identifier: Apache-2.0
// The vector is halved while the distance doubles: half of it goes to the nearest rank, the smallest piece to the
// farthest one; what follows goes back the same way.
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

namespace {

void add_entry(Rounds& rounds, const Fold& fold, double bytes, bool folds_halves) {
  if (folds_halves)
    fold.enter_in_halves(rounds, bytes);
  else
    fold.enter(rounds, bytes);
}

void add_halving(Rounds& rounds, const Fold& fold, double bytes) {
  for (int d = 1; d < fold.power(); d *= 2) rounds.push_back(fold.exchange(d, bytes / (2 * d), bytes / (2 * d)));
}

}  // namespace

Rounds all_reduce_rabenseifner(int n, double bytes, bool folds_halves) {
  Rounds rounds;
  const Fold fold(n, folds_halves ? Fold::Stays::even : Fold::Stays::odd);
  add_entry(rounds, fold, bytes, folds_halves);
  add_halving(rounds, fold, bytes);
  for (int d = fold.power() / 2; d >= 1; d /= 2) rounds.push_back(fold.exchange(d, bytes / (2 * d), 0));
  fold.leave(rounds, bytes);
  return rounds;
}

Rounds reduce_rabenseifner(int n, double bytes, int root, bool folds_halves) {
  Rounds rounds;
  const Fold fold(n, Fold::Stays::even);
  add_entry(rounds, fold, bytes, folds_halves);
  add_halving(rounds, fold, bytes);
  // A root that left takes the place and the part of rank 0.
  const bool has_left = root < 2 * fold.extra() && root % 2 != 0;
  const auto rank = [&](int place) { return has_left && place == 0 ? root : fold.rank(place); };
  if (has_left) {
    Round handed_over;
    handed_over.steps.push_back({fold.rank(0), root, bytes / fold.power()});
    rounds.push_back(std::move(handed_over));
  }
  int root_place = 0;
  if (!has_left) root_place = root < 2 * fold.extra() ? root / 2 : root - fold.extra();
  // From the farthest to the nearest: all whose place is the root's but for bits of the distance and below.
  for (int d = fold.power() / 2; d >= 1; d /= 2) {
    Round round;
    for (int place = 0; place < fold.power(); ++place) {
      if ((place ^ root_place) / d == 1) round.steps.push_back({rank(place), rank(place ^ d), bytes / (2 * d)});
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::schedules
