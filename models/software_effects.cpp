// SPDX-License-Identifier: Apache-2.0
// Which keys of `software` a workload does not read: a result says so instead of leaving them out in silence.
// tests/unit/simulate/setting_effects_test.cpp walks every key of the schema over every planner.
#include "software_effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fabricast/training.hpp"
#include "mpi/profile.hpp"
#include "mpi/schedule.hpp"
#include "nccl/channels.hpp"
#include "nccl/network_plugin.hpp"
#include "nccl/nics.hpp"
#include "nccl/patterns.hpp"
#include "nccl/search.hpp"
#include "nccl/symmetric.hpp"
#include "nccl/tuning.hpp"
#include "nccl/workload_rules.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"

namespace fabricast::models {
namespace {

/// What of a workload decides which software it runs.
struct Use {
  const PlanContext& context;
  const Workload& workload;
  bool is_nccl = false;
  bool is_mpi = false;
  bool is_mpi_on_host = false;  ///< MPI beside NCCL, of host memory: Horovod's hierarchical all-reduce
  bool is_verbs = false;
  bool has_device = false;  ///< GPU memory is sent
  bool crosses_hosts = false;
  bool shares_hosts = false;  ///< some host has two ranks
  bool is_tcp = false;
  bool has_exchange = false;  ///< several GPUs
  int host = 0;               ///< the first that takes part
};

Use use_of(const PlanContext& context, const Workload& workload, const Planner& planner) {
  const auto family = family_of(workload.benchmark);
  Use use{context, workload};
  use.is_nccl = runs_nccl(workload.benchmark);
  use.is_mpi = family == BenchmarkFamily::osu;
  use.is_mpi_on_host =
      workload.training != nullptr && workload.training->parallel.hierarchical && planner.num_hosts() > 1;
  use.is_verbs = family == BenchmarkFamily::perftest;
  use.has_device =
      use.is_nccl || workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
  use.crosses_hosts = planner.num_hosts() > 1;
  use.shares_hosts = planner.num_ranks() > planner.num_hosts();
  use.has_exchange = planner.num_ranks() > 1;
  use.host = use.has_device ? context.topology.first_host_with(DeviceKind::gpu) : 0;
  const auto adapters = context.topology.devices(DeviceKind::hca, use.host);
  use.is_tcp =
      context.software.transport == "tcp" ||
      (!adapters.empty() && std::ranges::all_of(adapters, [&](DeviceId hca) { return uses_tcp(context, hca); }));
  return use;
}

/// True when no two GPUs of a host would exchange otherwise with the switches of `other`.
bool same_routes_in_host(const PlanContext& context, const Software& other) {
  const PlanContext changed{context.topology, other, context.parameters, context.resources};
  for (const auto& host : nccl::kinds_of_hosts(context.topology)) {
    const int count = static_cast<int>(host.gpus.size());
    for (const auto from : host.gpus)
      for (const auto to : host.gpus)
        if (from != to && nccl::kind_in_host(context, from, to, count) != nccl::kind_in_host(changed, from, to, count))
          return false;
  }
  return true;
}

/// True when MPI would copy between some two GPUs of a host by peer access where it is on (mpi/inside_host).
bool has_peers_for_mpi(const PlanContext& context) {
  for (const auto& host : nccl::kinds_of_hosts(context.topology)) {
    for (const auto from : host.gpus) {
      for (const auto to : host.gpus) {
        const auto path = from != to ? context.topology.path_in_host(from, to) : std::nullopt;
        if (!path || !is_peer_path(context, from, to, *path)) continue;
        if (peer_gate_of(context, from, path->uses_nvlink).is_open) return true;
      }
    }
  }
  return false;
}

/// True when GPUDirect RDMA is used between the same GPUs and HCAs of a host at every level.
bool same_at_every_level(const PlanContext& context) {
  for (const auto& host : nccl::kinds_of_hosts(context.topology))
    for (const auto gpu : host.gpus)
      for (const auto hca : context.topology.devices(DeviceKind::hca, host.host))
        if (gpudirect_rdma(context, gpu, hca, Distance::pix).is_allowed !=
            gpudirect_rdma(context, gpu, hca, Distance::sys).is_allowed)
          return false;
  return true;
}

std::string of_benchmark(const Use& use) { return fmt::format(" of {}", to_string(use.workload.benchmark)); }

/// GPUs of a host exchange over its loopback interface.
bool uses_loopback(const Use& use) {
  if (!use.shares_hosts) return false;
  auto other = use.context.software;
  other.nccl_shm = true;
  other.transport = "auto";
  return !same_routes_in_host(use.context, other);
}

/// The same of the keys of NCCL's sockets.
std::string why_sockets_unread(const Use& use, std::string_view key) {
  if (!use.crosses_hosts) {
    if (!uses_loopback(use)) return ": nothing crosses hosts";
    return key == "socket_nthreads" ? "" : ": inside a host the helper threads count, not their sockets";
  }
  if (!use.is_tcp) return ": NCCL does not send over TCP";
  const auto& software = use.context.software;
  if (key == "nsocks_perthread" && software.nccl_socket_nthreads.value_or(0) == 0) {
    const auto adapters = use.context.topology.devices(DeviceKind::hca, use.host);
    const bool has_helpers = !software.nccl_socket_nthreads && std::ranges::any_of(adapters, [&](DeviceId hca) {
      return device_value_or(use.context, hca, "socket_threads", 0) > 0;
    });
    if (!has_helpers) return ": no helper thread uses them, see `socket_nthreads`";
  }
  return {};
}

/// NCCL sends and receives instead of going round its channels.
bool is_pairs(const Use& use) { return nccl::is_peer_to_peer(nccl::collective_of(use.workload.benchmark)); }

/// The same of `cross_nic`: what rings of a host's GPUs would do.
std::string why_crossing_unread(const Use& use) {
  if (is_pairs(use)) return of_benchmark(use);
  auto free = use.context.software;
  free.nccl_cross_nic = std::nullopt;
  const PlanContext by_default{use.context.topology, free, use.context.parameters, use.context.resources};
  for (const auto& host : nccl::kinds_of_hosts(use.context.topology))
    for (const auto* context : {&by_default, &use.context})
      if (nccl::search_with_network(*context, host.gpus).do_cross) return {};
  return ": no channel would leave by another HCA";
}

/// What follows "changes no time" where NCCL does not read one of its keys; empty where it does.
std::string why_nccl_unread(const Use& use, std::string_view key) {
  const auto of = of_benchmark(use);
  const auto& software = use.context.software;
  const bool copies_to_peer =
      use.workload.benchmark == Benchmark::host_copies && use.workload.direction == CopyDirection::to_peer;
  if (key == "p2p") {
    if (copies_to_peer) return {};
    if (!use.is_nccl && !(use.is_mpi && use.has_device)) return of;
    if (!use.shares_hosts) return ": no two GPUs of the workload share a host";
    auto other = software;
    other.nccl_p2p = !other.nccl_p2p;
    const bool is_read = use.is_nccl ? !same_routes_in_host(use.context, other) : has_peers_for_mpi(use.context);
    return is_read ? "" : ": the GPUs of a host have no peer access";
  }
  if (!use.is_nccl || !use.has_exchange) return of;
  if (key == "version") return {};
  const bool reduces =
      use.workload.benchmark == Benchmark::all_reduce_perf || use.workload.benchmark == Benchmark::training;
  if (key == "plugin" || key == "plugin_version")
    return nccl::why_plugin_unread(use.context, key, use.crosses_hosts, reduces && software.nccl_collnet);
  if (key == "shm") {
    if (!use.shares_hosts) return ": no two GPUs of the workload share a host";
    auto other = software;
    other.nccl_shm = !other.nccl_shm;
    return same_routes_in_host(use.context, other) ? ": no two GPUs of a host exchange through its memory" : "";
  }
  if (key == "nvls") return reduces ? "" : of;
  if (key == "symmetric_memory" && use.workload.training != nullptr)
    return nccl::why_no_windows(use.context, *use.workload.training, use.crosses_hosts);
  if (key == "symmetric_memory") {
    const bool is_gathered = use.workload.benchmark == Benchmark::all_gather_perf ||
                             use.workload.benchmark == Benchmark::reduce_scatter_perf;
    return reduces || is_gathered ? "" : of;
  }
  if (key == "socket_nthreads" || key == "nsocks_perthread") return why_sockets_unread(use, key);
  if (!use.crosses_hosts) return ": nothing crosses hosts";
  if (key == "collnet") return reduces ? "" : of;
  if (key == "gdr_level") {
    if (use.is_tcp) return ": TCP does not read GPU memory";
    return same_at_every_level(use.context) ? ": it holds at every level, or at none" : "";
  }
  if (key == "ib_qps_per_connection" || key == "ib_split_data_on_qps")
    return nccl::why_queue_pairs_unread(use.context, key);
  if (key == "cross_nic") return why_crossing_unread(use);
  if (key == "p2p_pxn_level" && !is_pairs(use) && use.workload.benchmark != Benchmark::training) return of;
  const bool has_relays = std::ranges::any_of(
      nccl::kinds_of_hosts(use.context.topology),
      [&](const nccl::HostGroup& host) { return nccl::HostNics(use.context, host.gpus).has_relays(); });
  return has_relays ? "" : ": no HCA below the PCIe switches of a GPU that others reach over NVLink";
}

bool is_gated_by_mpi_version(const Use& use) {
  return std::ranges::any_of(use.context.topology.devices(DeviceKind::hca, use.host), [&](DeviceId hca) {
    const auto old = old_for_gpudirect(use.context, hca);
    return old && old->key == "mpi_version";
  });
}

/// Releases of the library pick algorithms by rules of their own.
bool has_rules_by_release(const Software& software) {
  const auto& mpi = software.mpi;
  return software.mpi_collectives == "library" && (mpi.empty() || mpi.starts_with("open-mpi") || mpi == "mpich");
}

/// The same where MPI all-reduces host memory beside NCCL.
std::string why_host_mpi_unread(const Use& use, std::string_view key) {
  if (key == "mpi") return {};
  if (key == "mpi_collectives") return {};
  if (key == "mpi_version" && has_rules_by_release(use.context.software)) return {};
  if (key == "mpi_version") return is_gated_by_mpi_version(use) ? "" : of_benchmark(use);
  if (key == "cross_memory_attach") return ": MPI does not exchange inside hosts";
  return key == "eager_limit" ? "" : ": no buffer of MPI is in GPU memory";
}

/// The same of MPI's own keys.
std::string why_mpi_unread(const Use& use, std::string_view key) {
  const auto of = of_benchmark(use);
  if (use.is_mpi_on_host) return why_host_mpi_unread(use, key);
  if (!use.is_mpi) return key == "mpi_version" && is_gated_by_mpi_version(use) ? "" : of;
  if (key == "mpi") {
    const bool has_rules = is_collective(use.workload.benchmark) || !use.crosses_hosts;
    const bool has_own_values = use.context.software.mpi == "open-mpi-ucx";
    return use.is_tcp && !has_rules && !has_own_values ? ": over TCP all libraries but UCX are one profile" : "";
  }
  if (key == "eager_limit") return {};
  if (key == "mpi_collectives") return is_collective(use.workload.benchmark) ? "" : of;
  if (key == "mpi_version") {
    const bool is_read = is_collective(use.workload.benchmark) && has_rules_by_release(use.context.software);
    return is_read || is_gated_by_mpi_version(use) ? "" : of;
  }
  const bool meets_in_hosts = use.shares_hosts && (is_collective(use.workload.benchmark) || !use.crosses_hosts);
  if (key == "cross_memory_attach") {
    if (!meets_in_hosts || (use.has_device && !mpi::is_reduction(use.workload.benchmark)))
      return ": no two ranks of a host exchange host memory";
    const auto library = mpi::make_profile(use.context, use.workload).implementation;
    if (library == "cray-mpich") return ": Cray MPICH uses XPMEM";
    return mpi::is_known_by_choices(library) ? ": the library copies through shared memory" : "";
  }
  if (key == "ucx" && (meets_in_hosts || use.is_tcp) &&
      mpi::make_profile(use.context, use.workload).implementation == "open-mpi-ucx")
    return {};
  return use.has_device ? "" : ": no buffer is in GPU memory";
}

/// The same of GPUDirect RDMA's.
std::string why_gpudirect_unread(const Use& use) {
  if (!use.has_device || !(use.is_nccl || use.is_mpi || use.is_verbs)) return of_benchmark(use);
  if (!use.crosses_hosts) return ": nothing crosses hosts";
  return use.is_tcp ? ": TCP does not read GPU memory" : "";
}

/// TCP between hosts leaves the shared memory inside them; on a cluster of one host it means loopback.
std::string why_transport_unread(const Use& use) {
  if (use.crosses_hosts) return {};
  auto other = use.context.software;
  other.transport = other.transport == "tcp" ? "auto" : "tcp";
  return same_routes_in_host(use.context, other) ? ": nothing crosses hosts" : "";
}

std::string why_unread(const Use& use, std::string_view key) {
  if (key.starts_with("nccl.")) return why_nccl_unread(use, key.substr(5));
  if (key == "gpudirect_rdma" || key == "nv_peer_mem" || key == "cuda" || key == "ofed")
    return why_gpudirect_unread(use);
  if (key == "transport") {
    if (use.workload.benchmark == Benchmark::remote_gpu) return {};
    if (!(use.is_nccl || use.is_mpi) || !use.has_exchange) return of_benchmark(use);
    return use.is_nccl ? why_transport_unread(use) : "";
  }
  return why_mpi_unread(use, key);
}

}  // namespace

bool runs_nccl(Benchmark benchmark) {
  return family_of(benchmark) == BenchmarkFamily::nccl_tests || benchmark == Benchmark::gpu_step ||
         benchmark == Benchmark::training;
}

void add_software_lines(const PlanContext& context, const Workload& workload, const Planner& planner,
                        std::set<std::string>& out) {
  const auto use = use_of(context, workload, planner);
  for (const auto& [key, location] : context.software.locations) {
    if (key == "nccl") continue;
    const auto why = why_unread(use, key);
    if (!why.empty()) out.insert(fmt::format("software.{} changes no time{}", key, why));
  }
}

}  // namespace fabricast::models
