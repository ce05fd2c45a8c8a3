// SPDX-License-Identifier: Apache-2.0
// When each rank's call of a collective returns, by messages that nobody disturbs. OSU prints the mean over ranks of
// their own call times; in trees the root and others return before the last rank does.
#pragma once

#include <vector>

#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

/// Seconds that a message keeps its sender, and until its receiver has it.
struct MessageTimes {
  double sender = 0;
  double receiver = 0;
  double handling = 0;   ///< how long it keeps a receiver that another of the same round reaches as well
  bool is_eager = true;  ///< it leaves the sender's hands before it arrives
};

class RankClocks {
 public:
  explicit RankClocks(int num_ranks) : now_(static_cast<std::size_t>(num_ranks), 0) {}

  /// One round, whose end all ranks of it wait for when a message is not eager; `times`: [step], `reducing`: seconds
  /// that each receiver combines afterwards.
  void pass(const schedules::Round& round, const std::vector<MessageTimes>& times, double reducing);

  /// The mean over ranks by the last one's time; 1 when nothing takes time.
  [[nodiscard]] double mean_share() const;

 private:
  /// Messages that keep their sender share links with each other: none of their ranks is done long before the round.
  static void end_together(const schedules::Round& round, std::vector<double>& next);

  std::vector<double> now_;  ///< [rank], s
};

}  // namespace fabricast::models::mpi
