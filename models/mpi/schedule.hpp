// SPDX-License-Identifier: Apache-2.0
// MPI collectives by name: which algorithms of schedules/ each has, made for its sizes. decisions.hpp has the rules by
// which libraries pick one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/scenario.hpp"
#include "fabricast/units.hpp"
#include "schedules/rounds.hpp"

namespace fabricast::models::mpi {

enum class CollectiveAlgorithm : std::uint8_t {
  recursive_doubling,
  ring,
  rabenseifner,
  reduce_broadcast,  ///< all-reduce: a reduce, then a broadcast
  reduce_scatter,    ///< reduce-scatter: a reduce, then the root hands out the blocks
  gather_broadcast,  ///< all-gather: a gather, then a broadcast of all blocks
  binomial,
  binary,
  split_binary,  ///< both halves of the message down one half of a binary tree each, then exchanged
  knomial,       ///< trees of radix 4; exchanges among four ranks (a barrier's among eight)
  sra_knomial,   ///< all-reduce: reduced and scattered among four ranks each, gathered back the same way
  sag_knomial,   ///< broadcast: scattered down a tree of radix 4, gathered by everybody
  chain,
  linear,
  scatter_allgather,  ///< binomial scatter, then a ring
  scatter_doubling,   ///< binomial scatter, then recursive doubling
  bruck,
  pairwise,
  dissemination,
  neighbor_exchange,
  recursive_halving,
  butterfly,
  linear_nb,    ///< scatter: the root posts all sends, then waits
  linear_sync,  ///< gather: the root asks one rank after the other
  two_level     ///< inside hosts, between one rank of each host, inside hosts
};

std::string_view to_string(CollectiveAlgorithm algorithm);
/// Ranks sum: with device buffers on the host, staged.
bool is_reduction(Benchmark benchmark);
/// Every rank gives or gets a block of its own: all-gather, gather, scatter.
bool is_of_blocks(Benchmark benchmark);
/// The root gets or gives them: gather, scatter.
bool has_root_of_blocks(Benchmark benchmark);
/// Algorithms that exist for a benchmark, for messages and `list algorithms`.
std::vector<CollectiveAlgorithm> algorithms_for(Benchmark benchmark);

/// One collective as it is to be scheduled. `size` is the message size as OSU prints it (per rank for all-gather and
/// all-to-all, gather and scatter, the total for reduce-scatter). num_ranks >= 1.
struct Collective {
  Benchmark benchmark = Benchmark::osu_allreduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  int num_ranks = 1;
  Bytes size;
  int root = 0;
  Bytes segment;  ///< trees and chains pass the message in parts of this size; linear_sync: the first; 0 = whole
  Bytes block;    ///< an all-reduce is made of such parts, one after the other; 0 = whole
  bool is_in_place = false;  ///< the result takes the place of the data (MPI_IN_PLACE)
  bool is_in_gpu_memory = false;
  bool is_of_mpich = false;  ///< trees and folds as MPICH's family makes them, else as Open MPI
  std::vector<int> hosts;    ///< [rank] of two_level; empty = all ranks on one
  /// The collectives that it is made of, as the library picks them; their ranks, sizes and roots do not count. Empty:
  /// trees. reduce_broadcast, reduce_scatter: a reduce, a broadcast; gather_broadcast: a gather, a broadcast;
  /// two_level: a reduce (of a gather or all-gather a gather) inside hosts, what goes between them, a broadcast (of a
  /// scatter a scatter) inside hosts, and, where it is another, what goes between them from the second segment on.
  std::vector<Collective> parts;
};

schedules::Rounds make_schedule(const Collective& collective);

/// The same as Open MPI works it off: it posts a broadcast's whole messages to all children of a rank at once, so that
/// those that keep their sender share its link (schedules::by_generation), while others leave one after the other. A
/// linear gather or scatter blocks in every message that keeps its sender.
/// `holds`: all messages of the rounds keep their sender (rendezvous).
schedules::Rounds make_schedule(const Collective& collective,
                                const std::function<bool(const schedules::Rounds&)>& holds);

/// In trees ranks return one after the other; everywhere else nearly together.
bool ends_apart(const Collective& collective);

/// Of these, calls whose ranks enter the next one apart, too. What all-reduces have of it is in
/// mpi.collective.overhead, which was fitted to them.
bool leaves_apart(const Collective& collective);

}  // namespace fabricast::models::mpi
