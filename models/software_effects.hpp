// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

/// Its GPUs exchange by NCCL.
bool runs_nccl(Benchmark benchmark);

/// Adds a line for each given key of `software` that the workload does not read.
void add_software_lines(const PlanContext& context, const Workload& workload, const Planner& planner,
                        std::set<std::string>& out);

}  // namespace fabricast::models
