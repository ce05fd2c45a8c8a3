// SPDX-License-Identifier: Apache-2.0
// Keys and reader of the benchmark `training`: network or profile, precision, batch, how the work is spread.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::config {

/// The keys that workloads get.
std::vector<Field> training_fields();

/// Reads them from an accepted workload node; files are found relative to `folder`. Keys that the benchmark or the kind
/// of parallelism does not read are refused.
void read_training(const Node& node, const std::string& folder, Workload& workload, Diagnostics& faults);

}  // namespace fabricast::config
