// SPDX-License-Identifier: Apache-2.0
// Blocking sends of libraries that leave data where they lie end with the adapter's acknowledgement, one way after the
// data have arrived (libfabric's CXI). Who sends and then has more to do waits for it.
#pragma once

#include <vector>

#include "mpi/transfer.hpp"
#include "schedules/rounds.hpp"

namespace fabricast::models::mpi {

class Acknowledgements {
 public:
  /// `rounds` outlive it.
  Acknowledgements(const schedules::Rounds& rounds, int num_ranks);

  /// Adds to `message`, sent by `rank` in `round`, one of the rounds, the wait for its acknowledgement where the rank
  /// receives in this round as well, takes part in a later one, or sends in the last one, whose end the call's is.
  void add_wait(const schedules::Round& round, int rank, bool receives, Message& message) const;

 private:
  std::vector<const schedules::Round*> last_;  ///< [rank]
  const schedules::Round* end_;                ///< the last one of all
};

}  // namespace fabricast::models::mpi
