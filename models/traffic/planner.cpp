// SPDX-License-Identifier: Apache-2.0
#include "traffic/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "paths/transport.hpp"

namespace fabricast::models::traffic {

namespace {

class TrafficPlanner final : public Planner {
 public:
  TrafficPlanner(const PlanContext& context, const Workload& workload, std::vector<FlowSpec> flows,
                 std::vector<Route> routes)
      : context_(context), workload_(workload), flows_(std::move(flows)), routes_(std::move(routes)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = std::string(to_string(workload_.traffic.pattern));
    plan.protocol = workload_.transport.verb;
    Node node;
    node.label = plan.algorithm;
    const bool is_ring = workload_.traffic.pattern == TrafficPattern::ring_all_reduce;
    const auto n = static_cast<std::int64_t>(flows_.size());
    if (is_ring) {
      node.repeat = 2 * (n - 1);
      node.order = RepeatOrder::neighbour;
    }
    plan.has_flow_times = !is_ring;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const auto bytes = flows_[f].bytes > 0 ? flows_[f].bytes : size.value;
      node.flows.push_back(make_flow(
          f, is_ring ? std::ceil(static_cast<double>(bytes) / static_cast<double>(n)) : static_cast<double>(bytes)));
    }
    plan.program.then(std::move(node));
    return plan;
  }

  [[nodiscard]] int num_ranks() const override { return static_cast<int>(flows_.size()); }
  [[nodiscard]] int num_hosts() const override {
    std::set<int> hosts;
    for (const auto& flow : flows_) {
      hosts.insert(context_.topology.host_of(flow.from));
      hosts.insert(context_.topology.host_of(flow.to));
    }
    return static_cast<int>(hosts.size());
  }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (std::size_t f = 0; f < flows_.size() && f < 16; ++f) names.push_back(flows_[f].name);
    if (flows_.size() > 16) names.emplace_back("...");
    return names;
  }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    return {"flows start without software cost; their data is in host memory"};
  }

 private:
  [[nodiscard]] Flow make_flow(std::size_t f, double bytes) const {
    const auto& spec = flows_[f];
    const auto& route = routes_[f];
    Flow flow;
    flow.bytes = bytes;
    CrossingCounter counter;
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
    flow.crossings = counter.take();
    flow.legs = route.legs;
    flow.name = spec.name;
    flow.priority = spec.priority;
    flow.start = spec.start;
    if (spec.start.ps > 0) flow.latency_terms.push_back({"waiting for the flow's start", spec.start, "scenario", ""});
    const auto hca = context_.topology.device(spec.from).type + ".latency";
    const auto* parameter = context_.parameters.find(hca);
    flow.latency_terms.push_back(
        {"HCA processing, both sides", route.adapter_latency, hca, parameter == nullptr ? "" : parameter->source});
    flow.latency_terms.push_back({"links and switches", route.latency, "topology", "link and forwarding latencies"});
    if (auto term = whole_packet_term(context_, route, spec.from, bytes); term.time.ps > 0)
      flow.latency_terms.push_back(std::move(term));
    flow.latency_terms.insert(flow.latency_terms.end(), route.guest_terms.begin(), route.guest_terms.end());
    flow.latency = sum(flow.latency_terms);
    return flow;
  }

  PlanContext context_;
  Workload workload_;
  std::vector<FlowSpec> flows_;
  std::vector<Route> routes_;
};

/// Host memory to HCA, the fabric, HCA to host memory.
Route route_of(const PlanContext& context, const FlowSpec& flow, std::uint64_t number) {
  Route route;
  route.kind = TransportKind::network;
  add_host_copy(context, flow.from, context.topology.local_memory(flow.from), false, route);
  add_fabric(context, flow.from, flow.to, number, route);
  add_host_copy(context, flow.to, context.topology.local_memory(flow.to), true, route);
  return route;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_traffic_planner(const PlanContext& context, const Workload& workload) {
  auto flows = make_flows(context, workload);
  if (!flows) return tl::unexpected(flows.error());
  std::vector<Route> routes;
  // The hash knows a flow's ends, and the flows between the same ends by their ports: not where it is listed.
  std::map<std::pair<DeviceId, DeviceId>, std::uint64_t> count;
  for (const auto& flow : *flows) routes.push_back(route_of(context, flow, count[{flow.from, flow.to}]++));
  return std::make_unique<TrafficPlanner>(context, workload, std::move(*flows), std::move(routes));
}

}  // namespace fabricast::models::traffic
