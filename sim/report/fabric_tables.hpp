// SPDX-License-Identifier: Apache-2.0
// Flows and fabric counters of rows, in the forms of text, JSON and traces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fabricast/result.hpp"

namespace fabricast::report {

/// Jain's index of the flows' goodputs, 1 = all equal; 1 without flows.
double jain_index(const std::vector<FlowTime>& flows);

/// Completion times of every row of the traffic benchmark.
std::string traffic_table(const WorkloadPrediction& workload);

/// What the packet engine counted: a line per row where something happened, then the row with most pauses in detail.
/// Empty without the packet engine.
std::string fabric_table(const WorkloadPrediction& workload);

/// The row where most happened: not finished, drops, pauses, marks; none without the packet engine. The last one when
/// nothing happened anywhere.
const Row* eventful_row(const WorkloadPrediction& workload);

/// HTML pictures of that row: flows, pauses, queues and rates over time.
std::string fabric_pictures(const WorkloadPrediction& workload);

/// `flows` and `fabric` of a row; absent when it has none.
void add_fabric_json(const Row& row, nlohmann::ordered_json& out);

/// Flows as slices, queues and rates as counters, below process number `process`.
void add_fabric_trace(const Row& row, int process, nlohmann::ordered_json& events);

}  // namespace fabricast::report
