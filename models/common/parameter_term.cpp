// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/planner.hpp"

namespace fabricast::models {

Term parameter_term(const ParameterSet& parameters, std::string name, const std::string& parameter, double times) {
  const auto& p = parameters.at(parameter);
  return {std::move(name), from_seconds(p.value * times), p.name, p.source};
}

std::vector<std::string> device_names(const Topology& topology, const std::vector<DeviceId>& devices) {
  constexpr std::size_t k_most = 16;
  std::vector<std::string> names;
  for (std::size_t d = 0; d < devices.size() && d < k_most; ++d) names.push_back(topology.device(devices[d]).name);
  if (devices.size() > k_most) names.emplace_back("...");
  return names;
}

}  // namespace fabricast::models
