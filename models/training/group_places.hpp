// SPDX-License-Identifier: Apache-2.0
// Which groups of GPUs meet on machines, and which lie in equal places of equal hosts. Groups that meet share adapters,
// buses and memories; those of other machines share no more than the fabric, and one such set of groups stands for all
// that are like it.
#pragma once

#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::models::training {

/// Groups that meet on machines, also by way of others.
struct Neighbourhood {
  std::vector<std::vector<DeviceId>> groups;
  std::vector<int> hosts;  ///< of their GPUs, in the order in which the groups meet them
  /// Hosts of the neighbourhoods that are like this one, in the same order. Of groups inside one machine none are
  /// listed: they share nothing.
  std::vector<std::vector<int>> likes;
};

/// The neighbourhood of the first group first. `groups`: none of them empty.
std::vector<Neighbourhood> neighbourhoods_of(const Topology& topology,
                                             const std::vector<std::vector<DeviceId>>& groups);

}  // namespace fabricast::models::training
