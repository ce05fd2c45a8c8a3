// SPDX-License-Identifier: Apache-2.0
// Parts of algorithms whose partners lie at distances that are powers of two.
#pragma once

#include "schedules/rounds.hpp"

namespace fabricast::models::schedules {

/// The largest power of two up to n >= 1.
int floor_power_of_two(int n);

/// Ranks beyond a power of two hand their data to a neighbour first (`is_entry`), and get the result back at the end.
void add_fold(Rounds& rounds, int n, double bytes, bool is_entry);

/// All of the first `power` ranks with the one at `distance`, each way.
Round exchange(int power, int distance, double bytes, double reduced);

}  // namespace fabricast::models::schedules
