// SPDX-License-Identifier: Apache-2.0
// Which of the resources that flows cross can hold them up at all. Of resources of one kind that each of the flows
// crosses equally often, whatever else it crosses, only the slowest can: the rates of max-min sharing are the same
// without the others. Transports ask for the slowest of a kind: links of PCIe apart from those between sockets,
// memories apart from root complexes.
#pragma once

#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::models {

/// Leaves of the crossings of flows that have the resources to themselves those that can bind. Each list is sorted by
/// resource and stays so.
void keep_binding_only(const Resources& resources, const std::vector<std::vector<Crossing>*>& flows);

}  // namespace fabricast::models
