// SPDX-License-Identifier: Apache-2.0
#include "mpi/schedules/families.hpp"

namespace fabricast::models::mpi {

Rounds ring(int n, double block, double reduced) {
  ScheduleRound round;
  for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + 1) % n, block});
  round.repeat = n - 1;
  round.reduced_bytes = reduced;
  round.order = RoundOrder::ring;
  return {round};
}

Rounds neighbor_exchange(int n, double block) {
  if (n % 2 != 0) return ring(n, block, 0);
  const auto with = [n](int first, double bytes, std::int64_t repeat) {
    ScheduleRound round;
    for (int r = first; r < n + first; r += 2) {
      round.steps.push_back({r % n, (r + 1) % n, bytes});
      round.steps.push_back({(r + 1) % n, r % n, bytes});
    }
    round.repeat = repeat;
    return round;
  };
  // Sides alternate; equal rounds are listed together.
  Rounds rounds{with(0, block, 1)};
  const int later = n / 2 - 1;
  if (later > 0) rounds.push_back(with(1, 2 * block, (later + 1) / 2));
  if (later > 1) rounds.push_back(with(0, 2 * block, later / 2));
  return rounds;
}

}  // namespace fabricast::models::mpi
