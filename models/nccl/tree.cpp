// SPDX-License-Identifier: Apache-2.0
#include "nccl/tree.hpp"

namespace fabricast::models::nccl {

namespace {

/// In-order binary tree: host 0 is the root, the lowest set bit of a host is its height.
int first_tree_parent(int host, int num_hosts) {
  if (host == 0) return -1;
  const int height = host & -host;
  const int parent = (host ^ height) | (height << 1);
  return parent < num_hosts ? parent : host ^ height;
}

}  // namespace

int tree_parent(int host, int num_hosts, bool is_second_tree) {
  if (!is_second_tree) return first_tree_parent(host, num_hosts);
  if (num_hosts % 2 == 0) {
    const int parent = first_tree_parent(num_hosts - 1 - host, num_hosts);
    return parent < 0 ? -1 : num_hosts - 1 - parent;
  }
  const int parent = first_tree_parent((host + num_hosts - 1) % num_hosts, num_hosts);
  return parent < 0 ? -1 : (parent + 1) % num_hosts;
}

}  // namespace fabricast::models::nccl
