// SPDX-License-Identifier: Apache-2.0
// One function and one file per algorithm; `n` ranks, `bytes` of the whole message, `block` of one rank's part. Which
// of them a library takes when: mpi/decisions.hpp, nccl/tuning.hpp. Sources: Thakur, Rabenseifner, Gropp, Optimization
// of Collective Communication Operations in MPICH, IJHPCA 19, 2005; Bruck et al., IEEE TPDS 8, 1997; Open MPI
// coll/base, MPICH coll; Sanders, Speck, Traeff, Two-tree algorithms, Parallel Computing 35, 2009.
#pragma once

#include <functional>

#include "schedules/rounds.hpp"

namespace fabricast::models::schedules {

/// The rank `distance` places on.
template <class Int>
Int peer(Int rank, Int distance, Int n) {
  return (rank + distance) % n;
}

// Neighbours only.
Rounds ring(int n, double block, double reduced);
/// Rounds of a ring in which every block passes all ranks `passes` times: once to gather or scatter, twice to reduce.
inline double ring_rounds(double n, double passes) { return passes * (n - 1); }
/// n even: pairs that change sides every round; two blocks after the first.
Rounds neighbor_exchange(int n, double block);

// Partners at distances that double or halve.
Rounds all_reduce_recursive_doubling(int n, double bytes);
Rounds all_gather_recursive_doubling(int n, double block);
/// Half of the vector is exchanged with the nearest rank, the smallest piece with the farthest one. `folds_halves`:
/// ranks beyond a power of two exchange halves with their neighbours first (Open MPI), else they hand over all (MPICH).
Rounds all_reduce_rabenseifner(int n, double bytes, bool folds_halves);
Rounds reduce_rabenseifner(int n, double bytes, int root, bool folds_halves);
/// Combined and scattered: rank r ends with blocks[r] bytes. Half is exchanged with the farthest rank; what has no
/// bytes is not sent [Open MPI coll_base_reduce_scatter.c, MPICH reduce_scatter_intra_recursive_halving.c].
Rounds recursive_halving(const std::vector<double>& blocks);
/// The same with the nearest rank first, in bit-reversed order; a last message puts each block in its place.
Rounds butterfly(int n, double bytes);
// Partners in groups of `radix` ranks, everybody with everybody else of a group: UCC's.
Rounds all_reduce_knomial(int n, double bytes, int radix);
/// Reduced and scattered, the farthest last, then gathered the same way back.
Rounds all_reduce_sra_knomial(int n, double bytes, int radix);
Rounds all_gather_knomial(int n, double block, int radix);
/// Trees: every rank's `block` to the root, the same way back, and parts of a broadcast that everybody then gathers.
Rounds gather_knomial(int n, double block, int root, int radix);
Rounds scatter_knomial(int n, double block, int root, int radix);
Rounds broadcast_sag_knomial(int n, double bytes, int root, int radix);
Rounds all_gather_bruck(int n, double block);
Rounds all_to_all_bruck(int n, double block);
Rounds dissemination(int n);

/// From a root outwards; `is_gather` turns the tree round and combines (reduce). `segment` 0 = whole messages.
struct Tree {
  int n = 1;
  double bytes = 0;
  int root = 0;
  bool is_gather = false;
  double segment = 0;
  bool is_in_order = false;  ///< binomial: ranks below each other are consecutive, from the root the farthest first
};
/// To gather always in order: the nearest first.
Rounds binomial(const Tree& tree);
/// In order.
Rounds knomial(const Tree& tree, int radix);
Rounds binary(const Tree& tree);
/// Both halves of the message down one half of a binary tree each, then exchanged.
Rounds split_binary(const Tree& tree);
Rounds chain(const Tree& tree);
/// The root exchanges with everybody at once.
Rounds linear(const Tree& tree);
/// Rank 0 hands out blocks[r] bytes to every rank r, none to who gets none [Open MPI coll_basic_scatterv.c].
Rounds linear_scatter(const std::vector<double>& blocks);
/// Binomial: rank r of the tree gets the parts of those below it, then everybody gathers them.
Rounds binomial_scatter(int n, double bytes, int root);
/// Every rank's `block` to the root, the same way back.
Rounds binomial_gather(int n, double block, int root);
/// The root asks one rank after the other for the first part of its block, of at most `first` bytes (0: the whole); the
/// rest of it comes while the next one is asked.
Rounds linear_sync_gather(int n, double block, int root, double first);
/// `round`s of several messages as one message after the other.
Rounds one_by_one(const Rounds& rounds);

/// Two binary trees over all ranks, half of the data each: a leaf of one is an inner rank of the other. The second
/// mirrors the first for even n and shifts it by one for odd n. Parent of `rank`, -1 for the root.
int double_tree_parent(int rank, int n, bool is_second_tree);

/// Parallel aggregated trees (PAT), to gather (scattering turns them round): every block goes down a binomial tree of
/// its own, farthest first, so that all ranks do the same at every distance 1, 2, 4, ... below n. A block comes in from
/// the distance of the lowest set bit of its way. Blocks that a rank sends, by the logarithm of the distance; n - 1 in
/// all.
std::vector<int> aggregated_tree_blocks(int n);

// Everybody with everybody.
Rounds pairwise(int n, double block, double reduced);
/// Everybody posts everything at once.
Rounds all_at_once(int n, double block);

/// The stages of a hierarchical collective as schedules of n ranks, whose rank 0 speaks for them: inside every host,
/// between the speakers, inside every host again. An empty one is left out.
struct Stages {
  std::function<Rounds(int n)> gather, exchange, spread;
  std::function<Rounds(int n)> later_exchange;  ///< of all parts but the first; empty: the same
};
/// `hosts`: [rank]. The root, where there is one, speaks for its host. `parts` > 1: the first part of the message
/// passes every stage, the others follow it: while one is exchanged, a host's ranks reduce another and then spread a
/// third [Open MPI coll_han_allreduce.c, t3].
Rounds hierarchical(const std::vector<int>& hosts, int root, const Stages& stages, std::int64_t parts);

}  // namespace fabricast::models::schedules
