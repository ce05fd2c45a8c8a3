// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

namespace {

/// In-order binary tree: rank 0 is the root, the lowest set bit of a rank is its height.
int first_tree_parent(int rank, int n) {
  if (rank == 0) return -1;
  const int height = rank & -rank;
  const int parent = (rank ^ height) | (height << 1);
  return parent < n ? parent : rank ^ height;
}

}  // namespace

int double_tree_parent(int rank, int n, bool is_second_tree) {
  if (!is_second_tree) return first_tree_parent(rank, n);
  if (n % 2 == 0) {
    const int parent = first_tree_parent(n - 1 - rank, n);
    return parent < 0 ? -1 : n - 1 - parent;
  }
  const int parent = first_tree_parent((rank + n - 1) % n, n);
  return parent < 0 ? -1 : (parent + 1) % n;
}

}  // namespace fabricast::models::schedules
