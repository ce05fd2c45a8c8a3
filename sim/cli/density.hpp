// SPDX-License-Identifier: Apache-2.0
// Density planning: numbers of one VM on its host, until they no longer fit.
#pragma once

#include "cli/command.hpp"

namespace fabricast::cli {

/// Table of numbers of VM `vm` of the scenario, or nothing after faults were printed.
std::optional<std::string> density_table(const std::string& path, const std::string& vm, const CommonOptions& options,
                                         int& exit_code);

}  // namespace fabricast::cli
