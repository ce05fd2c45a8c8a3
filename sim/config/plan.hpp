// SPDX-License-Identifier: Apache-2.0
// Key tables and readers of sweeps' plans and cost models.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "fabricast/sweep_plan.hpp"

namespace fabricast::config {

SchemaPtr plan_schema();
SchemaPtr cost_schema();

/// Checked documents to values; file names are resolved against `folder`. A plan's `cost:` that names a file is left to
/// the loader: `cost_file`.
SweepPlan read_plan(const Node& document, const std::string& folder, std::string& cost_file, Diagnostics& faults);
CostModel read_cost(const Node& document, Diagnostics& faults);

/// The node in YAML's flow style; reading it gives an equal node.
std::string flow_text(const Node& node);

}  // namespace fabricast::config
