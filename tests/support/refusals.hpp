// SPDX-License-Identifier: Apache-2.0
// What a scenario is refused with, by its reader or its planner.
#pragma once

#include <string>

#include "tests/support/clusters.hpp"

namespace fabricast::test {

/// By the planner; empty when it is forecast.
inline std::string refusal_of(const LoadedScenario& loaded) {
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  return prediction ? "" : shown(prediction.error());
}

/// By the reader or the planner; empty when it is forecast.
inline std::string refusal_of(const std::string& text) {
  const auto loaded = load_scenario(write_file("s.yaml", text));
  return loaded ? refusal_of(*loaded) : shown(loaded.error());
}

}  // namespace fabricast::test
