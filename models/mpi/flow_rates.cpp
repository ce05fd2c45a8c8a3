// SPDX-License-Identifier: Apache-2.0
#include "mpi/flow_rates.hpp"

#include <algorithm>

namespace fabricast::models::mpi {

double capacity_of(const PlanContext& context, const Crossing& crossing) {
  return context.resources.capacity(crossing.resource) / crossing.times;
}

std::optional<Crossing> narrowest(const PlanContext& context, const std::vector<Crossing>& crossings) {
  const auto all = merged(crossings);
  const auto found =
      std::ranges::min_element(all, {}, [&](const Crossing& crossing) { return capacity_of(context, crossing); });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

double bottleneck(const PlanContext& context, const std::vector<Crossing>& crossings) {
  const auto found = narrowest(context, crossings);
  return found ? capacity_of(context, *found) : 1e18;
}

void add_gap(const PlanContext& context, Flow& flow, Duration gap, int connections, const std::string& parameter) {
  const auto narrow = narrowest(context, flow.crossings);
  const double limit = narrow ? capacity_of(context, *narrow) : 1e18;
  const double seconds = gap.seconds() + flow.bytes / std::min(flow.rate_cap, limit);
  if (narrow && limit < flow.rate_cap) {
    flow.cap_name = context.resources.name(narrow->resource);
    flow.cap_parameter = context.resources.parameter(narrow->resource);
  }
  flow.gap_share = gap.seconds() / seconds;
  flow.gap_parameter = parameter;
  flow.rate_cap = std::min(flow.rate_cap, connections * flow.bytes / seconds);
}

Term computed_term(std::string name, double seconds, std::string parameter, std::string source) {
  return {std::move(name), from_seconds(seconds), std::move(parameter), std::move(source)};
}

}  // namespace fabricast::models::mpi
