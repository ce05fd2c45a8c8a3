// SPDX-License-Identifier: Apache-2.0
// GPUs that compute at different paces: a synchronous step waits for the slowest of those that exchange.
//
//   time of n GPUs = W x E[max over i of (1 + s Z_i) / r_i],   Z_i independent, standard normal
//
// W: compute of a GPU at full rate; r_i: what GPU i computes of it in the same time (`workload.slow`); s: standard
// deviation of a GPU's compute from step to step, as a share (`workload.jitter`), drawn once per GPU and step. Without
// jitter the factor is 1 / min r_i. The expectation is integrated: E[max] = b - integral over (a, b) of the product of
// the normal distribution functions.
//
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
  double factor = 1;  ///< >= 1
  std::string parameter;
};

/// The paces of the GPUs behind one compute stream.
Straggling straggling_of(const TrainingSpec& spec, const std::vector<std::string>& gpus);

/// The same program with the compute of stream i taking `streams[i].factor` times as long: passes and optimiser; copies
/// and exchanges keep their time. What is added is work of its own, called k_straggler.
Program with_stragglers(const Program& program, const std::vector<Straggling>& streams);

/// Entries of `workload.slow` that name no GPU of the topology.
Diagnostics slow_faults(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::training
