// SPDX-License-Identifier: Apache-2.0
// NCCL's search for the channels of GPUs that PCIe joins (ncclTopoCompute, NVIDIA/nccl src/graph/search.cc, paths.cc,
// topo.cc at 2.7 to 2.29): one ring in the order of the bus, as often as the links carry it at one of the speeds NCCL
// tries, from the highest down. GPUs without peer access meet at the processor: they load both ways to it.
#pragma once

#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

/// NCCL's speeds inside a host, high to low, GB/s.
const std::vector<double>& speeds_in_host(int version, int compute_capability);

/// Whether channels of this speed, GB/s, are halved and doubled in number (search.cc, ncclTopoDupChannels).
bool may_halve(double speed, std::size_t count, int version, int compute_capability);

/// What links carry of rings through all GPUs of one host, in rank order.
struct PcieRings {
  double slot = 0;  ///< of one GPU, GB/s
  double most = 0;  ///< that one ring may have, GB/s
};
PcieRings pcie_rings(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// Channels of one speed, GB/s.
struct PcieChannels {
  int count = 1;
  double speed = 0;
};
/// The most at one speed, as long as the next speed is more than .49 of the best one's.
PcieChannels place_rings(const PcieRings& rings, const std::vector<double>& speeds, int most_channels);

}  // namespace fabricast::models::nccl
