// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds.hpp"

#include <algorithm>
#include <map>

#include "engine/stream_terms.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::OperationPlan;
using models::Resources;

/// Latency of links and switches on the way of a flow.
Duration path_latency(const Flow& flow) {
  Duration latency;
  for (const auto& term : flow.latency_terms)
    if (term.parameter == "topology") latency += term.time;
  return latency;
}

bool joins_switches(const Resources& resources, int resource) {
  const auto& topology = resources.topology();
  if (!resources.is_link(resource) || topology.link_kind(LinkId{resource}) != LinkKind::network) return false;
  const auto link = topology.link(LinkId{resource});
  return topology.kind(link.from) == DeviceKind::network_switch && topology.kind(link.to) == DeviceKind::network_switch;
}

/// Seconds below which no protocol gets a node: the slowest of all links with the payload of all flows that cross it,
/// and of all flows with the latency of their links. Only links and the rate limits of virtual functions count, no
/// fitted limits. `is_spread`: links between switches do not count, as if routes never met there.
double physical_bound(const Resources& resources, const models::Node& node, bool is_spread) {
  std::map<int, double> carried;
  double slowest = 0;
  for (const auto& flow : node.flows) {
    double own = 0;
    for (const auto& crossing : flow.crossings) {
      if (!resources.is_link(crossing.resource) &&
          resources.parameter(crossing.resource) != "virtualization.rate_limit")
        continue;
      if (is_spread && joins_switches(resources, crossing.resource)) continue;
      const double bytes = (flow.payload < 0 ? flow.bytes : flow.payload) * crossing.times;
      carried[crossing.resource] += bytes;
      own = std::max(own, bytes / resources.capacity(crossing.resource));
    }
    slowest = std::max(slowest, path_latency(flow).seconds() + own);
  }
  for (const auto& [link, bytes] : carried) slowest = std::max(slowest, bytes / resources.capacity(link));
  return slowest * static_cast<double>(node.repeat);
}

/// Of the longest way through the program.
Duration physical_bound(const Resources& resources, const OperationPlan& plan, bool is_spread) {
  std::vector<double> ends;
  double seconds = 0;
  for (const auto& node : plan.program.nodes) {
    double start = 0;
    for (const int earlier : node.after) start = std::max(start, ends[static_cast<std::size_t>(earlier)]);
    ends.push_back(start + physical_bound(resources, node, is_spread));
    seconds = std::max(seconds, ends.back());
  }
  // Whole picoseconds below: times are rounded per flow.
  return Duration{range::whole(std::min(1.0, plan.printed_share) * seconds / static_cast<double>(plan.operations) *
                               1e12 * (1 - 1e-12))};
}

}  // namespace

Duration bound_of(const Resources& resources, const OperationPlan& plan) {
  return plan.watched_stream < 0 ? physical_bound(resources, plan, false) : program_bound(resources, plan.program);
}

Duration spread_bound(const Resources& resources, const OperationPlan& plan) {
  return plan.watched_stream < 0 ? physical_bound(resources, plan, true) : Duration{};
}

}  // namespace fabricast::engine
