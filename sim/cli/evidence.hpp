// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "fabricast/load.hpp"

namespace fabricast::cli {

/// What the forecasts of a scenario rest on, for `fabricast check`: per source the share of the time of the smallest
/// and the largest size, and what is not known of the cluster. Nothing for other work than NCCL's and MPI's, and where
/// the scenario cannot be run.
std::optional<std::string> describe_evidence(const LoadedScenario& loaded);

}  // namespace fabricast::cli
