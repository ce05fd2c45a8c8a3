// SPDX-License-Identifier: Apache-2.0
// Which links of a fabric share their traffic because its switches choose the way of each packet.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

/// Where a generator put a switch. Links between tiers are shared below: by the leaf, above it by the pod. Links inside
/// a tier join routers of a dragonfly: shared by the router inside its group, by the group between groups.
struct SwitchPlace {
  int tier = 0;   ///< 0: has HCAs
  int group = 0;  ///< pod, or group of a dragonfly; in tier 0 of a fabric of two tiers without meaning
};

class SpreadTable {
 public:
  SpreadTable() = default;
  /// `links` from `first_link` on; switch s of `places` is device `first_switch` + s, further ones share nothing.
  SpreadTable(const std::vector<Link>& links, int first_link, int first_switch, const std::vector<SwitchPlace>& places);

  [[nodiscard]] std::optional<SpreadLinks> of(int link) const;
  /// The same without links that are dead.
  [[nodiscard]] SpreadTable without(const std::vector<LinkId>& failed) const;

 private:
  std::vector<SharedLinks> shared_;
  std::vector<std::pair<int, int>> of_link_;  ///< [link] -> index of what it is shared with at either end, or -1
};

}  // namespace fabricast::topology
