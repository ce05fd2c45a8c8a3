// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// Every table of the logs that the cluster (a topology, or a scenario) can be forecast for.
Result<std::vector<Patient>> patients_of(const std::string& cluster, const std::vector<std::string>& logs,
                                         const DoctorOptions& options, Diagnostics& warnings,
                                         std::vector<InputFile>& inputs);

}  // namespace fabricast::doctor
