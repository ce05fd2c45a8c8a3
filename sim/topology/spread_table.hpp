// SPDX-License-Identifier: Apache-2.0
// Which links of a dragonfly share their traffic because routers choose the way of each packet.
#pragma once

#include <optional>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

class SpreadTable {
 public:
  SpreadTable() = default;
  /// `links` from `first_link` on join devices; routers are the devices from `first_router`, group after group.
  SpreadTable(const std::vector<Link>& links, int first_link, int first_router, int num_routers, int routers_per_group);

  [[nodiscard]] std::optional<SpreadLinks> of(const Link& link) const;

 private:
  struct Ends {
    std::vector<LinkId> out, in;
  };
  [[nodiscard]] bool is_router(DeviceId id) const {
    return id.value >= first_router_ && id.value < first_router_ + static_cast<int>(routers_.size());
  }
  [[nodiscard]] std::size_t router_of(DeviceId id) const { return static_cast<std::size_t>(id.value - first_router_); }
  [[nodiscard]] std::size_t group_of(DeviceId id) const {
    return router_of(id) / static_cast<std::size_t>(routers_per_group_);
  }
  [[nodiscard]] DeviceId first_of(std::size_t group) const {
    return {first_router_ + static_cast<int>(group) * routers_per_group_};
  }

  int first_router_ = 0;
  int routers_per_group_ = 1;
  std::vector<Ends> routers_;  ///< [router] -> links to and from others of its group
  std::vector<Ends> groups_;   ///< [group] -> links to and from other groups
};

}  // namespace fabricast::topology
