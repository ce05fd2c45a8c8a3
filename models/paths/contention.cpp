// SPDX-License-Identifier: Apache-2.0
#include "paths/contention.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/parameter_name.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "sharing/cpu_sharing.hpp"

namespace fabricast::models {

using namespace literals;

namespace {

/// Kernel of a neighbour that computes all the time: longer than any slice, short enough to simulate.
constexpr Duration k_busy_kernel = 50_ms;

}  // namespace

std::optional<GpuProfile> profile_of(const PlanContext& context, const GpuSharing& sharing, DeviceId gpu) {
  if (sharing.profile.empty()) return std::nullopt;
  return find_gpu_profile(profile_family(context.topology.device(gpu).type, context.parameters), sharing.profile,
                          context.parameters);
}

std::vector<GpuClient> clients_of(const GpuSharing& sharing) {
  std::vector<GpuClient> out;
  for (const auto& client : sharing.clients) {
    for (int i = 0; i < client.count; ++i) {
      const auto name = client.count == 1 ? client.name : fmt::format("{}.{}", client.name, i);
      out.push_back({name, client.kernel, client.pause, {}, client.variation});
    }
  }
  return out;
}

Result<TimeSlicing> time_slicing_of(const PlanContext& context, const GpuSharing& sharing, DeviceId gpu) {
  return time_slicing(context.parameters, sharing, context.topology.device(gpu).type);
}

std::optional<GpuSharing> sharing_of(const PlanContext& context, const Workload& workload, DeviceId gpu) {
  if (workload.sharing) return workload.sharing;
  return vgpu_sharing(context, gpu, k_busy_kernel).value_or(std::nullopt);
}

namespace {

std::vector<Term> slice_waits(const PlanContext& context, const Workload& workload, DeviceId gpu, Duration operation) {
  const auto sharing = sharing_of(context, workload, gpu);
  if (!sharing || operation.ps <= 0) return {};
  const auto slicing = time_slicing_of(context, *sharing, gpu);
  if (!slicing) return {};
  if (const auto profile = profile_of(context, *sharing, gpu); profile && profile->is_mig) return {};
  const auto queued = std::max(1, workload.iterations);
  const auto wait = slice_wait(*slicing, queued * operation, clients_of(*sharing));
  const auto per_operation = [&](Duration all) { return from_seconds(all.seconds() / queued); };
  const auto& cost = context.parameters.at("gpu.context_switch_time"_key);
  return {{"waiting for time slices of others on the GPU", per_operation(wait.wait), "workload.sharing", "scenario"},
          {fmt::format("context switches of the GPU ({} operations queued)", queued), per_operation(wait.switching),
           cost.name, cost.source}};
}

std::vector<Term> neighbour_compute_terms(const PlanContext& context, DeviceId gpu, Duration compute) {
  const int workers = context.neighbours.knowledge_workers;
  if (workers == 0) return {};
  const auto& share = context.parameters.at("host.machine_learning_cpu_share"_key);
  const double cores = cores_of(context, context.topology.host_of(gpu));
  const double slower =
      knowledge_worker_slowdown_on(context.parameters, NeighbourVictim::machine_learning, workers, cores);
  return {{fmt::format("{} knowledge workers on {:.0f} cores of the host", workers, cores),
           from_seconds(compute.seconds() * slower), share.name, share.source}};
}

/// vCPUs of other VMs that may run on the cores of this one: none while every vCPU has a core of its own.
std::optional<CoreNeighbours> vcpus_beside(const PlanContext& context, DeviceId gpu) {
  const auto& vm = guest_settings(context, gpu);
  if (vm.vm_name.empty()) return std::nullopt;  // VMs dealt out by a word: vcpus_per_core
  const auto& topology = context.topology;
  const double cores = cores_of(context, topology.host_of(gpu));
  const int machine = topology.machine_of(topology.host_of(gpu));
  double all = 0;
  double others = 0;
  CoreNeighbours beside{0, 0, 0, vm.cpu_shares};
  for (int host = 0; host < topology.num_hosts(); ++host) {
    if (topology.machine_of(host) != machine) continue;
    const auto& one = topology.virtualization(host);
    const double vcpus = one.vcpus.value_or(0);
    all += vcpus;
    if (one.vm_name == vm.vm_name) continue;
    others += vcpus;
    beside.load += vcpus * one.cpu_load;
    beside.shares += vcpus * one.cpu_shares;
  }
  const bool has_own_cores = vm.latency_sensitivity == LatencySensitivity::high || (vm.is_pinned && all <= cores);
  if (has_own_cores || others <= 0) return std::nullopt;
  beside.per_core = others / cores;
  beside.load /= others;
  beside.shares /= others;
  return beside;
}

std::vector<Term> core_compute_terms(const PlanContext& context, DeviceId gpu, Duration compute) {
  std::vector<Term> out;
  const auto add = [&](std::string name, double speed) {
    if (speed >= 1) return;
    const auto& share = context.parameters.at("host.machine_learning_cpu_share"_key);
    out.push_back(
        {std::move(name), from_seconds(compute.seconds() * share.value * (1 / speed - 1)), share.name, share.source});
  };
  const auto& topology = context.topology;
  const int vms = std::max(1, guest_settings(context, gpu).vms_per_host);
  const int threads = std::max(1, topology.count(DeviceKind::gpu, topology.host_of(gpu)) / vms);
  add("launching threads that share cores with neighbours", contention_at(context, gpu, threads).core_speed);
  if (guest_settings(context, gpu).vm_name.empty()) {
    const double each = vcpus_per_core(context, gpu);
    add(fmt::format("virtualization: {:.2g} vCPUs on each core", each), 1 / each);
  } else if (const auto beside = vcpus_beside(context, gpu)) {
    add(fmt::format("virtualization: beside {:.2g} vCPUs of other VMs on each core", beside->per_core),
        1 / shared_core_slowdown(context.parameters, *beside));
  }
  return out;
}

}  // namespace

std::vector<Term> compute_delays(const PlanContext& context, DeviceId gpu, Duration compute) {
  auto terms = virtual_compute_terms(context, gpu, compute);
  for (auto& term : neighbour_compute_terms(context, gpu, compute)) terms.push_back(std::move(term));
  for (auto& term : core_compute_terms(context, gpu, compute)) terms.push_back(std::move(term));
  return terms;
}

int socket_threads(const PlanContext& context, DeviceId gpu) {
  constexpr int k_threads_per_gpu = 3;
  return k_threads_per_gpu * context.topology.count(DeviceKind::gpu, context.topology.host_of(gpu));
}

int hardware_threads(const PlanContext& context, int host) {
  constexpr double k_threads_per_core = 2;  // of x86 with hyper-threading; others have as many as cores
  const double cores = cores_of(context, host);
  return cores < k_unknown_cores ? static_cast<int>(k_threads_per_core * cores) : 0;
}

int virtual_cpus(const PlanContext& context, DeviceId device) {
  if (context.neighbours.vcpus > 0) return context.neighbours.vcpus;
  if (const auto given = guest_settings(context, device).vcpus) return static_cast<int>(*given);
  return hardware_threads(context, context.topology.host_of(device));
}

HostContention contention_at(const PlanContext& context, DeviceId device, int own_threads) {
  if (!context.neighbours.is_any()) return {};
  auto neighbours = context.neighbours;
  if (neighbours.threads > 0) neighbours.vcpus = virtual_cpus(context, device);
  const auto* bandwidth = context.parameters.find(processor_of(context.topology, device) + ".memory_bandwidth");
  return host_contention(context.parameters, neighbours, own_threads,
                         bandwidth == nullptr ? Bandwidth{} : Bandwidth{bandwidth->value});
}

std::vector<Term> neighbour_delays(const PlanContext& context, TransportKind kind, DeviceId gpu, const Term& hop,
                                   double count) {
  if (kind != TransportKind::host_memory && kind != TransportKind::socket) return {};
  const auto host = contention_at(context, gpu, socket_threads(context, gpu));
  std::vector<Term> out;
  const auto add = [&](const char* name, double seconds, std::string_view parameter) {
    const auto& known = context.parameters.at(parameter);
    if (seconds > 0) out.push_back({name, from_seconds(seconds), known.name, known.source});
  };
  const double time = hop.time.seconds();
  add("hops through a memory that neighbours use", time * (host.copy_slowdown - 1), "host.memory_queueing"_key);
  if (kind == TransportKind::socket) {
    add("hops of threads that share cores with neighbours", time * host.copy_slowdown * (1 / host.core_speed - 1),
        "host.smt_speed"_key);
    const double wakeups = count * context.parameters["host.socket_wakeups"_key];
    add("socket threads waiting for a virtual CPU", wakeups * host.scheduler_wait.seconds(), "host.scheduler_tick"_key);
    if (const auto beside = vcpus_beside(context, gpu))
      add("virtualization: socket threads beside vCPUs of other VMs",
          time * (shared_core_slowdown(context.parameters, *beside) - 1), "host.cpu_slice"_key);
  }
  return out;
}

std::vector<Term> scheduler_waits(const PlanContext& context, const Workload& workload, DeviceId gpu,
                                  Duration operation) {
  const auto tick = contention_at(context, gpu, 1).scheduler_wait;
  if (tick.ps <= 0 || operation.ps <= 0) return {};
  const auto& parameter = context.parameters.at("host.scheduler_tick"_key);
  const auto wait = rounded_to_ticks(operation, workload.iterations, tick) - operation;
  return {{fmt::format("waiting for a virtual CPU (whole ticks for {} operations)", workload.iterations),
           std::max(wait, Duration{}), parameter.name, parameter.source}};
}

std::vector<Term> waits_for_others(const PlanContext& context, const Workload& workload, DeviceId gpu,
                                   Duration operation) {
  auto out = slice_waits(context, workload, gpu, operation);
  for (auto& term : scheduler_waits(context, workload, gpu, operation + sum(out))) out.push_back(std::move(term));
  return out;
}

std::vector<Term> waits_of_step(const PlanContext& context, const Workload& workload, DeviceId gpu, Duration step) {
  return workload.sharing ? waits_for_others(context, workload, gpu, step)
                          : scheduler_waits(context, workload, gpu, step);
}

}  // namespace fabricast::models
