// SPDX-License-Identifier: Apache-2.0
#include "topology/leaves.hpp"

#include <algorithm>
#include <cstddef>

namespace fabricast::topology {

std::vector<int> fill_leaves(const std::vector<int>& hosts, int down) {
  std::vector<int> filled;
  for (std::size_t i = 0; i < hosts.size();) {
    auto end = i;
    while (end < hosts.size() && hosts[end] == hosts[i]) ++end;
    const int of_host = static_cast<int>(end - i);
    if (filled.empty() || (of_host <= down && filled.back() + of_host > down)) filled.push_back(0);
    for (; i < end; ++i) {
      if (filled.back() == down) filled.push_back(0);
      ++filled.back();
    }
  }
  return filled;
}

int fewest_spines(int leaves, int up, int ports) {
  for (int spines = std::max(1, (leaves * up + ports - 1) / ports); spines < up; ++spines) {
    if (up % spines == 0) return spines;
  }
  return up;
}

}  // namespace fabricast::topology
