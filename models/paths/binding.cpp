// SPDX-License-Identifier: Apache-2.0
#include "paths/binding.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace fabricast::models {

namespace {

/// How often a flow, by its number, crosses a resource.
struct Use {
  int resource = 0, flow = 0, times = 0;
  friend auto operator<=>(const Use&, const Use&) = default;
};

std::vector<Use> uses_of(const std::vector<std::vector<Crossing>*>& flows) {
  std::vector<Use> out;
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const auto& crossing : *flows[f]) out.push_back({crossing.resource, static_cast<int>(f), crossing.times});
  std::sort(out.begin(), out.end());
  return out;
}

/// Kind of link or limit, and who crosses it how often.
using Role = std::tuple<int, std::string, std::vector<std::pair<int, int>>>;

Role role_of(const Resources& resources, std::vector<Use>::const_iterator first,
             std::vector<Use>::const_iterator last) {
  const int resource = first->resource;
  const bool is_link = resources.is_link(resource);
  const int kind = is_link ? static_cast<int>(resources.topology().link_kind(LinkId{resource})) : -1;
  const std::string limit = is_link ? "" : resources.parameter(resource);
  std::vector<std::pair<int, int>> times;
  for (auto use = first; use != last; ++use) times.emplace_back(use->flow, use->times);
  return {kind, limit.substr(limit.rfind('.') + 1), std::move(times)};
}

}  // namespace

void keep_binding_only(const Resources& resources, const std::vector<std::vector<Crossing>*>& flows) {
  const auto uses = uses_of(flows);
  std::map<Role, int> slowest;
  for (auto first = uses.begin(); first != uses.end();) {
    const auto last = std::find_if(first, uses.end(), [&](const Use& use) { return use.resource != first->resource; });
    const auto [it, is_new] = slowest.try_emplace(role_of(resources, first, last), first->resource);
    if (!is_new && resources.capacity(first->resource) < resources.capacity(it->second)) it->second = first->resource;
    first = last;
  }
  std::vector<int> kept;
  for (const auto& [role, resource] : slowest) kept.push_back(resource);
  std::sort(kept.begin(), kept.end());
  for (auto* flow : flows)
    std::erase_if(*flow,
                  [&](const Crossing& one) { return !std::binary_search(kept.begin(), kept.end(), one.resource); });
}

}  // namespace fabricast::models
