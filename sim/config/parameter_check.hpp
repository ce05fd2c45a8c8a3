// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast::config {

/// Faults of parameters that a user gives: an error for a value of another dimension than its key declares, a warning
/// for a name that no key and no field of a device declares. `types`: the devices of the cluster beside the
/// catalogue's; null where no cluster is known, whose own devices may have any name.
Diagnostics check_declared(const ParameterSet& given, const std::vector<DeviceType>* types);

}  // namespace fabricast::config
