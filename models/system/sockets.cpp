// SPDX-License-Identifier: Apache-2.0
// iperf3: TCP streams from the first host to the second; each at most what one core carries, together what the link,
// its packet headers and the virtual ports carry. sockperf ping-pong: half a round trip of blocking UDP sockets:
//
//   time = kernel, both sides + interrupt and wake-up + adapters + links + what VMs add
#include <fmt/format.h>

#include "base/parameter_name.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/planners.hpp"

namespace fabricast::models::system {

namespace {

constexpr std::int64_t k_writes = 1000;  // of one stream: latency vanishes in the mean

class SocketPlanner : public Planner {
 public:
  SocketPlanner(const PlanContext& context, const Workload& workload, DeviceId from, DeviceId to, Route route)
      : context_(context), workload_(workload), from_(from), to_(to), route_(std::move(route)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    return workload_.benchmark == Benchmark::iperf3 ? streams(size) : ping_pong(size);
  }
  [[nodiscard]] int num_ranks() const override { return 2; }
  [[nodiscard]] int num_hosts() const override {
    return context_.topology.host_of(from_) == context_.topology.host_of(to_) ? 1 : 2;
  }
  [[nodiscard]] std::vector<std::string> devices() const override {
    return {context_.topology.device(from_).name, context_.topology.device(to_).name};
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override { return virtual_settings(context_, {}); }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    auto out = virtual_assumptions(context_, {context_.topology.host_of(from_), context_.topology.host_of(to_)});
    out.emplace_back("kernel sockets on both ends, default interrupt moderation");
    return out;
  }

 private:
  [[nodiscard]] Flow flow(double bytes) const {
    Flow flow;
    flow.bytes = bytes;
    CrossingCounter counter;
    for (const auto& crossing : route_.crossings) counter.add(crossing.resource, crossing.times);
    flow.crossings = counter.take();
    const auto& stream = context_.parameters.at("mpi.tcp.flow_bandwidth"_key);
    flow.rate_cap = stream.value;
    flow.cap_name = "one TCP stream";
    flow.cap_parameter = stream.name;
    return flow;
  }

  [[nodiscard]] OperationPlan streams(Bytes size) const {
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = fmt::format("{} streams", workload_.streams);
    plan.operations = k_writes * workload_.streams;
    Node node;
    node.label = "streams";
    for (int s = 0; s < workload_.streams; ++s)
      node.flows.push_back(flow(static_cast<double>(size.value) * static_cast<double>(k_writes)));
    plan.program.then(std::move(node));
    return plan;
  }

  [[nodiscard]] OperationPlan ping_pong(Bytes size) const {
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = "ping-pong";
    const auto term = [&](const char* name, const ParameterName<Dimension::time, std::string_view>& parameter) {
      return parameter_term(context_.parameters, name, parameter);
    };
    plan.before.push_back(term("kernel, both sides", "mpi.tcp.overhead"_key));
    plan.before.push_back(term("interrupt and wake-up of the receiver", "tcp.wakeup_time"_key));
    const auto hca = context_.topology.hcas_by_distance(from_).front();
    plan.before.push_back(
        {"adapters, both sides", route_.adapter_latency, context_.topology.device(hca).type + ".latency", ""});
    plan.before.push_back({"links and switches", route_.latency, "topology", "link and forwarding latencies"});
    if (auto whole = whole_packet_term(context_, route_, hca, static_cast<double>(size.value)); whole.time.ps > 0)
      plan.before.push_back(std::move(whole));
    plan.before.insert(plan.before.end(), route_.guest_terms.begin(), route_.guest_terms.end());
    Node node;
    node.label = "message";
    node.flows.push_back(flow(static_cast<double>(size.value)));
    plan.program.then(std::move(node));
    return plan;
  }

  PlanContext context_;
  Workload workload_;
  DeviceId from_, to_;
  Route route_;
};

}  // namespace

Result<std::unique_ptr<Planner>> make_socket_planner(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  if (topology.num_hosts() < 2)
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location,
        fmt::format("{} runs between two hosts, topology '{}' has one", to_string(workload.benchmark), topology.name()),
        topology.virtualization(0).vms_per_host > 1 ? "write its VMs one by one (`vms:`), each is a host of its own"
                                                    : "raise the host count of the topology")});
  const int client = topology.first_host_with(DeviceKind::hca);
  const int server = topology.next_host_with(DeviceKind::hca, client);
  const auto from = topology.device_in_host(client, DeviceKind::memory, 0);
  const auto to = topology.device_in_host(server, DeviceKind::memory, 0);
  const auto out = topology.hcas_by_distance(from);
  const auto in = topology.hcas_by_distance(to);
  Route route;
  route.kind = TransportKind::socket;
  if (!out.empty() && !in.empty()) add_host_copy(context, out.front(), from, false, route);
  if (out.empty() || in.empty() ||
      (!topology.path_between_hcas(out.front(), in.front()) && !can_stay_inside_host(context, out.front(), in.front())))
    return tl::unexpected(Diagnostics{no_network_path(context, workload.location, client, server)});
  add_fabric(context, out.front(), in.front(), 0, route, from, to);
  add_host_copy(context, in.front(), to, true, route);
  return std::make_unique<SocketPlanner>(context, workload, from, to, std::move(route));
}

}  // namespace fabricast::models::system
