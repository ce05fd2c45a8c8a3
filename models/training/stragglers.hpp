// SPDX-License-Identifier: Apache-2.0
// GPUs that compute at different paces: a synchronous step waits for the slowest of those that exchange.
//
//   time of n GPUs = W x E[max over i of (1 + s Z_i) / r_i],   Z_i independent, standard normal
//
// W: compute of a GPU at full rate; r_i: what GPU i computes of it in the same time (`workload.slow`); s: standard
// deviation of its time, as a share: how far GPUs of one type lie apart (`gpu.compute_spread`: each holds the clock
// that its own silicon and cooling allow within the power limit) and how far a GPU's own steps do (`workload.jitter`),
// which are independent. Without both the factor is 1 / min r_i. The expectation is integrated: E[max] = b - integral
// over (a, b) of the product of the normal distribution functions.
//
// Clocks of memory do not fall at the power limit: the optimiser and a layer that reads its cache have no spread.
// Of a pipeline each stage computes as its slowest GPU does: exact for one slow GPU; of several in different replicas,
// and of jitter, an upper bound, because the slow ones of different stages need not feed each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/models/program.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// How many times as long the slowest of some GPUs takes. `counts`: rate -> GPUs of that rate, none of them 0;
/// `jitter` in [0, 0.5].
double slowest_factor(const std::map<double, int>& counts, double jitter);

/// What all wait for, on one compute stream.
struct Straggling {
  double passes = 1;     ///< >= 1: how many times as long forward and backward passes take
  double optimizer = 1;  ///< >= 1
  std::string parameter;
  std::string source;
};

/// How far GPUs of one type lie apart in what a workload computes: standard deviation, as a share.
const Parameter& compute_spread(const ParameterSet& parameters);
bool has_spread(const TrainingSpec& spec);

/// The paces of the GPUs behind one compute stream.
Straggling straggling_of(const TrainingSpec& spec, const std::vector<std::string>& gpus, const Parameter& spread);

/// Each piece of compute of stream i waits until the slowest GPU has done it: a fixed term of its own, called
/// k_straggler. Copies and exchanges keep their time.
void add_stragglers(Program& program, const std::vector<Straggling>& streams);

/// Entries of `workload.slow` that name no GPU of the topology.
Diagnostics slow_faults(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::training
