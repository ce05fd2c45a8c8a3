// SPDX-License-Identifier: Apache-2.0
// What virtual machines cost a healthy cluster as they are described, and which of their settings would get it back.
#pragma once

#include <optional>
#include <vector>

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// The same hosts as bare metal; false when they are.
bool take_off_vms(Case& one);

/// The row of `patients` that the VMs add most to, by the forecast, and what settings leave of it; nothing where
/// no row is measured (`measured[patient][size]` in seconds, 0 = not) or none loses. With runs on bare metal only
/// rows that these serve count.
std::optional<VirtualCost> virtual_cost(const std::vector<Patient>& patients,
                                        const std::vector<std::vector<double>>& measured);

}  // namespace fabricast::doctor
