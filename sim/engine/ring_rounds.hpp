// SPDX-License-Identifier: Apache-2.0
// Repeats of a ring are no barriers: what rank f sends in repeat k came to it in repeat k - 1 from rank f - 1, and
// leaves behind its own bytes of repeat k - 1. With latency l and transfer t of each edge (while all are active):
//
//   e_f(k) = max(e_{f-1}(k-1) + l_f, e_f(k-1)) + t_f,   e_f(0) = 0
//
// a recurrence in (max, +) [Baccelli et al., Synchronization and Linearity, 1992, 2.5]: per repeat it takes the mean of
// l + t round the ring, or the largest t, whichever is longer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/job.hpp"

namespace fabricast::engine {

/// max over f of e_f(repeats). O(flows x repeats) additions, less once every edge advances by the same.
Duration ring_time(const std::vector<Duration>& latencies, const std::vector<Duration>& transfers,
                   std::int64_t repeats);

/// Mean of the latency terms of the flows, term by term.
std::vector<Term> mean_latency_terms(const std::vector<models::Flow>& flows);

/// The terms of a ring whose repeats took `whole` together: fixed times and mean latencies, the rest is transfer.
void describe_ring(const models::Node& node, Duration whole, NodeTiming& timing);

/// Which repeats of a ring's flows have begun and ended, for engines that run them one by one.
class RingProgress {
 public:
  RingProgress() = default;
  RingProgress(std::size_t num_flows, std::int64_t repeats, models::RepeatOrder order);

  /// Flow f has ended once more at `now`: the flows that may begin once more.
  std::vector<std::size_t> end(std::size_t f, Duration now);
  [[nodiscard]] bool is_done() const { return left_ == 0; }
  /// Ends the ring early when all flows end a repeat the same time later than `lag` repeats ago, to 1e-3 of it. A ring
  /// over equal leaves has the lag of a leaf.
  void stop_when_steady() { stops_when_steady_ = true; }
  /// Repeats left out by that, a multiple of the lag, and how long they would have taken.
  [[nodiscard]] std::int64_t left_out() const { return asked_ - repeats_; }
  [[nodiscard]] Duration left_out_time() const { return left_out() / lag_ * period_; }

 private:
  [[nodiscard]] bool may_begin(std::size_t f) const;
  void note_end(std::size_t f, Duration now);
  void look_for_lag(std::int64_t repeat);
  void stop();

  struct Ends {
    std::vector<Duration> at;
    std::size_t count = 0;
  };
  [[nodiscard]] Ends& ends_of(std::int64_t repeat) { return ends_[static_cast<std::size_t>(repeat) % ends_.size()]; }
  models::RepeatOrder order_ = models::RepeatOrder::neighbour;
  std::int64_t asked_ = 0;
  std::int64_t repeats_ = 0;         ///< to run
  std::int64_t left_ = 0;            ///< ends to come, of all flows
  std::vector<std::int64_t> begun_;  ///< [flow]
  std::vector<std::int64_t> ended_;  ///< [flow]
  bool stops_when_steady_ = false;
  std::vector<Ends> ends_;     ///< [repeat modulo their number]
  std::int64_t complete_ = 0;  ///< repeats that all flows have ended
  std::int64_t lag_ = 1;
  Duration period_;  ///< of `lag_` repeats
};

}  // namespace fabricast::engine
