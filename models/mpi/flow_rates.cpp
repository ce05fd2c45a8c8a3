// SPDX-License-Identifier: Apache-2.0
#include "mpi/flow_rates.hpp"

#include <algorithm>

namespace fabricast::models::mpi {

double capacity_of(const PlanContext& context, const Crossing& crossing) {
  return context.resources.capacity(crossing.resource) / crossing.times;
}

std::vector<Crossing> merged(std::vector<Crossing> crossings) {
  CrossingCounter counter;
  for (const auto& crossing : crossings) counter.add(crossing.resource, crossing.times);
  return counter.take();
}

double bottleneck(const PlanContext& context, const std::vector<Crossing>& crossings) {
  double rate = 1e18;
  for (const auto& crossing : merged(crossings)) rate = std::min(rate, capacity_of(context, crossing));
  return rate;
}

Term computed_term(std::string name, double seconds, std::string parameter, std::string source) {
  return {std::move(name), from_seconds(seconds), std::move(parameter), std::move(source)};
}

}  // namespace fabricast::models::mpi
