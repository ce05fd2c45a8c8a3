// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

#include <algorithm>

namespace fabricast::models::schedules {

Rounds binary(const Tree& tree) { return to_rounds(complete_tree(tree.n, 2), tree); }

Rounds split_binary(const Tree& tree) {
  if (tree.n < 3) return chain(tree);
  auto half = tree;
  half.bytes = tree.bytes / 2;
  auto rounds = binary(half);
  // Each rank of the left subtree, odd ones, has a partner in the right one; a rank without one asks the root.
  Round swap;
  std::vector<int> left;
  std::vector<int> right;
  for (int r = 1; r < tree.n; ++r) (r % 2 != 0 ? left : right).push_back(r);
  const auto real = [&](int rank) { return (rank + tree.root) % tree.n; };
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const int a = i < left.size() ? left[i] : 0;
    const int b = i < right.size() ? right[i] : 0;
    if (b != 0) swap.steps.push_back({real(a), real(b), half.bytes});
    if (a != 0) swap.steps.push_back({real(b), real(a), half.bytes});
  }
  rounds.push_back(std::move(swap));
  return rounds;
}

}  // namespace fabricast::models::schedules
