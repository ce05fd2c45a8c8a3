// SPDX-License-Identifier: Apache-2.0
#include "nccl/mesh.hpp"

#include <algorithm>
#include <functional>

namespace fabricast::models::nccl {

LaneMatrix direct_lanes(const Topology& topology, const std::vector<DeviceId>& gpus) {
  LaneMatrix lanes(gpus.size(), std::vector<int>(gpus.size(), 0));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      if (a == b) continue;
      const auto path = topology.path_in_host(gpus[a], gpus[b]);
      if (path && path->uses_nvlink && path->links.size() == 1) lanes[a][b] = topology.link(path->links[0]).lanes;
    }
  }
  return lanes;
}

std::optional<std::vector<int>> hamiltonian(const LaneMatrix& lanes, int start, int end, bool is_cycle) {
  if (lanes.empty()) return std::nullopt;
  const int n = static_cast<int>(lanes.size());
  std::vector<int> order{start};
  std::vector<bool> used(lanes.size(), false);
  used[static_cast<std::size_t>(start)] = true;
  const auto lane = [&](int a, int b) { return lanes[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; };
  const std::function<bool()> extend = [&]() {
    const int last = order.back();
    if (static_cast<int>(order.size()) == n) {
      return (!is_cycle || lane(last, start) > 0) && (end < 0 || last == end);
    }
    std::vector<int> next;
    for (int g = 0; g < n; ++g) {
      const bool too_early = g == end && static_cast<int>(order.size()) < n - 1;
      if (!used[static_cast<std::size_t>(g)] && lane(last, g) > 0 && !too_early) next.push_back(g);
    }
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) { return lane(last, a) > lane(last, b); });
    for (const int g : next) {
      used[static_cast<std::size_t>(g)] = true;
      order.push_back(g);
      if (extend()) return true;
      order.pop_back();
      used[static_cast<std::size_t>(g)] = false;
    }
    return false;
  };
  if (extend()) return order;
  return std::nullopt;
}

namespace {

void take_lanes(LaneMatrix& lanes, const std::vector<int>& cycle) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int next = cycle[(i + 1) % cycle.size()];
    --lanes[static_cast<std::size_t>(cycle[i])][static_cast<std::size_t>(next)];
  }
}

/// True when every hop of the cycle still has a lane.
bool has_lanes(const LaneMatrix& lanes, const std::vector<int>& cycle) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int next = cycle[(i + 1) % cycle.size()];
    if (lanes[static_cast<std::size_t>(cycle[i])][static_cast<std::size_t>(next)] <= 0) return false;
  }
  return true;
}

}  // namespace

std::vector<std::vector<int>> disjoint_rings(LaneMatrix lanes, std::size_t most) {
  std::vector<std::vector<int>> rings;
  while (rings.size() < most) {
    const auto ring = hamiltonian(lanes, 0, -1, true);
    if (!ring) break;
    take_lanes(lanes, *ring);
    rings.push_back(*ring);
    // Links work both ways: the same ring the other way round uses the other half of each.
    const std::vector<int> back(ring->rbegin(), ring->rend());
    if (rings.size() == most || !has_lanes(lanes, back)) continue;
    take_lanes(lanes, back);
    rings.push_back(back);
  }
  return rings;
}

}  // namespace fabricast::models::nccl
