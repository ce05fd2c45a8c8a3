// SPDX-License-Identifier: Apache-2.0
// Trains: many packets as one event, exactly. The engine is deterministic. If its whole state, seen from the clock and
// from the packet numbers of each queue pair, equals the state one period P ago, then the periods to come are equal too
// until something happens that is no part of the state: the end of a message, a timer, a sample, a tick of DCQCN, the
// end of the run. So j periods are left out at once: times move on by j P, numbers and counters by j times what they
// grew by in the period that was simulated packet by packet.
//
// States are compared when one queue pair, the watched one, has sent. Which state they are compared with: that of its
// send number 16, then of twice as many each time, so that any period is found once what precedes it is over
// [R. P. Brent, An improved Monte Carlo factorization algorithm, BIT 20, 1980]. Records cost time, so they are made out
// of an allowance that grows with the events handled, and more slowly while nothing repeats.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packet/event_queue.hpp"

namespace fabricast::packet {

/// What grew in a period.
struct PeriodStep {
  std::uint32_t number = 0;        ///< of the queue pair
  std::uint32_t steps = 0;         ///< packets
  std::int64_t counted_bytes = 0;  ///< by the byte counter of congestion control
};

struct Trains {
  static constexpr std::uint32_t k_any = 0xffff'ffff;     ///< watched: the next queue pair that sends
  static constexpr std::uint32_t k_nobody = 0xffff'fffe;  ///< watched: none until something changes
  static constexpr std::uint64_t k_first_record = 16;     ///< sends before the first record

  bool is_enabled = false;
  bool is_due = false;  ///< the watched queue pair sent at this instant
  bool has_record = false;
  std::uint32_t watched = k_nobody;
  std::uint32_t sender = 0;  ///< watched queue pair that sent last
  // The search.
  std::uint64_t num_sends = 0;                       ///< of the watched one
  std::uint64_t first_record = k_first_record;       ///< sends at which the first record is made
  std::uint64_t next_record = k_first_record;        ///< and the next one
  std::uint64_t recorded_at = 0;                     ///< sends at the last one
  Time begin = 0;                                    ///< when the record was made
  Time not_before = 0;                               ///< nothing to gain until then
  std::uint64_t key = 0;                             ///< tells most states from the recorded one at once
  std::uint64_t events_then = 0;                     ///< handled when the record was made
  std::vector<std::uint16_t> words;                  ///< the record
  std::vector<PeriodStep> steps;                     ///< of the period being compared
  std::vector<std::array<std::uint32_t, 4>> pauses;  ///< causes counted since the record was made
  std::vector<Event> events;                         ///< of the state, sorted
  std::vector<std::uint32_t> pair_shifts;            ///< [queue pair]: packets left out; empty but during a shift
  // The allowance, in words.
  std::int64_t allowance = 32768;
  std::int64_t price = 0;         ///< of the record made last
  std::uint64_t events_paid = 0;  ///< that were added to the allowance
  std::uint32_t failures = 0;     ///< records in a row that no later state was equal to
  // What came of it.
  std::uint64_t num_trains = 0, packets = 0;

  void enable() {
    is_enabled = true;
    watched = k_any;
  }

  void note_sent(std::uint32_t queue_pair) {
    if (watched != queue_pair && watched != k_any) return;
    sender = queue_pair;
    is_due = true;
  }

  /// Something happened that need not happen again: what was recorded does not tell the future.
  void disturb() {
    if (watched == k_any || !is_enabled) return;
    watched = k_any;
    if (has_record) ++failures;
    has_record = false;
    num_sends = 0;
    next_record = first_record;
    not_before = 0;
    pauses.clear();
  }

  void note_pause(const std::array<std::uint32_t, 4>& cause) {
    if (has_record) pauses.push_back(cause);
  }
};

}  // namespace fabricast::packet
