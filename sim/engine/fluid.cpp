// SPDX-License-Identifier: Apache-2.0
#include "engine/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/executor.hpp"
#include "engine/fluid_backend.hpp"
#include "engine/host_limits.hpp"
#include "engine/ring_rounds.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::Node;
using models::NodeKind;
using models::Program;
using models::RepeatOrder;
using models::Resources;

/// All flows one after another: no fair share of the same flows takes longer, because some resource is always full.
double serial_seconds(const Resources& resources, const Node& node) {
  double seconds = models::sum(node.fixed).seconds();
  if (node.kind == NodeKind::compute) seconds += node.work.seconds();
  for (const auto& flow : node.flows) seconds += flow.latency.seconds() + seconds_alone(resources, flow);
  return seconds;
}

/// How many times longer work takes while all streams slow it as much as they ever do.
double most_slowed(const Program& program) {
  std::map<std::pair<int, int>, double> most;  // {device, stream}
  double slowed = 1;
  for (const auto& node : program.nodes) {
    for (const auto& [device, share] : node.slows) {
      auto& known = most[{device, node.stream}];
      const double more = node.stream < 0 ? share : std::max(0.0, share - known);
      known += more;
      slowed += more;
    }
  }
  return slowed;
}

double serial_seconds(const Resources& resources, const models::OperationPlan& plan) {
  double seconds = models::sum(plan.before).seconds();
  double work = 0;
  for (const auto& node : plan.program.nodes) {
    const double once = serial_seconds(resources, node);
    (node.kind == NodeKind::compute ? work : seconds) += once * static_cast<double>(node.repeat);
  }
  return seconds + work * (work > 0 ? most_slowed(plan.program) : 1);
}

// ---- a chain alone --------------------------------------------------------------------------------------------------

/// Ends of the flows of one repeat of node `n`, since they started.
std::vector<Duration> flow_ends(const Resources& resources, const Program& program, std::size_t n) {
  const auto& node = program.nodes[n];
  if (node.flows.size() == 1) return {node.flows[0].latency + transfer_alone(resources, node.flows[0])};
  const double longest = serial_seconds(resources, node);
  if (!std::isfinite(longest)) return std::vector<Duration>(node.flows.size(), Duration{range::k_past_range});
  const std::vector<Part> parts{{&program, n, 1, {}, true}};
  FluidBackend network(resources, parts, false, longest);
  return std::move(execute(resources, parts, network)[0].nodes[0].flow_ends);
}

/// Alone, what holds a flow is known without a look at the others.
void name_bottleneck(const Resources& resources, const Node& node, NodeTiming& timing) {
  const auto f = timing.critical_flow;
  if (timing.flow_ends[f] - node.flows[f].latency > transfer_alone(resources, node.flows[f]) + k_rounding)
    timing.binding = shared_bottlenecks(resources, active_beside(node.flows, timing.flow_ends, f))[0];
}

NodeTiming time_once(const Resources& resources, const Program& program, std::size_t n) {
  const auto& node = program.nodes[n];
  NodeTiming timing;
  timing.fixed = models::sum(node.fixed);
  timing.repeat = node.repeat;
  if (node.kind == NodeKind::compute) timing.work = node.work;
  if (node.flows.empty()) return timing;
  timing.flow_ends = flow_ends(resources, program, n);
  const auto last = std::ranges::max_element(timing.flow_ends);
  timing.critical_flow = static_cast<std::size_t>(last - timing.flow_ends.begin());
  timing.latency = node.flows[timing.critical_flow].latency;
  timing.transfer = *last - timing.latency;
  name_bottleneck(resources, node, timing);
  return timing;
}

void time_ring(const Resources& resources, const Node& node, NodeTiming& timing) {
  std::vector<Duration> latencies;
  std::vector<Duration> transfers;
  for (std::size_t f = 0; f < node.flows.size(); ++f) {
    latencies.push_back(timing.fixed + node.flows[f].latency);
    transfers.push_back(timing.flow_ends[f] - node.flows[f].latency);
  }
  timing.critical_flow = static_cast<std::size_t>(std::ranges::max_element(transfers) - transfers.begin());
  name_bottleneck(resources, node, timing);
  describe_ring(node, ring_time(latencies, transfers, node.repeat), timing);
}

OperationTiming run_chain(const Resources& resources, const Program& program) {
  OperationTiming timing;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const auto& node = program.nodes[n];
    auto one = time_once(resources, program, n);
    const bool is_ring = node.order == RepeatOrder::neighbour && node.repeat > 1 && !node.flows.empty();
    if (is_ring) time_ring(resources, node, one);
    one.start = timing.total;
    timing.total += is_ring ? one.whole : one.repeat * (one.fixed + one.work + one.latency + one.transfer);
    one.end = timing.total;
    timing.nodes.push_back(std::move(one));
  }
  return timing;
}

// ---- together -------------------------------------------------------------------------------------------------------

/// Timings of a plan whose time does not fit.
OperationTiming past_range(const models::OperationPlan& plan) {
  OperationTiming timing;
  timing.total = {range::k_past_range};
  for (const auto& node : plan.program.nodes) {
    NodeTiming one;
    one.repeat = node.repeat;
    one.flow_ends.assign(node.flows.size(), Duration{range::k_past_range});
    timing.nodes.push_back(std::move(one));
  }
  return timing;
}

std::vector<OperationTiming> run_together(const Resources& resources, const std::vector<Job>& jobs, double longest,
                                          const FluidOptions& options) {
  std::vector<OperationTiming> timings;
  if (!std::isfinite(longest)) {
    for (const auto& job : jobs) timings.push_back(past_range(*job.plan));
    return timings;
  }
  Duration first = jobs[0].start;
  for (const auto& job : jobs) first = std::min(first, job.start);
  std::vector<Part> parts;
  for (const auto& job : jobs) parts.push_back(whole({job.plan, job.start - first}));
  FluidBackend network(resources, parts, options.full_expansion, longest);
  timings = execute(resources, parts, network);
  for (std::size_t j = 0; j < jobs.size(); ++j) timings[j].total += models::sum(jobs[j].plan->before);
  return timings;
}

}  // namespace

// Jobs that cannot meet run apart, so that a clock that is a double need not hold the time between them.
std::vector<OperationTiming> run(const Resources& resources, const std::vector<Job>& jobs,
                                 const FluidOptions& options) {
  if (jobs.size() == 1 && !options.full_expansion && jobs[0].plan->program.is_chain()) {
    auto timing = run_chain(resources, jobs[0].plan->program);
    timing.total += models::sum(jobs[0].plan->before);
    return {std::move(timing)};
  }
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t j) { return jobs[j].start; });
  std::vector<OperationTiming> timings(jobs.size());
  for (std::size_t next = 0; next < order.size();) {
    const double first = jobs[order[next]].start.seconds();
    double longest = 0;
    std::vector<std::size_t> members;
    while (next < order.size() && (members.empty() || jobs[order[next]].start.seconds() - first <= longest)) {
      longest = std::max(longest, jobs[order[next]].start.seconds() - first) +
                serial_seconds(resources, *jobs[order[next]].plan);
      members.push_back(order[next++]);
    }
    std::ranges::sort(members);
    std::vector<Job> together;
    for (const auto j : members) together.push_back(jobs[j]);
    auto some = run_together(resources, together, longest, options);
    for (std::size_t m = 0; m < members.size(); ++m) timings[members[m]] = std::move(some[m]);
  }
  return timings;
}

}  // namespace fabricast::engine
