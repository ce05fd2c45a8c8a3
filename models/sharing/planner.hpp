// SPDX-License-Identifier: Apache-2.0
// Planners of gpu_sharing, remote_gpu and vgpu_migration: their operations are times without flows.
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

Result<std::unique_ptr<Planner>> make_sharing_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models
