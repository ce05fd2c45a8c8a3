// SPDX-License-Identifier: Apache-2.0
// GPUs joined by NVLinks: rings and chains over links that no other ring uses, and over NVSwitches.
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

/// Rings of one speed.
struct MeshRings {
  std::vector<std::vector<int>> orders;
  double speed = 0;  ///< GB/s
};
/// Those of the first of `speeds`, which fall, that carry most together; none below .49 of the speed of some that were
/// found (NVIDIA/nccl src/graph/search.cc, ncclTopoCompute). Empty where no ring passes all GPUs.
MeshRings fastest_rings(const LaneMatrix& lanes, double lane_gb_per_s, const std::vector<double>& speeds,
                        std::size_t most);

/// How many channels of a speed each connection of a mesh carries.
LaneMatrix channels_per_connection(LaneMatrix lanes, double lane_gb_per_s, double speed);

/// All `n` GPUs from `first` to `last`. Channels of a mesh take NVLinks that the ones before left room on, where there
/// is such a way; `room`: how many more channels each connection carries.
std::vector<int> chain_between(const LaneMatrix& lanes, LaneMatrix& room, int n, int first, int last);

/// The same over NVSwitches: a GPU hands on to its neighbour, the one before it unless that would end elsewhere
/// (NVIDIA/nccl src/graph/search.cc, ncclTopoSearchNextGpuSort).
std::vector<int> chain_of_neighbours(int n, int first, int last);

}  // namespace fabricast::models::nccl
