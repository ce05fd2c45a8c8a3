// SPDX-License-Identifier: Apache-2.0
// A step on a GPU of another host: the way between client and server, who shares it, and what a step costs.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/device_planner.hpp"
#include "system/sharing_planner.hpp"

namespace fabricast::models {

namespace {

/// Client and server of a remote GPU and the way between them.
struct RemoteEnds {
  DeviceId client_hca, server_hca, gpu;
  RemotePath path;
  int mtu = 0;
  int clients = 1;       ///< workloads that use the GPU, this one included
  double gpu_share = 1;  ///< of the GPU that this client gets
};

class RemoteGpuPlanner : public DevicePlanner {
 public:
  RemoteGpuPlanner(const PlanContext& context, const Workload& workload, const RemoteEnds& ends)
      : DevicePlanner(context, workload, {ends.client_hca, ends.gpu}), ends_(ends) {}

  [[nodiscard]] int num_hosts() const override { return 2; }

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    const auto& asked = *workload_.remote;
    const auto one = remote_gpu_step(context_.parameters,
                                     {asked.compute, asked.calls, size, asked.from_gpu, ends_.gpu_share}, ends_.path);
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = "remote";
    plan.protocol = ends_.path.is_rdma ? "rdma" : "tcp";
    plan.before = one.terms;
    plan.low = one.low;
    plan.high = one.high;
    plan.figures = {{"local_ps", static_cast<double>(one.local.ps)},
                    {"overhead_share", one.local.ps > 0 ? one.remote.seconds() / one.local.seconds() - 1 : 0}};
    return plan;
  }

  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    const auto& asked = *workload_.remote;
    return {
        {"share of the GPU", fmt::format("{:g}", asked.share), fmt::format("{:.3g}", ends_.gpu_share),
         ends_.clients > 1 ? fmt::format("{} clients of {}", ends_.clients, context_.topology.device(ends_.gpu).name)
                           : ""},
        {"transport", context_.software.transport, ends_.path.is_rdma ? "rdma" : "tcp", ""},
        {"mtu", asked.mtu ? std::to_string(*asked.mtu) : "default", std::to_string(ends_.mtu),
         fmt::format("{} of payload", to_string(ends_.path.bandwidth))}};
  }

