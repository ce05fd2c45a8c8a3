// SPDX-License-Identifier: Apache-2.0
// Short names of what planners vary: `hosts`, `fabric.<...>`, `gpu.type`, `hca.type`, `hca.count`.
#pragma once

#include <string>
#include <vector>

#include "fabricast/load.hpp"
#include "fabricast/sweep_plan.hpp"

namespace fabricast::sweep {

/// Settings for load_scenario. Names that need to know the hosts' devices ask for the scenario as the other settings
/// leave it. `faults`: names that cannot be followed.
std::vector<Setting> expanded(const SweepPlan& plan, const std::vector<SweepSetting>& settings, Diagnostics& faults);

}  // namespace fabricast::sweep
