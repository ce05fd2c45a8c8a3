// SPDX-License-Identifier: Apache-2.0
// The one call behind `fabricast run`: topology + scenario + parameters -> predicted tables.
#pragma once

#include <cstdint>
#include <functional>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

enum class Fidelity { fluid, packet };

struct SimulateOptions {
  Fidelity fidelity = Fidelity::fluid;
  std::uint64_t seed = 1;  ///< picks equal-cost routes; same seed, same bytes
  bool full_expansion =
      false;               ///< simulate every round, channel and chunk instead of the exact shortcuts; slow, for tests
  bool with_terms = true;  ///< fill Row::terms
  std::function<void(double share_done)> progress;  ///< called now and then with 0..1; may be empty
};

/// Predicts every workload of `scenario` for each of its sizes. Faults of the combination (more GPUs asked than exist,
/// no path between two ranks) come back as diagnostics.
Result<Prediction> simulate(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                            const SimulateOptions& options = {});

}  // namespace fabricast
