// SPDX-License-Identifier: Apache-2.0
// Plans of sweeps and cost models from YAML files; every fault of a file at once.
#pragma once

#include <string>

#include "fabricast/sweep_plan.hpp"

namespace fabricast {

/// Reads a plan (schema fabricast/plan/1) and the cost model it names. The scenario itself is read design by design.
Result<SweepPlan> load_sweep_plan(const std::string& path);

/// Reads a cost model (schema fabricast/cost/1).
Result<CostModel> load_cost_model(const std::string& path);

}  // namespace fabricast
