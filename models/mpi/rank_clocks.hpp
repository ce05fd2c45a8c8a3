// SPDX-License-Identifier: Apache-2.0
// When each rank's call of a collective returns, by messages that nobody disturbs. OSU prints the mean over ranks of
// their own call times: ranks return apart, leave the barrier between two calls apart, and enter the next one so.
#pragma once

#include <vector>

#include "fabricast/scenario.hpp"
#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

/// Seconds that a message keeps its sender, and until its receiver has it.
struct MessageTimes {
  double sender = 0;
  double receiver = 0;
  double handling = 0;   ///< how long one that has arrived keeps its receiver
  bool is_eager = true;  ///< it leaves the sender's hands before it arrives
};

/// A round of a collective, as the clocks see it.
struct ClockRound {
  const schedules::Round* round;
  std::vector<MessageTimes> times;  ///< [step]
  double reducing = 0;              ///< s that each receiver combines afterwards
};

class RankClocks {
 public:
  explicit RankClocks(int num_ranks) : now_(static_cast<std::size_t>(num_ranks), 0) {}

  /// One round, whose end all ranks of it wait for when a message is not eager; `times`: [step], `reducing`: seconds
  /// that each receiver combines afterwards.
  void pass(const schedules::Round& round, const std::vector<MessageTimes>& times, double reducing);
  void pass(const std::vector<ClockRound>& rounds);

  [[nodiscard]] const std::vector<double>& now() const { return now_; }
  [[nodiscard]] double last() const;
  /// The mean over ranks by the last one's time; 1 when nothing takes time.
  [[nodiscard]] double mean_share() const;

 private:
  std::vector<double> now_;  ///< [rank], s
};

/// What OSU prints of a `call` repeated with a `barrier` between calls, outside of what is timed, by how long the call
/// takes when all ranks enter it together: who left the barrier early waits inside the call for who left it late. 1
/// when nothing takes time.
double printed_share(const std::vector<ClockRound>& call, const std::vector<ClockRound>& barrier, int num_ranks,
                     Statistic statistic);

}  // namespace fabricast::models::mpi
