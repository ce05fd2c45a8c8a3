// SPDX-License-Identifier: Apache-2.0
#include "mpi/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "fabricast/models/plan.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

bool are_alike(const std::vector<Flow>& flows) {
  return std::ranges::all_of(flows, [&](const Flow& flow) { return flow.bytes == flows.front().bytes; });
}

Flow in_lockstep(std::vector<Flow> flows, const std::string& posting) {
  FABRICAST_ASSERT(!flows.empty() && are_alike(flows), "{} flows", flows.size());
  const auto by_latency = [](const Flow& a, const Flow& b) { return a.latency < b.latency; };
  const auto [first, last] = std::minmax_element(flows.begin(), flows.end(), by_latency);
  const double span = (last->latency - first->latency).seconds();
  Flow out = *first;
  CrossingCounter crossings;
  out.legs.clear();
  for (const auto& flow : flows) {
    for (const auto& crossing : flow.crossings) crossings.add(crossing.resource, crossing.times);
    out.legs.insert(out.legs.end(), flow.legs.begin(), flow.legs.end());
    if (flow.rate_cap < out.rate_cap) {
      out.rate_cap = flow.rate_cap;
      out.cap_name = flow.cap_name;
      out.cap_parameter = flow.cap_parameter;
    }
  }
  out.crossings = crossings.take();
  out.legs = merged_legs(std::move(out.legs));
  if (const double posted = span > 0 ? out.bytes / span : std::numeric_limits<double>::infinity();
      posted < out.rate_cap) {
    out.rate_cap = posted;
    out.cap_name = "messages of a round, posted one after the other";
    out.cap_parameter = posting;
  }
  return out;
}

}  // namespace fabricast::models::mpi
