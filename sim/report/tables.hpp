// SPDX-License-Identifier: Apache-2.0
// The benchmark's own table of one workload, without what surrounds it.
#pragma once

#include <string>

#include "fabricast/result.hpp"

namespace fabricast::report {

std::string workload_table(const WorkloadPrediction& workload, const Workload& asked);

/// A line that names the sizes outside the range of a fit; empty when there are none.
std::string extrapolation_note(const WorkloadPrediction& workload);
std::string sharing_table(const WorkloadPrediction& workload);
/// The row's label, or its size when it has none.
std::string row_name(const Row& row);

}  // namespace fabricast::report
