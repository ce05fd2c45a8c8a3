// SPDX-License-Identifier: Apache-2.0
// MPI collective algorithms as rounds of messages between ranks, and the rules by which MPICH and Open MPI pick one.
// Sources: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19, 2005;
// Bruck et al., IEEE TPDS 8, 1997; Open MPI coll/tuned decision rules, MPICH coll selection defaults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/scenario.hpp"
#include "fabricast/units.hpp"

namespace fabricast::models::mpi {

enum class CollectiveAlgorithm {
  recursive_doubling,
  ring,
  rabenseifner,
  binomial,
  scatter_allgather,
  bruck,
  pairwise,
  linear,
  dissemination
};

std::string_view to_string(CollectiveAlgorithm algorithm);
/// Algorithms that exist for a benchmark, for messages and `list algorithms`.
std::vector<CollectiveAlgorithm> algorithms_for(Benchmark benchmark);

struct Step {
  int from = 0;
  int to = 0;
  double bytes = 0;
};

/// Messages that go at the same time; `repeat` rounds with the same messages follow each other.
struct ScheduleRound {
  std::vector<Step> steps;
  std::int64_t repeat = 1;
  double reduced_bytes = 0;  ///< bytes every receiver combines with its own after the round
};

/// `size` is the message size as OSU prints it (per rank for all-gather and all-to-all). num_ranks >= 1.
std::vector<ScheduleRound> make_schedule(Benchmark benchmark, CollectiveAlgorithm algorithm, int num_ranks, Bytes size,
                                         int root);

/// What the library picks by itself. `is_open_mpi`: Open MPI's rules, else MPICH's.
CollectiveAlgorithm choose_algorithm(Benchmark benchmark, int num_ranks, Bytes size, bool is_open_mpi);

}  // namespace fabricast::models::mpi
