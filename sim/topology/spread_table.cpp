// SPDX-License-Identifier: Apache-2.0
#include "topology/spread_table.hpp"

namespace fabricast::topology {

SpreadTable::SpreadTable(const std::vector<Link>& links, int first_link, int first_router, int num_routers,
                         int routers_per_group)
    : first_router_(first_router), routers_per_group_(routers_per_group) {
  routers_.resize(static_cast<std::size_t>(num_routers));
  groups_.resize(static_cast<std::size_t>(num_routers / routers_per_group));
  for (std::size_t l = 0; l < links.size(); ++l) {
    const auto& link = links[l];
    if (!is_router(link.from) || !is_router(link.to)) continue;
    const LinkId id{first_link + static_cast<int>(l)};
    if (group_of(link.from) == group_of(link.to)) {
      routers_[router_of(link.from)].out.push_back(id);
      routers_[router_of(link.to)].in.push_back(id);
    } else {
      groups_[group_of(link.from)].out.push_back(id);
      groups_[group_of(link.to)].in.push_back(id);
    }
  }
}

std::optional<SpreadLinks> SpreadTable::of(const Link& link) const {
  if (!is_router(link.from) || !is_router(link.to)) return std::nullopt;
  const auto from = group_of(link.from), to = group_of(link.to);
  if (from == to)
    return SpreadLinks{link.from, link.to, false, &routers_[router_of(link.from)].out,
                       &routers_[router_of(link.to)].in};
  return SpreadLinks{first_of(from), first_of(to), true, &groups_[from].out, &groups_[to].in};
}

}  // namespace fabricast::topology
