// SPDX-License-Identifier: Apache-2.0
// Parts of algorithms whose partners lie at distances that are powers of two.
#pragma once

#include <cstdint>

#include "schedules/rounds.hpp"

namespace fabricast::models::schedules {

/// The largest power of two up to n >= 1.
int floor_power_of_two(int n);

/// n ranks folded to a power of two, or to `power` if that is given. Of the first 2 (n - power) ranks one of every two
/// neighbours 2i and 2i + 1 leaves; the others take places 0 to power - 1 in their order [Open MPI
/// coll_base_allreduce.c, MPICH allreduce].
class Fold {
 public:
  enum class Stays : std::uint8_t { even, odd };
  Fold(int n, Stays stays) : Fold(n, stays, floor_power_of_two(n)) {}
  Fold(int n, Stays stays, int power) : power_(power), extra_(n - power), stays_(stays) {}

  [[nodiscard]] int power() const { return power_; }
  /// How many leave.
  [[nodiscard]] int extra() const { return extra_; }
  /// The rank at `place`, and the neighbour that left beside it, which the first `extra` places have.
  [[nodiscard]] int rank(int place) const;
  [[nodiscard]] int neighbour(int place) const;
  /// Ranks whose places are `from` to `to` - 1, and their neighbours.
  [[nodiscard]] int ranks_of(int from, int to) const;

  /// The neighbours hand over their data, which is combined. In halves both combine one first, and the half of the one
  /// that leaves follows.
  void enter(Rounds& rounds, double bytes) const;
  void enter_in_halves(Rounds& rounds, double bytes) const;
  /// The neighbours get the result.
  void leave(Rounds& rounds, double bytes) const;
  /// All that stayed with the one at `distance`, each way.
  [[nodiscard]] Round exchange(int distance, double bytes, double reduced) const;

 private:
  int power_, extra_;
  Stays stays_;
};

}  // namespace fabricast::models::schedules
