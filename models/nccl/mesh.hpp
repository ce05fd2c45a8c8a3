// SPDX-License-Identifier: Apache-2.0
// GPUs joined directly by NVLinks (no NVSwitch): rings and chains over links that no other ring uses.
#pragma once

#include <optional>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::models::nccl {

/// lanes[a][b] = NVLinks that lead straight from GPU a to GPU b.
using LaneMatrix = std::vector<std::vector<int>>;

LaneMatrix direct_lanes(const Topology& topology, const std::vector<DeviceId>& gpus);

/// A Hamiltonian path (or cycle) over edges with lanes left, from `start`, ending at `end` unless it is negative.
/// Prefers the edges with most lanes left, which keeps later channels possible.
std::optional<std::vector<int>> hamiltonian(const LaneMatrix& lanes, int start, int end, bool is_cycle);

/// Up to `most` rings over all GPUs, each lane in one of them, every ring in both directions where lanes are left.
std::vector<std::vector<int>> disjoint_rings(LaneMatrix lanes, std::size_t most);

}  // namespace fabricast::models::nccl
