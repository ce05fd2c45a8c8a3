// SPDX-License-Identifier: Apache-2.0
// The benchmark's own table of one workload, without what surrounds it.
#pragma once

#include <string>

#include "fabricast/result.hpp"

namespace fabricast::report {

std::string workload_table(const WorkloadPrediction& workload, const Workload& asked);

}  // namespace fabricast::report
