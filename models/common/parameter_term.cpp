// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/planner.hpp"

namespace fabricast::models {

Term parameter_term(const ParameterSet& parameters, std::string name, const std::string& parameter, double times) {
  const auto& p = parameters.at(parameter);
  return {std::move(name), from_seconds(p.value * times), p.name, p.source};
}

}  // namespace fabricast::models
