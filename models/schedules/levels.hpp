// SPDX-License-Identifier: Apache-2.0
// Rooted trees, level by level.
#pragma once

#include <utility>

#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

using Level = std::vector<std::pair<int, int>>;  ///< parent and child, counted from the root

/// Levels of a complete tree: a rank's children are as far away as its level has ranks, twice as far ... [Open MPI
/// coll_base_topo.c, build_tree]. Binary: 0 has 1 and 2, 1 has 3 and 5, 2 has 4 and 6.
std::vector<Level> complete_tree(int n, int fanout);

/// Whole messages level by level, or segments that fill the levels one after the other.
Rounds to_rounds(const std::vector<Level>& levels, const Tree& tree);

}  // namespace fabricast::models::schedules
