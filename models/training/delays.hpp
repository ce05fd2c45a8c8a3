// SPDX-License-Identifier: Apache-2.0
// What a step takes longer because its GPU is shared, in a VM, or waits for the host's cores.
//
//   added = delays(W),   W = longest chain of passes and optimiser in the step's program
//
// W holds what pipeline stages wait for each other (they all compute as much longer), not exchanges. One layer of n is
// a part of a pass: delays(n W) / n, so that time slices and remote calls of a step are spread over its layers.
#pragma once

#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/models/program.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// A pass or the optimiser: what another pace of the GPU lengthens; copies and exchanges keep their time.
bool is_work(const Node& node);

/// The longest chain of `is_work` nodes that wait for each other.
Duration longest_work(const Program& program);

/// Of a node with nothing beside it: its terms and its slowest flow, without work.
Duration time_alone(const Resources& resources, const Node& node);

/// What the VM, neighbours and busy cores add to `work` of a step on `gpu`. A profile was measured in the VM that the
/// scenario describes: passthrough takes nothing more from it.
std::vector<Term> step_delays(const PlanContext& context, DeviceId gpu, const TrainingSpec& spec, Duration work);

}  // namespace fabricast::models::training
