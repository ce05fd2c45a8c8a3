// SPDX-License-Identifier: Apache-2.0
// Whether a training step, or a layer with its cache, can fit into its GPUs: asked by `check`, and by the planner
// before it forecasts one.
#pragma once

#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// Numbers of GPUs that a training workload is asked for, a row each: its sizes, else `gpus`, else all that `devices`
/// names, else all. Refused where `devices` names fewer, or what is no GPU.
Result<std::vector<int>> training_counts(const Topology& topology, const Workload& workload);

/// GPUs of the largest of these numbers.
Result<std::vector<DeviceId>> training_gpus(const Topology& topology, const Workload& workload);

/// What training_counts() refuses, and an error when the smallest number of GPUs that training workload `index` of
/// `all` is asked for cannot hold a step or a layer, or a step not beside steps earlier in the list on the same GPUs.
Diagnostics training_memory(const Topology& topology, const std::vector<Workload>& all, std::size_t index,
                            const ParameterSet& parameters);

/// How many layers of a network of which one is asked for fit with their weights and cache; empty where all do.
std::string layers_beyond_memory(const Topology& topology, const Workload& workload, const ParameterSet& parameters);

}  // namespace fabricast::models
