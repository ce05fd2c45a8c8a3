// SPDX-License-Identifier: Apache-2.0
// Faults of a calibration file, at the entry that they are about.
#pragma once

#include <string>

#include "fabricast/diagnostic.hpp"

namespace fabricast::fit {

inline Diagnostic fault_at(const SourceLocation& location, std::string message, std::string hint = {}) {
  return make_error_at(location, std::move(message), std::move(hint));
}

inline Diagnostic warning_at(const SourceLocation& location, std::string message) {
  auto warning = fault_at(location, std::move(message));
  warning.severity = Severity::warning;
  return warning;
}

}  // namespace fabricast::fit
