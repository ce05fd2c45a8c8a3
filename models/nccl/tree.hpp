// SPDX-License-Identifier: Apache-2.0
// The two complementary binary trees over hosts that NCCL sends half of the channels through each: a leaf of one is an
// inner node of the other [Sanders, Speck, Traeff, Two-tree algorithms, Parallel Computing 35, 2009].
#pragma once

namespace fabricast::models::nccl {

/// Parent of `host` in the tree over `num_hosts`; -1 for the root. The second tree mirrors the first for even counts
/// and shifts it by one for odd ones.
int tree_parent(int host, int num_hosts, bool is_second_tree);

}  // namespace fabricast::models::nccl