  [[nodiscard]] std::vector<std::string> assumptions() const override {
    std::vector<std::string> out{"data and calls of a step do not overlap with its compute"};
    if (ends_.clients > 1)
      out.emplace_back("clients of one remote GPU compute and transfer all the time: each gets its part of both");
    out.push_back(assumed_line(context_.parameters, "remote_gpu.waiting_share"_key));
    out.push_back(assumed_line(context_.parameters,
                               ends_.path.is_rdma ? "remote_gpu.rdma_call_time"_key : "remote_gpu.tcp_call_time"_key));
    out.push_back(assumed_line(context_.parameters, "remote_gpu.queued_call_time"_key));
    if (!ends_.path.is_rdma) out.push_back(assumed_line(context_.parameters, "remote_gpu.tcp_packet_time"_key));
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  RemoteEnds ends_;
};

/// Payload rate and latency between client and server. Kernel time of TCP is the MPI model's.
RemotePath remote_path(const PlanContext& context, const RemoteGpuCalls& asked, RemoteEnds& ends, const Route& route) {
  double rate = 1e18;
  for (const auto& crossing : route.crossings)
    rate = std::min(rate, context.resources.capacity(crossing.resource) / crossing.times);
  rate /= ends.clients;
  RemotePath path;
  path.is_rdma = !uses_tcp(context, ends.client_hca) && !uses_tcp(context, ends.server_hca);
  path.latency = route.latency + route.adapter_latency + sum(route.guest_terms);
  const double usual =
      packet_payload(context.topology.spec().fabric, context.parameters, context.topology.device(ends.client_hca).type);
  ends.mtu = asked.mtu.value_or(static_cast<int>(usual > 0 ? usual : 4096));
  if (path.is_rdma) {
    const double header = device_value_or(context, ends.client_hca, "packet_header", 30);
    const double port = device_value_or(context, ends.client_hca, "rate", rate) / ends.clients;
    path.bandwidth = {std::min(rate, port * ends.mtu / (ends.mtu + header))};
  } else {
    path.latency += context.parameters["mpi.tcp.overhead"_key];
    const Bandwidth link{device_value_or(context, ends.client_hca, "rate", rate) / ends.clients};
    path.bandwidth = {std::min(rate, tcp_stream_rate(context.parameters, link, Bytes{ends.mtu}).bytes_per_s)};
  }
  double copy = 1e18;
  const auto to_gpu = context.topology.path_in_host(context.topology.local_memory(ends.gpu), ends.gpu);
  FABRICAST_ASSERT(to_gpu.has_value(), "no path from memory to a GPU");
  for (const auto link : to_gpu->links) copy = std::min(copy, context.topology.link_bandwidth(link).bytes_per_s);
  path.local_copy = {copy};
  return path;
}

/// Every remote_gpu workload of the scenario computes on the same GPU: shares that ask for more than all of it shrink
/// in proportion.
void share_with_others(const PlanContext& context, const Workload& workload, RemoteEnds& ends) {
  ends.gpu_share = workload.remote->share;
  if (context.workloads == nullptr) return;
  double asked = 0;
  ends.clients = 0;
  for (const auto& other : *context.workloads) {
    if (other.benchmark != Benchmark::remote_gpu || !other.remote) continue;
    asked += other.remote->share;
    ++ends.clients;
  }
  ends.clients = std::max(1, ends.clients);
  ends.gpu_share /= std::max(1.0, asked);
}

Result<RemoteEnds> remote_ends(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  int client = 0;
  for (int host = topology.num_hosts() - 1; host >= 0; --host) {
    if (topology.count(DeviceKind::gpu, host) == 0) client = host;
  }
  int server = -1;
  for (int host = topology.num_hosts() - 1; host >= 0; --host) {
    if (host != client && topology.count(DeviceKind::gpu, host) > 0) server = host;
  }
  if (server < 0)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location, "remote_gpu needs a client and another host with a GPU",
                                  "add a host with a GPU to the topology")});
  RemoteEnds ends;
  ends.gpu = topology.devices(DeviceKind::gpu, server).front();
  share_with_others(context, workload, ends);
  const auto client_hcas = topology.devices(DeviceKind::hca, client);
  const auto server_hcas = topology.hcas_by_distance(ends.gpu);
  Route route;
  if (client_hcas.empty() || server_hcas.empty() ||
      !topology.path_between_hcas(client_hcas.front(), server_hcas.front()))
    return tl::unexpected(Diagnostics{no_network_path(context, workload.location, client, server)});
  ends.client_hca = client_hcas.front();
  ends.server_hca = server_hcas.front();
  add_fabric(context, ends.client_hca, ends.server_hca, 0, route);
  ends.path = remote_path(context, *workload.remote, ends, route);
  const auto* memory = context.parameters.find(topology.device(ends.gpu).type + ".memory");
  if (workload.remote->memory && memory != nullptr &&
      static_cast<double>(workload.remote->memory->value) > memory->value)
    return tl::unexpected(Diagnostics{make_error_at(
        workload.remote->location,
        fmt::format("{} of GPU memory asked for, a {} has {}", to_string(*workload.remote->memory),
                    topology.device(ends.gpu).type, to_string(Bytes{static_cast<std::int64_t>(memory->value)})),
        "lower 'memory'")});
  if (auto fault = memory_fault(workload)) return tl::unexpected(Diagnostics{std::move(*fault)});
  return ends;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_remote_gpu_planner(const PlanContext& context, const Workload& workload) {
  const auto ends = remote_ends(context, workload);
  if (!ends) return tl::unexpected(ends.error());
  if (!workload.devices.empty())
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location, "remote_gpu takes no devices", "remove `devices`")});
  return std::make_unique<RemoteGpuPlanner>(context, workload, *ends);
}

}  // namespace fabricast::models
