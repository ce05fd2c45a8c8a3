// SPDX-License-Identifier: Apache-2.0
// Rounds of each family of algorithms; `n` ranks, `bytes` of the whole message, `block` of one rank's part.
#pragma once

#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

/// The largest power of two up to n >= 1.
int floor_power_of_two(int n);

// doubling.cpp: partners at distances that double or halve.
Rounds all_reduce_recursive_doubling(int n, double bytes);
Rounds all_reduce_rabenseifner(int n, double bytes);
/// `bytes` are combined and scattered: rank r ends with its n-th part.
Rounds recursive_halving(int n, double bytes);
/// The same in bit-reversed order without folding; a last message puts each block in its place.
Rounds butterfly(int n, double bytes);
Rounds reduce_rabenseifner(int n, double bytes, int root);
Rounds all_gather_recursive_doubling(int n, double block);
Rounds all_gather_bruck(int n, double block);
Rounds all_to_all_bruck(int n, double block);
Rounds dissemination(int n);

// rings.cpp: neighbours only.
Rounds ring(int n, double block, double reduced);
/// n even: pairs that change sides every round; two blocks after the first.
Rounds neighbor_exchange(int n, double block);

// trees.cpp: from a root outwards; `is_gather` turns the tree round and combines (reduce). `segment` 0 = whole
// messages.
struct Tree {
  int n = 1;
  double bytes = 0;
  int root = 0;
  bool is_gather = false;
  double segment = 0;
};
Rounds binomial(const Tree& tree);
Rounds knomial(const Tree& tree, int radix);
Rounds binary(const Tree& tree);
Rounds split_binary(const Tree& tree);
Rounds chain(const Tree& tree);
/// The root exchanges with everybody at once.
Rounds linear(const Tree& tree);
/// Binomial: rank r of the tree gets the parts of those below it, then everybody gathers them.
Rounds binomial_scatter(int n, double bytes, int root);

// all_to_all.cpp
Rounds pairwise(int n, double block, double reduced);
/// Everybody posts everything at once.
Rounds all_at_once(int n, double block);

// two_level.cpp
Rounds two_level(const Collective& collective);

}  // namespace fabricast::models::mpi
