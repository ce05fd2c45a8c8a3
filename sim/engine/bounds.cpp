// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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

/// Links and the rate limits of virtual functions; no fitted limits.
bool is_physical(const Resources& resources, int resource) {
  return resources.is_link(resource) || resources.parameter(resource) == "virtualization.rate_limit";
}

/// What each resource carries of a node, and what it may at most.
class Carried {
 public:
  /// `is_spread`: links between switches do not count, as if routes never met there.
  Carried(const Resources& resources, bool is_spread) : resources_(resources), is_spread_(is_spread) {}

  /// Seconds below which no protocol gets `node`: the slowest of all links with the payload of all flows that cross it,
  /// and of all flows with the latency of their links.
  double seconds(const models::Node& node) {
    double slowest = 0;
    std::vector<int> used;
    for (const auto& flow : node.flows) {
      double own = 0;
      for (const auto& crossing : flow.crossings) {
        auto& one = of(crossing.resource);
        if (!one.counts) continue;
        const double bytes = (flow.payload < 0 ? flow.bytes : flow.payload) * crossing.times;
        if (!std::exchange(one.is_used, true)) used.push_back(crossing.resource);
        one.bytes += bytes;
        own = std::max(own, bytes / one.capacity);
      }
      slowest = std::max(slowest, path_latency(flow).seconds() + own);
    }
    for (const int resource : used) {
      auto& one = of(resource);
      slowest = std::max(slowest, std::exchange(one.bytes, 0) / one.capacity);
      one.is_used = false;
    }
    return slowest * static_cast<double>(node.repeat);
  }

 private:
  struct One {
    bool is_known = false, counts = false, is_used = false;
    double capacity = 0, bytes = 0;
  };

  One& of(int resource) {
    const auto place = static_cast<std::size_t>(resource);
    if (place >= all_.size()) all_.resize(place + 1);
    auto& one = all_[place];
    if (one.is_known) return one;
    one.is_known = true;
    one.counts = is_physical(resources_, resource) && !(is_spread_ && joins_switches(resources_, resource));
    one.capacity = one.counts ? resources_.capacity(resource) : 0;
    return one;
  }

  const Resources& resources_;
  bool is_spread_;
  std::vector<One> all_;  ///< [resource]
};

/// Of the longest way through the program.
Duration physical_bound(const Resources& resources, const OperationPlan& plan, bool is_spread) {
  Carried carried(resources, is_spread);
  std::vector<double> ends;
  double seconds = 0;
  for (const auto& node : plan.program.nodes) {
    double start = 0;
    for (const int earlier : node.after) start = std::max(start, ends[static_cast<std::size_t>(earlier)]);
    ends.push_back(start + carried.seconds(node));
    seconds = std::max(seconds, ends.back());
  }
  // Whole picoseconds below: times are rounded per flow.
  return Duration{range::whole(std::min(1.0, plan.printed_share) * seconds / static_cast<double>(plan.operations) *
                               1e12 * (1 - 1e-12))};
}

/// No program is faster than the bytes of a link or a virtual function over its rate. What it computes rests on fitted
/// efficiencies: no bound.
Duration program_bound(const Resources& resources, const models::Program& program) {
  std::map<int, double> carried;
  for (const auto& node : program.nodes) {
    const auto repeat = static_cast<double>(node.repeat);
    for (const auto& flow : node.flows) {
      for (const auto& crossing : flow.crossings)
        carried[crossing.resource] += repeat * crossing.times * (flow.payload < 0 ? flow.bytes : flow.payload);
    }
  }
  Duration bound;
  for (const auto& [resource, bytes] : carried) {
    if (is_physical(resources, resource))
      bound = std::max(bound, Duration{range::whole(bytes / resources.capacity(resource) * 1e12 * (1 - 1e-12))});
  }
  return bound;
}

}  // namespace

Duration bound_of(const Resources& resources, const OperationPlan& plan) {
  return plan.watched_stream < 0 ? physical_bound(resources, plan, false) : program_bound(resources, plan.program);
}

Duration spread_bound(const Resources& resources, const OperationPlan& plan) {
  return plan.watched_stream < 0 ? physical_bound(resources, plan, true) : Duration{};
}

}  // namespace fabricast::engine
