// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "mpi/schedules/families.hpp"

namespace fabricast::models::mpi {

int floor_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

namespace {

/// Ranks beyond a power of two hand their data to a neighbour first (`is_entry`), and get the result back at the end.
void add_fold(Rounds& rounds, int n, double bytes, bool is_entry) {
  const int power = floor_power_of_two(n);
  if (power == n) return;
  ScheduleRound round;
  for (int extra = power; extra < n; ++extra) {
    const int partner = extra - power;
    round.steps.push_back(is_entry ? Step{extra, partner, bytes} : Step{partner, extra, bytes});
  }
  round.reduced_bytes = is_entry ? bytes : 0;
  rounds.push_back(std::move(round));
}

ScheduleRound exchange(int power, int distance, double bytes, double reduced) {
  ScheduleRound round;
  for (int r = 0; r < power; ++r) round.steps.push_back({r, r ^ distance, bytes});
  round.reduced_bytes = reduced;
  return round;
}

void add_halving(Rounds& rounds, int power, double bytes) {
  double part = bytes / 2;
  for (int d = power / 2; d >= 1; d /= 2, part /= 2) rounds.push_back(exchange(power, d, part, part));
}

}  // namespace

Rounds all_reduce_recursive_doubling(int n, double bytes) {
  Rounds rounds;
  add_fold(rounds, n, bytes, true);
  for (int d = 1; d < floor_power_of_two(n); d *= 2) rounds.push_back(exchange(floor_power_of_two(n), d, bytes, bytes));
  add_fold(rounds, n, bytes, false);
  return rounds;
}

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

Rounds butterfly(int n, double bytes) {
  Rounds rounds;
  const int power = floor_power_of_two(n);
  add_fold(rounds, n, bytes, true);
  double part = bytes / 2;
  for (int d = 1; d < power; d *= 2, part /= 2) rounds.push_back(exchange(power, d, part, part));
  ScheduleRound last;
  for (int r = 0; r < power; ++r) {
    int mirrored = 0;
    for (int d = 1, e = power / 2; d < power; d *= 2, e /= 2) mirrored |= (r & d) != 0 ? e : 0;
    if (mirrored != r) last.steps.push_back({r, mirrored, bytes / n});
  }
  for (int r = power; r < n; ++r) last.steps.push_back({r - power, r, bytes / n});
  if (!last.steps.empty()) rounds.push_back(std::move(last));
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
    ScheduleRound round;
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

Rounds all_gather_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    ScheduleRound round;
    const double bytes = block * std::min(d, n - d);  // the last round carries the rest
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r - d + n) % n, bytes});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds all_gather_recursive_doubling(int n, double block) {
  if (floor_power_of_two(n) != n) return all_gather_bruck(n, block);
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) rounds.push_back(exchange(n, d, block * d, 0));
  return rounds;
}

Rounds all_to_all_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    int blocks = 0;
    for (int b = 1; b < n; ++b) blocks += (b & d) != 0 ? 1 : 0;
    ScheduleRound round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, block * blocks});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds dissemination(int n) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    ScheduleRound round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, 0});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::mpi
