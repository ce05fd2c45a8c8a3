// SPDX-License-Identifier: Apache-2.0
// What must hold before a fit: a measured point to fit to, and a parameter that moves a forecast of one of them.
#pragma once

#include "fabricast/diagnostic.hpp"
#include "fit/dataset.hpp"

namespace fabricast::fit {

/// Faults of a calibration that leaves the fit nothing to do; empty when it can be fitted.
Diagnostics faults_of_fit(const Dataset& data, const Calibration& calibration);

}  // namespace fabricast::fit
