// SPDX-License-Identifier: Apache-2.0
#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

std::vector<int> aggregated_tree_blocks(int n) {
  std::vector<int> blocks;
  for (int distance = 1; distance < n; distance *= 2) blocks.push_back((n - 1 + distance) / (2 * distance));
  return blocks;
}

}  // namespace fabricast::models::schedules
