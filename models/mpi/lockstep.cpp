// SPDX-License-Identifier: Apache-2.0
#include "mpi/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "fabricast/models/plan.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

namespace {

/// What most of a flow's latency comes from.
std::string parameter_of_longest(const Flow& flow) {
  const auto longest = std::ranges::max_element(flow.latency_terms, {}, &Term::time);
  return longest == flow.latency_terms.end() ? std::string() : longest->parameter;
}

/// Flows of as many bytes.
Flow as_one(const std::vector<Flow>& flows) {
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
    out.cap_parameter = parameter_of_longest(*last);
  }
  return out;
}

}  // namespace

std::vector<Flow> in_lockstep(std::vector<Flow> flows) {
  FABRICAST_ASSERT(!flows.empty(), "no flows");
  std::vector<std::vector<Flow>> kinds;
  for (auto& flow : flows) {
    const auto kind = std::ranges::find(kinds, flow.bytes, [](const auto& one) { return one.front().bytes; });
    if (kind == kinds.end())
      kinds.push_back({std::move(flow)});
    else
      kind->push_back(std::move(flow));
  }
  std::vector<Flow> out;
  for (const auto& kind : kinds) out.push_back(as_one(kind));
  return out;
}

void share_latencies(Node& node) {
  std::vector<Term> mean;
  for (const auto& flow : node.flows) {
    for (const auto& term : flow.latency_terms) {
      const auto known = std::find_if(mean.begin(), mean.end(), [&](const Term& t) { return t.name == term.name; });
      if (known == mean.end()) {
        mean.push_back(term);
      } else {
        known->time += term.time;
      }
    }
  }
  for (auto& term : mean) term.time = term.time / static_cast<std::int64_t>(node.flows.size());
  for (auto& flow : node.flows) {
    flow.latency = sum(mean);
    flow.latency_terms = mean;
  }
}

}  // namespace fabricast::models::mpi
