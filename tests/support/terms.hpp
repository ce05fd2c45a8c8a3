// SPDX-License-Identifier: Apache-2.0
// One row of a validation scenario, term by term, with the parameters it was made with.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/clusters.hpp"

namespace fabricast::test {

struct Forecast {
  LoadedScenario scenario;
  Row row;

  /// A parameter of the GPU architecture, else of all; a name without its protocol where all share a value.
  [[nodiscard]] double value(const std::string& name) const {
    const auto shorter = name.substr(0, name.rfind('.'));
    return scenario.parameters.first_of({name + ".hopper", name, shorter + ".hopper", shorter}).value;
  }
  /// Sum of the terms whose name contains `words`; -1 when there is none.
  [[nodiscard]] double us(const std::string& words) const {
    double sum = -1;
    for (const auto& term : row.terms) {
      if (term.name.find(words) != std::string::npos) sum = std::max(sum, 0.0) + term.time.us();
    }
    return sum;
  }
};

inline Forecast forecast(const std::string& name, std::vector<Setting> settings) {
  auto scenario = shipped("validation/" + name + ".yaml", settings);
  const auto prediction = run(scenario);
  return {std::move(scenario), prediction.workloads[0].rows.at(0)};
}

inline Forecast forecast_with(const std::string& name, std::vector<Setting> settings, const std::string& parameter,
                              double value) {
  auto scenario = shipped("validation/" + name + ".yaml", settings);
  auto other = scenario.parameters.at(parameter);
  other.value = value;
  scenario.parameters.set(other);
  const auto prediction = run(scenario);
  return {std::move(scenario), prediction.workloads[0].rows.at(0)};
}

}  // namespace fabricast::test
