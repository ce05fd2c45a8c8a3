// SPDX-License-Identifier: Apache-2.0
#include "schedules/powers.hpp"

#include <algorithm>
#include <bit>

namespace fabricast::models::schedules {

int floor_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

int Fold::rank(int place) const {
  if (place >= extra_) return place + extra_;
  return 2 * place + (stays_ == Stays::odd ? 1 : 0);
}

int Fold::neighbour(int place) const { return rank(place) ^ 1; }

int Fold::ranks_of(int from, int to) const { return to - from + std::max(0, std::min(to, extra_) - from); }

void Fold::enter(Rounds& rounds, double bytes) const {
  if (extra_ == 0) return;
  Round round;
  for (int place = 0; place < extra_; ++place) round.steps.push_back({neighbour(place), rank(place), bytes});
  round.reduced_bytes = bytes;
  rounds.push_back(std::move(round));
}

void Fold::enter_in_halves(Rounds& rounds, double bytes) const {
  if (extra_ == 0) return;
  Round both;
  Round rest;
  for (int place = 0; place < extra_; ++place) {
    both.steps.push_back({rank(place), neighbour(place), bytes / 2});
    both.steps.push_back({neighbour(place), rank(place), bytes / 2});
    rest.steps.push_back({neighbour(place), rank(place), bytes / 2});
  }
  both.reduced_bytes = bytes / 2;
  rounds.push_back(std::move(both));
  rounds.push_back(std::move(rest));
}

void Fold::leave(Rounds& rounds, double bytes) const {
  if (extra_ == 0) return;
  Round round;
  for (int place = 0; place < extra_; ++place) round.steps.push_back({rank(place), neighbour(place), bytes});
  rounds.push_back(std::move(round));
}

Round Fold::exchange(int distance, double bytes, double reduced) const {
  Round round;
  for (int place = 0; place < power_; ++place) round.steps.push_back({rank(place), rank(place ^ distance), bytes});
  round.reduced_bytes = reduced;
  return round;
}

}  // namespace fabricast::models::schedules
