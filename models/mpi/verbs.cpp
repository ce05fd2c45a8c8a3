// SPDX-License-Identifier: Apache-2.0
#include "mpi/verbs.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

struct Fault {
  std::string what;  ///< follows the benchmark's name
  std::string help;
};

std::string without_verbs(const Device& adapter) {
  return fmt::format("needs verbs, {} ({}) has libfabric only", adapter.name, adapter.type);
}

std::string without_connections(const Device& adapter) {
  return fmt::format("needs reliable connections (RC), {} ({}) has SRD and datagrams only", adapter.name, adapter.type);
}

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
  if (access == Access::libfabric) return {without_verbs(adapter), "osu_latency and osu_bw measure it"};
  if (provider_of(context, hca) == "efa")
    return {without_connections(adapter), "osu_latency and osu_bw measure it; perftest's -c SRD is not modelled"};
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

Fault fault_of_library(const PlanContext& context, const std::string& library, DeviceId hca) {
  const auto& adapter = context.topology.device(hca);
  const auto provider = provider_of(context, hca);
  const bool is_ucx = library == "open-mpi-ucx";
  const bool is_openib = library == "open-mpi-openib";
  const std::string help = "write `mpi: open-mpi-ofi`, or leave `mpi` out";
  const bool is_mvapich = library == "mvapich2-gdr";
  // UCX has a transport of its own for Aries, MVAPICH2 takes libfabric over Slingshot-11.
  if (access_of(context, hca) == Access::libfabric && (is_openib || (provider == "cxi" ? is_ucx : is_mvapich)))
    return {without_verbs(adapter), help};
  if (provider == "efa" && (is_openib || is_mvapich)) return {without_connections(adapter), help};
  const auto& release = context.software.ucx_version;
  if (provider == "efa" && is_ucx && (release.empty() || is_older(release, 1, 18)))
    return {fmt::format("reaches {} ({}) from UCX 1.18 on, {}", adapter.name, adapter.type,
                        release.empty() ? "no release is stated" : "this is " + release),
            help + "; or state `ucx: \"1.18\"`"};
  return {};
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

Diagnostics library_faults(const PlanContext& context, const Profile& profile, const Pair& pair) {
  const auto& library = context.software.mpi;
  if (library.empty() || profile.is_tcp || profile.posts_verbs || pair.first.host == pair.second.host) return {};
  for (const auto& end : {pair.first, pair.second}) {
    if (end.hcas.empty()) continue;
    const auto fault = fault_of_library(context, library, end.hcas.front());
    if (fault.what.empty()) continue;
    const auto given = context.software.locations.find("mpi");
    return {make_error_at(given == context.software.locations.end() ? SourceLocation{} : given->second,
                          fmt::format("{} {}", library, fault.what), fault.help)};
  }
  return {};
}

}  // namespace fabricast::models::mpi
