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

MeshRings fastest_rings(const LaneMatrix& lanes, double lane_gb_per_s, const std::vector<double>& speeds,
                        std::size_t most) {
  const auto carried = [](const MeshRings& rings) { return rings.speed * static_cast<double>(rings.orders.size()); };
  MeshRings best;
  for (const double speed : speeds) {
    if (!best.orders.empty() && speed / best.speed <= .49) break;
    MeshRings found{disjoint_rings(channels_per_connection(lanes, lane_gb_per_s, speed), most), speed};
    if (carried(found) > carried(best)) best = std::move(found);
  }
  return best;
}

LaneMatrix channels_per_connection(LaneMatrix lanes, double lane_gb_per_s, double speed) {
  constexpr double rounding = 1e-6;
  for (auto& row : lanes)
    for (auto& one : row) one = static_cast<int>(one * lane_gb_per_s / speed + rounding);
  return lanes;
}

std::vector<int> chain_between(const LaneMatrix& lanes, LaneMatrix& room, int n, int first, int last) {
  for (const LaneMatrix* way : {static_cast<const LaneMatrix*>(&room), &lanes}) {
    for (const int end : {n > 1 ? last : -1, -1}) {
      auto order = hamiltonian(*way, first, end, false);
      if (!order) continue;
      for (std::size_t i = 0; i + 1 < order->size(); ++i)
        --room[static_cast<std::size_t>((*order)[i])][static_cast<std::size_t>((*order)[i + 1])];
      return *order;
    }
  }
  std::vector<int> order{first};
  for (int g = 0; g < n; ++g) {
    if (g != first && g != last) order.push_back(g);
  }
  if (last != first) order.push_back(last);
  return order;
}

std::vector<int> chain_of_neighbours(int n, int first, int last) {
  const int step = last == (first + n - 1) % n && last != (first + 1) % n ? 1 : n - 1;
  std::vector<int> order{first};
  for (int i = 1; i < n; ++i) {
    const int g = (first + i * step) % n;
    if (g != last) order.push_back(g);
  }
  if (last != first) order.push_back(last);
  return order;
}

}  // namespace fabricast::models::nccl
