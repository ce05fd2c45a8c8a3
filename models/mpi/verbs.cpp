// SPDX-License-Identifier: Apache-2.0
#include "mpi/verbs.hpp"

#include <fmt/format.h>

#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

struct Fault {
  std::string what;  ///< follows the benchmark's name
  std::string help;
};

Fault fault_of_end(const PlanContext& context, const Profile& profile, const EndPoint& end) {
  const auto& topology = context.topology;
  if (end.hcas.empty())
    return {fmt::format("needs an adapter, host '{}' has none", topology.host_name(end.host)),
            "add an HCA to the host; osu_latency and osu_bw measure shared memory"};
  const auto hca = end.hcas.front();
  const auto& adapter = topology.device(hca);
  const auto access = access_of(context, hca);
  if (access == Access::tcp)
    return {fmt::format("needs RDMA, {} ({}) carries TCP only", adapter.name, adapter.type),
            "iperf3 and osu_bw measure TCP"};
  if (access == Access::libfabric)
    return {fmt::format("needs verbs, {} ({}) has libfabric only", adapter.name, adapter.type),
            "osu_latency and osu_bw measure it"};
  if (provider_of(context, hca) == "efa")
    return {
        fmt::format("needs reliable connections (RC), {} ({}) has SRD and datagrams only", adapter.name, adapter.type),
        "osu_latency and osu_bw measure it; perftest's -c SRD is not modelled"};
  const auto mode = nic_mode_of(context, hca);
  if (is_tcp_only(mode))
    return {fmt::format("needs RDMA, the VM has {} by {}", adapter.name, to_string(mode)),
            "hand the adapter over by passthrough, sr-iov or pvrdma"};
  if (!end.is_device()) return {};
  const auto direct = gpudirect_rdma(context, end.gpu, hca, profile.gpudirect_farthest);
  if (direct.is_allowed) return {};
  return {fmt::format("registers GPU memory with {}: {}", adapter.name, direct.reason),
          "write `buffers: host`; osu_latency and osu_bw copy GPU memory where adapters cannot read it"};
}

}  // namespace

Diagnostics verbs_faults(const PlanContext& context, const Workload& workload, const Profile& profile,
                         const Pair& pair) {
  if (!profile.posts_verbs) return {};
  for (const auto& end : {pair.first, pair.second}) {
    const auto fault = fault_of_end(context, profile, end);
    if (!fault.what.empty())
      return {make_error_at(workload.location, fmt::format("{} {}", to_string(workload.benchmark), fault.what),
                            fault.help)};
  }
  return {};
}

}  // namespace fabricast::models::mpi
