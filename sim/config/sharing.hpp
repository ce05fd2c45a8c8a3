// SPDX-License-Identifier: Apache-2.0
// Keys and readers of what shares GPUs and hosts: `sharing`, `remote`, `migration` of a workload, `host_neighbours` of
// a scenario.
#pragma once

#include <vector>

#include "config/schema.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::config {

/// The keys that workloads get.
std::vector<Field> sharing_fields();
SchemaPtr host_neighbours_schema();

/// Reads the keys of sharing_fields() from an accepted workload node.
void read_sharing(const Node& node, Workload& workload, Diagnostics& faults);
HostNeighbours read_host_neighbours(const Node& node);

}  // namespace fabricast::config
