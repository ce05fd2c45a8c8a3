// SPDX-License-Identifier: Apache-2.0
// A collective algorithm's whole output: who sends what to whom after what. Knows no library, no device, no cost: MPI
// libraries and the programs that `fabricast mpi` runs send its messages one by one, NCCL's channels cross its edges.
#pragma once

#include <cstdint>
#include <vector>

namespace fabricast::models::schedules {

struct Step {
  int from = 0;
  int to = 0;
  double bytes = 0;
};

/// How the repeats of a round follow each other.
enum class RoundOrder : std::uint8_t {
  barrier,   ///< all ranks together
  ring,      ///< each rank waits for its neighbour
  pipeline,  ///< segments; the sends of one are complete before the next is sent
};

/// Messages that go at the same time; `repeat` rounds with the same messages follow each other.
struct Round {
  std::vector<Step> steps;
  std::int64_t repeat = 1;
  double reduced_bytes = 0;  ///< bytes every receiver combines with its own after the round
  RoundOrder order = RoundOrder::barrier;
  bool is_posted = false;  ///< sent without blocking
};

using Rounds = std::vector<Round>;

inline void append(Rounds& rounds, Rounds more) {
  for (auto& round : more) rounds.push_back(std::move(round));
}

/// `rounds` of a tree, level by level, as they go when a rank posts its messages to all its children together and
/// waits for all of them, and these share its link: one round per generation. `hosts`: [rank], empty = all on hosts of
/// their own. Who sends nothing and gets the message inside its parent's host keeps no other host waiting: it is in the
/// last round.
Rounds by_generation(const Rounds& rounds, const std::vector<int>& hosts);

}  // namespace fabricast::models::schedules
