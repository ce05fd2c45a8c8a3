// SPDX-License-Identifier: Apache-2.0
// How far a row may be off because systems differ.
#pragma once

#include "engine/interval.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

/// Scatter between systems, relative to the row's time. Of a training step what is exposed of its exchange has NCCL's,
/// the rest that of networks' compute, unless it was measured (a profile).
SystemScatter scatter(const models::Planner& planner, const models::OperationPlan& plan, const Row& row,
                      Duration waited, const Workload& workload, int hosts, const ParameterSet& parameters);

}  // namespace fabricast::engine
