// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// Every table of the logs that the cluster (a topology, or a scenario) can be forecast for.
struct Patients {
  std::vector<Patient> sick;     ///< of `logs`
  std::vector<Patient> healthy;  ///< of the options' baselines
};
Result<Patients> patients_of(const std::string& cluster, const std::vector<std::string>& logs,
                             const DoctorOptions& options, Diagnostics& warnings, std::vector<InputFile>& inputs);

}  // namespace fabricast::doctor
