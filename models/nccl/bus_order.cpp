// SPDX-License-Identifier: Apache-2.0
#include "nccl/bus_order.hpp"

#include <algorithm>
#include <numeric>

namespace fabricast::models::nccl {

void BusOrder::sort(std::vector<DeviceId>& gpus) {
  if (gpus.size() < 2) return;
  std::ranges::sort(gpus);
  const auto [it, is_new] = orders_.try_emplace(topology_.place_of(gpus));
  if (is_new) it->second = found(gpus);
  const auto listed = gpus;
  for (std::size_t i = 0; i < listed.size(); ++i) gpus[i] = listed[static_cast<std::size_t>(it->second[i])];
}

/// Every device on the way from a GPU to its memory is known by the first GPU below it.
std::vector<int> BusOrder::found(const std::vector<DeviceId>& gpus) const {
  std::vector<std::vector<DeviceId>> ways;  // memory first
  std::map<DeviceId, int> first_below;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    auto& way = ways.emplace_back();
    const auto up = topology_.path_in_host(gpus[g], topology_.local_memory(gpus[g]), {.may_use_nvlink = false});
    if (!up) continue;
    for (const auto link : up->links) way.push_back(topology_.link(link).to);
    std::ranges::reverse(way);
    for (const auto device : way) first_below.try_emplace(device, static_cast<int>(g));
  }
  const auto place = [&](int g) {
    std::vector<int> out;
    for (const auto device : ways[static_cast<std::size_t>(g)]) out.push_back(first_below.at(device));
    out.push_back(g);
    return out;
  };
  std::vector<int> order(gpus.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, place);
  return order;
}

}  // namespace fabricast::models::nccl
