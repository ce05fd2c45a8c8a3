// SPDX-License-Identifier: Apache-2.0
// Steps of a network on 1, 2, 4 ... GPUs: one program per number of GPUs. A row is asked for by its number of GPUs.
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::training {

/// Why a step cannot run: a precision that the GPUs lack, combinations of `parallel` that nothing computes, memory.
Diagnostics step_faults(const PlanContext& context, const Workload& workload);

Result<std::unique_ptr<Planner>> make_training_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::training
