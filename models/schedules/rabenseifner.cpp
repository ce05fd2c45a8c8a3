// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

namespace {

void add_halving(Rounds& rounds, int power, double bytes) {
  double part = bytes / 2;
  for (int d = power / 2; d >= 1; d /= 2, part /= 2) rounds.push_back(exchange(power, d, part, part));
}

}  // namespace

Rounds all_reduce_rabenseifner(int n, double bytes) {
  Rounds rounds;
  const int power = floor_power_of_two(n);
  add_fold(rounds, n, bytes, true);
  add_halving(rounds, power, bytes);
  double part = bytes / power;
  for (int d = 1; d < power; d *= 2, part *= 2) rounds.push_back(exchange(power, d, part, 0));
  add_fold(rounds, n, bytes, false);
  return rounds;
}

Rounds recursive_halving(int n, double bytes) {
  Rounds rounds;
  add_fold(rounds, n, bytes, true);
  add_halving(rounds, floor_power_of_two(n), bytes);
  add_fold(rounds, n, bytes / n, false);
  return rounds;
}

Rounds reduce_rabenseifner(int n, double bytes, int root) {
  Rounds rounds;
  const int power = floor_power_of_two(n);
  add_fold(rounds, n, bytes, true);
  add_halving(rounds, power, bytes);
  // Binomial gather to rank 0 of the power of two, which is the root after renaming.
  double part = bytes / power;
  for (int d = 1; d < power; d *= 2, part *= 2) {
    Round round;
    for (int r = d; r < power; r += 2 * d) round.steps.push_back({r, r - d, part});
    rounds.push_back(std::move(round));
  }
  for (auto& round : rounds) {
    for (auto& step : round.steps) {
      step.from = (step.from + root) % n;
      step.to = (step.to + root) % n;
    }
  }
  return rounds;
}

}  // namespace fabricast::models::schedules
