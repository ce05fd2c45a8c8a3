// SPDX-License-Identifier: Apache-2.0
#include "models/schedules/algorithms.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using fabricast::models::schedules::aggregated_tree_blocks;
using fabricast::models::schedules::double_tree_parent;

TEST_CASE("both trees reach every host from one root, and no host is inner node of both for even counts") {
  for (const int n : {2, 3, 4, 7, 8, 16, 33, 64}) {
    CAPTURE(n);
    std::vector<std::vector<int>> children(2, std::vector<int>(static_cast<std::size_t>(n), 0));
    for (int second = 0; second < 2; ++second) {
      int roots = 0;
      for (int h = 0; h < n; ++h) {
        int at = h;
        int hops = 0;
        while (double_tree_parent(at, n, second == 1) >= 0 && hops <= n) {
          at = double_tree_parent(at, n, second == 1);
          ++hops;
        }
        CHECK(hops <= n);
        const int parent = double_tree_parent(h, n, second == 1);
        if (parent < 0) ++roots;
        if (parent >= 0) ++children[static_cast<std::size_t>(second)][static_cast<std::size_t>(parent)];
      }
      CHECK(roots == 1);
    }
    for (int h = 0; h < n; ++h) {
      CHECK(children[0][static_cast<std::size_t>(h)] <= 2);
      CHECK(children[1][static_cast<std::size_t>(h)] <= 2);
      // The root has one child beside being inner or leaf in the other tree.
      if (n % 2 == 0 && n > 2)
        CHECK(std::min(children[0][static_cast<std::size_t>(h)], children[1][static_cast<std::size_t>(h)]) <= 1);
    }
  }
}

TEST_CASE("parents of both trees are those NCCL gives 8 and 5 hosts") {
  const auto parents = [](int n, bool is_second) {
    std::vector<int> all;
    for (int h = 0; h < n; ++h) all.push_back(double_tree_parent(h, n, is_second));
    return all;
  };
  // The lowest set bit is a host's height: 4 below 0, 2 and 6 below 4, odd hosts leaves.
  CHECK(parents(8, false) == std::vector<int>{-1, 2, 4, 2, 0, 6, 4, 6});
  CHECK(parents(8, true) == std::vector<int>{1, 3, 1, 7, 5, 3, 5, -1});  // mirrored: 7 - h
  CHECK(parents(5, false) == std::vector<int>{-1, 2, 4, 2, 0});
  CHECK(parents(5, true) == std::vector<int>{1, -1, 3, 0, 3});  // shifted by one
  CHECK(parents(1, false) == std::vector<int>{-1});
  CHECK(parents(2, true) == std::vector<int>{1, -1});
}

TEST_CASE("PAT: passing on what it has at every distance, farthest first, a rank gathers all blocks, each once") {
  for (const int n : {1, 2, 3, 4, 5, 7, 8, 13, 16, 33, 100}) {
    CAPTURE(n);
    const auto blocks = aggregated_tree_blocks(n);
    // Ranks behind this one whose blocks it has, after the levels so far.
    std::set<int> held{0};
    for (std::size_t level = blocks.size(); level-- > 0;) {
      const int distance = 1 << level;
      std::set<int> arrived;
      for (const int one : held)
        if (one + distance < n) arrived.insert(one + distance);
      CHECK(static_cast<int>(arrived.size()) == blocks[level]);
      for (const int one : arrived) CHECK(held.insert(one).second);
    }
    CHECK(static_cast<int>(held.size()) == n);
  }
}
