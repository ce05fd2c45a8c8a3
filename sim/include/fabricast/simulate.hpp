// SPDX-License-Identifier: Apache-2.0
// The one call behind `fabricast run`: topology + scenario + parameters -> predicted tables.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

/// `automatic` runs fluid and adds to the assumptions where packet detail would change the answer.
enum class Fidelity { fluid, packet, automatic };

struct SimulateOptions {
  Fidelity fidelity = Fidelity::fluid;
  std::uint64_t seed = 1;  ///< picks equal-cost routes; same seed, same bytes
  bool full_expansion =
      false;               ///< simulate every round, channel and chunk instead of the exact shortcuts; slow, for tests
  bool with_terms = true;  ///< fill Row::terms
  std::function<void(double share_done)> progress;  ///< called now and then with 0..1; may be empty
  Duration sample_interval;                         ///< packet engine: queues and rates this often; 0 = not at all
  bool record_pauses = false;                       ///< packet engine: begin and end of every pause
  bool packet_shortcuts = true;                     ///< packet engine: fewer events with the same results
  const std::atomic<bool>* stop = nullptr;          ///< raise it to end early with the rows and flows done so far
};

/// Predicts every workload of `scenario` for each of its sizes. Faults of the combination (more GPUs asked than exist,
/// no path between two ranks) come back as diagnostics.
Result<Prediction> simulate(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                            const SimulateOptions& options = {});

/// Why simulate() would refuse: plans the first and the last row of every workload and runs nothing. Empty: it runs.
Diagnostics planning_faults(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters);

}  // namespace fabricast
