// SPDX-License-Identifier: Apache-2.0
// How generated trees deal out adapters to leaves and cables to spines.
#pragma once

#include <vector>

namespace fabricast::topology {

/// Adapters on each leaf, at most `down`, in their order; `hosts`: [adapter], those of a host behind each other. All of
/// a host's lie on one leaf where they fit, as networks are wired: spread over two, they would meet others' on the way
/// up that the destination chooses. down >= 1.
std::vector<int> fill_leaves(const std::vector<int>& hosts, int down);

/// The fewest spines that have ports for all cables and get equally many from each leaf; more than `up` are of no
/// use.
int fewest_spines(int leaves, int up, int ports);

}  // namespace fabricast::topology
