// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

Rounds ring(int n, double block, double reduced) {
  Round round;
  for (int r = 0; r < n; ++r) round.steps.push_back({r, peer(r, 1, n), block});
  round.repeat = n - 1;
  round.reduced_bytes = reduced;
  round.order = RoundOrder::ring;
  return {round};
}

}  // namespace fabricast::models::schedules
