// SPDX-License-Identifier: Apache-2.0
#include "engine/dense_flows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace fabricast::engine {

using models::Flow;
using models::Resources;

DenseFlows make_dense(const Resources& resources, const std::vector<const Flow*>& flows, bool keep_all) {
  // users[resource] = (flow, times) in flow order; resources with equal users differ only in capacity.
  std::map<int, std::vector<std::pair<int, int>>> users;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const auto& crossing : flows[f]->crossings)
      users[crossing.resource].emplace_back(static_cast<int>(f), crossing.times);
  }
  DenseFlows dense;
  dense.crossings.resize(flows.size());
  std::map<std::vector<std::pair<int, int>>, int> by_users;
  const auto add = [&](const std::vector<std::pair<int, int>>& who, double capacity) {
    if (!keep_all) {
      const auto [it, is_new] = by_users.try_emplace(who, static_cast<int>(dense.capacities.size()));
      if (!is_new) {
        auto& known = dense.capacities[static_cast<std::size_t>(it->second)];
        known = std::min(known, capacity);
        return;
      }
    }
    const int index = static_cast<int>(dense.capacities.size());
    dense.capacities.push_back(capacity);
    for (const auto& [flow, times] : who) dense.crossings[static_cast<std::size_t>(flow)].push_back({index, times});
  };
  for (const auto& [resource, who] : users) add(who, resources.capacity(resource));
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (std::isfinite(flows[f]->rate_cap)) add({{static_cast<int>(f), 1}}, flows[f]->rate_cap);
  }
  return dense;
}

}  // namespace fabricast::engine
