// SPDX-License-Identifier: Apache-2.0
// How far a row may be off because systems differ.
#pragma once

#include "fabricast/models/planner.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

/// Scatter between systems, relative to the row's time. Of a training step only what is exposed of its exchange has
/// NCCL's; compute has the interval of its own parameters.
double scatter(const models::Planner& planner, const models::OperationPlan& plan, const Row& row, Duration waited,
               Benchmark benchmark, int hosts, const ParameterSet& parameters);

}  // namespace fabricast::engine
