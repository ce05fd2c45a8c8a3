// SPDX-License-Identifier: Apache-2.0
// Which settings of `virtualization` and `host_neighbours` (of `software`: software_effects.cpp) a benchmark does not
// read: a result says so instead of leaving them out in silence. tests/unit/simulate/setting_effects_test.cpp walks
// every key of the schema over every benchmark: it changes the forecast, changes what `fabricast check` says, is
// refused, or stands here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "fabricast/models/shared_gpus.hpp"
#include "fabricast/training.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "software_effects.hpp"

namespace fabricast::models {

namespace {

// What a benchmark does that settings can change.
constexpr unsigned k_messages = 1;     // between hosts, or VMs
constexpr unsigned k_device_data = 2;  // GPU memory read or written by other devices
constexpr unsigned k_compute = 4;      // steps of GPU time
constexpr unsigned k_slices = 8;       // waits for the scheduler of shared GPUs
constexpr unsigned k_host_data = 16;   // copies between GPUs and host memory
constexpr unsigned k_groups = 32;      // ranks that belong to several VMs of a host
constexpr unsigned k_streams = 64;     // bytes without a message whose latency counts

struct Reader {
  std::string_view key;
  unsigned by;  ///< what reads it
};

/// Keys that are not here are read by every benchmark, or by none but `fabricast check`.
constexpr std::array k_guest_readers{Reader{"hypervisor", k_device_data},
                                     Reader{"version", k_device_data},
                                     Reader{"gpu", k_device_data | k_compute | k_slices},
                                     Reader{"nic", k_messages},
                                     Reader{"devices", k_messages},
                                     Reader{"vms_per_host", k_groups | k_compute},
                                     Reader{"container", 0},
                                     Reader{"vcpus", k_messages | k_compute},
                                     Reader{"numa", k_messages | k_device_data | k_host_data},
                                     Reader{"huge_pages", k_messages},
                                     Reader{"latency_sensitivity", k_messages | k_compute},
                                     Reader{"allow_p2p", k_device_data},
                                     Reader{"acs", k_device_data},
                                     Reader{"ats", k_device_data},
                                     Reader{"translation", k_device_data},
                                     Reader{"guest_topology", k_device_data},
                                     Reader{"mtu", k_messages},
                                     Reader{"vhost", k_messages},
                                     Reader{"port_group.mtu", k_messages},
                                     Reader{"port_group.shares", k_messages},
                                     Reader{"port_group.vlan", k_messages},
                                     Reader{"cpu_load", k_compute},
                                     Reader{"cpu_shares", k_compute},
                                     Reader{"gpu_load", k_slices | k_compute},
                                     Reader{"guest_os", k_device_data},
                                     Reader{"rate_limit", k_messages},
                                     Reader{"profile", k_device_data | k_compute | k_slices},
                                     Reader{"scheduler", k_slices},
                                     Reader{"time_slice", k_slices},
                                     Reader{"busy_neighbours", k_slices},
                                     Reader{"unified_memory", k_device_data},
                                     Reader{"gpu_share", k_compute}};

constexpr std::array k_checked_only{"pinning",
                                    "memory",
                                    "memory_reservation",
                                    "efi",
                                    "above_4g_decoding",
                                    "mmio",
                                    "ecc",
                                    "distributed_switch",
                                    "gpu_memory",
                                    "vgpu_release",
                                    "needs",
                                    "hardware_version",
                                    "firmware_functions",
                                    "host_memory",
                                    "dynamic_directpath",
                                    "remote_sharing",
                                    "port_group.priority"};

unsigned work_of(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  const bool has_messages = topology.num_hosts() > 1 || topology.virtualization(0).vms_per_host > 1;
  const unsigned messages = has_messages ? k_messages : 0;
  const bool has_device = workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
  switch (workload.benchmark) {
    case Benchmark::gpu_sharing:
    case Benchmark::vgpu_migration:
      return 0;
    case Benchmark::gpu_step:
    case Benchmark::training:
      return messages | k_groups | k_device_data | k_compute | k_slices;
    case Benchmark::host_copies:
      return k_host_data | (workload.direction == CopyDirection::to_peer ? k_device_data : 0);
    case Benchmark::iperf3:
      return messages | k_streams;
    case Benchmark::remote_gpu:
    case Benchmark::sockperf:
    case Benchmark::traffic:
      return messages;
    default:
      break;
  }
  if (family_of(workload.benchmark) == BenchmarkFamily::nccl_tests)
    return messages | k_groups | k_device_data | k_slices;
  const bool has_groups = is_collective(workload.benchmark) || workload.pairs > 1;
  return messages | (has_device ? k_device_data : 0) | (has_groups ? k_groups : 0);
}

/// Fixed shares keep the slices of vGPUs that a GPU could hold beside the VM's, also where nobody has them.
bool keeps_slices(const PlanContext& context, int host) {
  const auto gpus = context.topology.devices(DeviceKind::gpu, host);
  return context.topology.virtualization(host).scheduler == SharePolicy::fixed_share &&
         std::ranges::any_of(gpus, [&](DeviceId gpu) {
           return gpu_mode_of(context, gpu) == GpuMode::vgpu && !has_whole_gpu(context, gpu);
         });
}

bool is_length_of_fixed_share(const PlanContext& context, int host, std::string_view key) {
  return key == "time_slice" && context.topology.virtualization(host).busy_neighbours == 0 &&
         keeps_slices(context, host);
}

/// Why a key has no effect beside the way the VM gets its devices; empty when it has one.
std::string_view why_idle(const PlanContext& context, int host, std::string_view key, unsigned work) {
  const auto& guest = context.topology.virtualization(host);
  const bool is_shared = guest.gpu == GpuMode::vgpu || guest.gpu == GpuMode::mig;
  if (key == "rate_limit" && guest.nic != NicMode::sr_iov) return "only virtual functions (sr-iov) have one";
  if ((key == "mtu" || key == "port_group.mtu") && !is_tcp_only(guest.nic))
    return "RDMA adapters use the fabric's `mtu`";
  if (key == "port_group.shares" && !is_tcp_only(guest.nic))
    return "RDMA adapters pass by the hypervisor's switch, which hands out shares";
  if (key == "vhost" && guest.nic != NicMode::virtio) return "no adapter is virtio";
  if (key == "profile" && !is_shared) return "GPUs are not handed over by vgpu or mig";
  const bool is_of_scheduler = key == "scheduler" || key == "time_slice" || key == "busy_neighbours";
  if (is_of_scheduler && guest.gpu != GpuMode::vgpu) return "GPUs are not handed over by vgpu";
  if ((key == "scheduler" || key == "time_slice") && guest.busy_neighbours == 0 && !keeps_slices(context, host))
    return "no busy neighbours share the GPU";
  if (key == "gpu" && guest.gpu == GpuMode::vgpu && guest.profile.empty() && (work & k_host_data) == 0)
    return "the vGPU has the whole GPU";
  if (key == "unified_memory" && guest.gpu != GpuMode::vgpu) return "GPUs are not handed over by vgpu";
  if (key == "gpu_share" && guest.gpu != GpuMode::remote) return "the GPUs are not remote";
  if ((key == "cpu_load" || key == "cpu_shares") && guest.vcpus_on_host <= 0) return "no VM has vCPUs of its own";
  const bool is_overcommitted = guest.vms_per_host * guest.vcpus.value_or(0) > cores_of(context, host);
  if (!guest.vm_name.empty() || is_overcommitted) return {};
  const bool is_shared_by_threads = context.neighbours.threads > 0 && context.neighbours.vcpus == 0;
  if (key == "vcpus" && !is_shared_by_threads) return "no core is overcommitted";
  if (key == "latency_sensitivity" && (work & k_messages) == 0) return "no core is overcommitted";
  if (key == "latency_sensitivity" && (work & k_streams) != 0) return "streams wait for no single message";
  return {};
}

bool has_nvlinks(const PlanContext& context, int host) {
  const auto gpus = context.topology.devices(DeviceKind::gpu, host);
  if (gpus.size() < 2) return false;
  const auto path = context.topology.path_in_host(gpus[0], gpus[1]);
  return path && path->uses_nvlink;
}

/// How peer requests travel, where NCCL makes none because it does not see the switch that joins the devices.
bool is_unseen_peer_path(const PlanContext& context, const Workload& workload, const Virtualization& guest,
                         std::string_view key) {
  const bool is_of_path = key == "translation" || key == "acs" || key == "ats";
  const auto& level = context.software.nccl_gdr_level;
  return is_of_path && runs_nccl(workload.benchmark) && guest.guest_topology == GuestTopology::hidden &&
         level != "phb" && level != "sys";
}

void add_guest_lines(const PlanContext& context, const Workload& workload, std::set<std::string>& out) {
  const unsigned work = work_of(context, workload);
  const auto benchmark = to_string(workload.benchmark);
  for (int host = 0; host < context.topology.num_hosts(); ++host) {
    const auto& guest = context.topology.virtualization(host);
    if (!guest.is_virtual()) continue;
    for (const auto* key : k_checked_only) {
      const bool is_of_migration =
          workload.benchmark == Benchmark::vgpu_migration && std::string_view(key) != "gpu_memory";
      const bool is_of_packets = context.with_legs && std::string_view(key) == "port_group.priority";
      if (guest.locations.contains(key) && !is_of_migration && !is_of_packets)
        out.insert(fmt::format("virtualization.{} changes no time: `fabricast check` reads it", key));
    }
    for (const auto& reader : k_guest_readers) {
      if (!guest.locations.contains(std::string(reader.key))) continue;
      const auto why = why_idle(context, host, reader.key, work);
      if ((work & reader.by) == 0)
        out.insert(fmt::format("virtualization.{} changes no time of {}", reader.key, benchmark));
      else if (reader.key == "unified_memory" && !has_nvlinks(context, host))
        out.insert("virtualization.unified_memory changes no time: it closes NVLink, which the GPUs do not have");
      else if (is_length_of_fixed_share(context, host, reader.key))
        out.insert(
            "virtualization.time_slice changes no time of what computes for several slices: a fixed share without busy "
            "neighbours is as large whatever its slices");
      else if (is_unseen_peer_path(context, workload, guest, reader.key))
        out.insert(fmt::format(
            "virtualization.{} changes no time: NCCL takes the peer paths that it sees (guest_topology: hidden)",
            reader.key));
      else if (reader.key == "profile" && work == (k_device_data | k_host_data) && !has_nvlinks(context, host))
        out.insert("virtualization.profile changes no time: vGPUs have no peer access over PCIe");
      else if (!why.empty())
        out.insert(fmt::format("virtualization.{} changes no time: {}", reader.key, why));
    }
  }
}

/// Arithmetic of steps follows a power limit; copies between GPUs keep their pace, a profile has the times measured.
void add_power_line(const PlanContext& context, const Workload& workload, std::set<std::string>& out) {
  const auto& hosts = context.topology.spec().hosts;
  const bool is_given =
      std::ranges::any_of(hosts, [](const HostGroupSpec& group) { return group.host.gpu_power_limit.has_value(); });
  if (!is_given) return;
  if (workload.benchmark != Benchmark::training)
    out.insert(fmt::format("gpu_power_limit changes no time of {}", to_string(workload.benchmark)));
  else if (workload.training->profile)
    out.insert("gpu_power_limit changes no time of a profile, whose times hold for the limit they were measured under");
}

bool is_over_sockets(const PlanContext& context) {
  return context.software.transport == "tcp" || (!context.software.nccl_p2p && !context.software.nccl_shm);
}

/// Queue pairs, their verbs and their ways exist in packets only.
void add_transport_line(const PlanContext& context, const Workload& workload, std::set<std::string>& out) {
  const auto& asked = workload.transport;
  const TransportSpec plain;
  const bool is_given = asked.verb != plain.verb || asked.congestion_control != plain.congestion_control ||
                        asked.routing != plain.routing || asked.priority || asked.window;
  if (is_given && !context.with_legs)
    out.insert("workload.transport changes no time of the fluid engine: `--fidelity packet` reads it");
}

/// Some other workload computes on its GPUs.
bool takes_turns(const PlanContext& context, const Workload& workload) {
  if (context.workloads == nullptr) return false;
  const auto& all = *context.workloads;
  const auto own = std::ranges::find(all, &workload, [](const Workload& one) { return &one; });
  return own != all.end() && !shared_gpus(context.topology, all, static_cast<std::size_t>(own - all.begin())).empty();
}

/// Queued operations share a wait for time slices of GPUs or for virtual CPUs; broadcasts and reduces follow each other
/// along the chain.
void add_iterations_line(const PlanContext& context, const Workload& workload, const Planner& planner,
                         std::set<std::string>& out) {
  const bool is_given = workload.iterations != Workload{}.iterations;
  const bool is_chain = workload.benchmark == Benchmark::broadcast_perf || workload.benchmark == Benchmark::reduce_perf;
  if (is_given && planner.waits(from_seconds(1)).empty() && !(is_chain && planner.num_ranks() > 2) &&
      !takes_turns(context, workload))
    out.insert("workload.iterations changes no time: no operation waits for time slices or virtual CPUs");
}

/// Neighbours slow what goes through host memory, NCCL's sockets and steps; threads of MPI and of iperf3 are not
/// modelled as sharing cores.
void add_neighbour_lines(const PlanContext& context, const Workload& workload, std::set<std::string>& out) {
  const auto& neighbours = context.neighbours;
  const bool is_nccl = runs_nccl(workload.benchmark);
  const bool is_step = workload.benchmark == Benchmark::training || workload.benchmark == Benchmark::gpu_step;
  const bool is_own = family_of(workload.benchmark) == BenchmarkFamily::sharing;
  const auto add = [&](const char* key, bool is_given, bool is_read) {
    if (is_given && !is_read)
      out.insert(fmt::format("host_neighbours.{} changes no time of {}", key, to_string(workload.benchmark)));
  };
  add("threads", neighbours.threads > 0, is_nccl);
  add("vcpus", neighbours.vcpus > 0, is_nccl);
  if (neighbours.vcpus > 0 && neighbours.threads == 0 && is_nccl)
    out.insert("host_neighbours.vcpus changes no time: no busy threads share them (threads)");
  if (neighbours.threads > 0 && neighbours.vcpus == 0 && is_nccl) {
    const auto& topology = context.topology;
    const int host = topology.first_host_with(DeviceKind::gpu);
    const int vcpus = virtual_cpus(context, topology.devices(DeviceKind::socket, host).front());
    out.insert(vcpus > 0 ? fmt::format("host_neighbours.vcpus is not given: {} taken", vcpus)
                         : "host_neighbours.threads changes no time: nothing says how many cores there are (vcpus)");
  }
  // Of NCCL only the threads of sockets wait for cores.
  add("overcommit", neighbours.overcommit > 1, is_step || (is_nccl && is_over_sockets(context)));
  add("knowledge_workers", neighbours.knowledge_workers > 0, is_step);
  add("memory_traffic", neighbours.memory_traffic.bytes_per_s > 0, !is_own);
  if (neighbours.memory_traffic.bytes_per_s > 0 && !is_own)
    out.insert("host_neighbours.memory_traffic changes no time of what does not wait for host memory");
}

}  // namespace

std::vector<std::string> settings_without_effect(const PlanContext& context, const Workload& workload,
                                                 const Planner& planner) {
  std::set<std::string> out;
  add_guest_lines(context, workload, out);
  add_neighbour_lines(context, workload, out);
  add_transport_line(context, workload, out);
  add_power_line(context, workload, out);
  add_iterations_line(context, workload, planner, out);
  add_software_lines(context, workload, planner, out);
  return {out.begin(), out.end()};
}

}  // namespace fabricast::models
