// SPDX-License-Identifier: Apache-2.0
// Steps of a network on 1, 2, 4 ... GPUs: one program per number of GPUs. A row is asked for by its number of GPUs.
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::training {

Result<std::unique_ptr<Planner>> make_training_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::training
