// SPDX-License-Identifier: Apache-2.0
#include "schedules/powers.hpp"

#include <bit>

namespace fabricast::models::schedules {

int floor_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

void add_fold(Rounds& rounds, int n, double bytes, bool is_entry) {
  const int power = floor_power_of_two(n);
  if (power == n) return;
  Round round;
  for (int extra = power; extra < n; ++extra) {
    const int partner = extra - power;
    round.steps.push_back(is_entry ? Step{extra, partner, bytes} : Step{partner, extra, bytes});
  }
  round.reduced_bytes = is_entry ? bytes : 0;
  rounds.push_back(std::move(round));
}

Round exchange(int power, int distance, double bytes, double reduced) {
  Round round;
  for (int r = 0; r < power; ++r) round.steps.push_back({r, r ^ distance, bytes});
  round.reduced_bytes = reduced;
  return round;
}

}  // namespace fabricast::models::schedules
