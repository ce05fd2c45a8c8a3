// SPDX-License-Identifier: Apache-2.0
// Faults and sensitivity as text, JSON and pages.
#pragma once

#include <string>

#include "fabricast/fault_sweep.hpp"
#include "fabricast/sensitivity.hpp"

namespace fabricast::report {

std::string faults_text(const FaultReport& report);
std::string faults_json(const FaultReport& report);
std::string faults_csv(const FaultReport& report);
std::string faults_html(const FaultReport& report);

std::string sensitivity_text(const SensitivityReport& report);
std::string sensitivity_json(const SensitivityReport& report);
std::string sensitivity_csv(const SensitivityReport& report);
std::string sensitivity_html(const SensitivityReport& report);

}  // namespace fabricast::report
