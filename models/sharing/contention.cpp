// SPDX-License-Identifier: Apache-2.0
#include "sharing/contention.hpp"

#include <fmt/format.h>

#include "common/transport.hpp"

namespace fabricast::models {

namespace {

int num_clients(const GpuSharing& sharing, bool beside_workload) {
  int count = beside_workload ? 1 : 0;
  for (const auto& client : sharing.clients) count += client.count;
  return count;
}

/// Reads profile names of a family for a message: "40c, 20c, ...".
std::string known_profiles(const std::string& family, const ParameterSet& parameters) {
  std::string names;
  for (const auto& profile : gpu_profiles(family, parameters))
    names += (names.empty() ? "" : ", ") + profile.name.substr(family.size() + 1);
  return names;
}

class Faults {
 public:
  explicit Faults(const GpuSharing& sharing) : sharing_(sharing) {}
  void add(std::string message, std::string hint) {
    auto fault = make_error(std::move(message), std::move(hint));
    fault.location = sharing_.location;
    all_.push_back(std::move(fault));
  }
  [[nodiscard]] const Diagnostics& all() const { return all_; }

 private:
  const GpuSharing& sharing_;
  Diagnostics all_;
};

void check_profile(const PlanContext& context, const GpuSharing& sharing, DeviceId gpu, int clients, Faults& faults) {
  if (sharing.profile.empty()) return;
  const auto type = context.topology.device(gpu).type;
  const auto family = profile_family(type, context.parameters);
  const auto profile = find_gpu_profile(family, sharing.profile, context.parameters);
  if (!profile) {
    const auto names = known_profiles(family, context.parameters);
    faults.add(fmt::format("a {} has no profile '{}'", type, sharing.profile),
               names.empty() ? "no profiles of this GPU are known" : "its profiles are " + names);
    return;
  }
  if (clients > profile->max_instances) {
    faults.add(
        fmt::format("{} clients of profile {}, one {} holds {}", clients, profile->name, type, profile->max_instances),
        "take a smaller profile, or put the others on another GPU");
  }
}

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
  Faults faults(sharing);
  const int clients = num_clients(sharing, !sharing.is_whole_workload);
  check_profile(context, sharing, gpu, clients, faults);
  const auto profile = profile_of(context, sharing, gpu);
  const int most = profile ? profile->max_instances : clients;
  TimeSlicing out;
  out.policy = sharing.policy;
  out.max_clients = most;
  out.is_strict = sharing.is_strict;
  out.averaging = sharing.averaging.value_or(out.averaging);
  out.slice = default_vgpu_slice(most);
  if (sharing.rm_pvmrl) {
    auto read = scheduler_from_rm_pvmrl(*sharing.rm_pvmrl, most);
    if (read) {
      out = *read;
    } else {
      faults.add(read.error().front().message, read.error().front().notes.front().text);
    }
  }
  // Best effort leaves the slice to the hardware; the setting has no effect on it.
  if (out.policy == SharePolicy::best_effort) out.slice = context.parameters.duration("gpu.time_slice");
  if (sharing.slice) out.slice = *sharing.slice;
  out.switch_time = sharing.switch_time.value_or(context.parameters.duration("gpu.context_switch_time"));
  out.preemption_granularity = sharing.preemption_granularity;
  if (out.slice <= out.switch_time) {
    faults.add(fmt::format("a time slice of {} is not longer than a context switch of {}", to_string(out.slice),
                           to_string(out.switch_time)),
               "raise 'slice'");
  }
  if (!faults.all().empty()) return tl::unexpected(faults.all());
  return out;
}

std::vector<Term> slice_waits(const PlanContext& context, const Workload& workload, DeviceId gpu, Duration operation) {
  if (!workload.sharing || operation.ps <= 0) return {};
  const auto slicing = time_slicing_of(context, *workload.sharing, gpu);
  if (!slicing) return {};
  if (const auto profile = profile_of(context, *workload.sharing, gpu); profile && profile->is_mig) return {};
  const auto queued = std::max(1, workload.iterations);
  const auto wait = slice_wait(*slicing, queued * operation, clients_of(*workload.sharing));
  const auto per_operation = [&](Duration all) { return from_seconds(all.seconds() / queued); };
  const auto& cost = context.parameters.at("gpu.context_switch_time");
  return {{"waiting for time slices of others on the GPU", per_operation(wait.wait), "workload.sharing", "scenario"},
          {fmt::format("context switches of the GPU ({} operations queued)", queued), per_operation(wait.switching),
           cost.name, cost.source}};
}

int socket_threads(const PlanContext& context, DeviceId gpu) {
  constexpr int k_threads_per_gpu = 3;
  return k_threads_per_gpu * context.topology.count(DeviceKind::gpu, context.topology.host_of(gpu));
}

HostContention contention_at(const PlanContext& context, DeviceId device, int own_threads) {
  if (!context.neighbours.is_any()) return {};
  const auto* bandwidth = context.parameters.find(processor_of(context.topology, device) + ".memory_bandwidth");
  return host_contention(context.parameters, context.neighbours, own_threads,
                         bandwidth == nullptr ? Bandwidth{} : Bandwidth{bandwidth->value});
}

std::vector<Term> neighbour_delays(const PlanContext& context, TransportKind kind, DeviceId gpu, const Term& hop,
                                   double count) {
  if (kind != TransportKind::host_memory && kind != TransportKind::socket) return {};
  const auto host = contention_at(context, gpu, socket_threads(context, gpu));
  std::vector<Term> out;
  const auto add = [&](const char* name, double seconds, const char* parameter) {
    if (seconds > 0) out.push_back({name, from_seconds(seconds), parameter, context.parameters.at(parameter).source});
  };
  const double time = hop.time.seconds();
  add("hops through a memory that neighbours use", time * (host.copy_slowdown - 1), "host.memory_queueing");
  if (kind == TransportKind::socket) {
    add("hops of threads that share cores with neighbours", time * host.copy_slowdown * (1 / host.core_speed - 1),
        "host.smt_speed");
    const double wakeups = count * context.parameters.number("host.socket_wakeups");
    add("socket threads waiting for a virtual CPU", wakeups * host.scheduler_wait.seconds(), "host.scheduler_tick");
  }
  return out;
}

std::vector<Term> scheduler_waits(const PlanContext& context, const Workload& workload, DeviceId gpu,
                                  Duration operation) {
  const auto tick = contention_at(context, gpu, 1).scheduler_wait;
  if (tick.ps <= 0 || operation.ps <= 0) return {};
  const auto& parameter = context.parameters.at("host.scheduler_tick");
  const auto wait = rounded_to_ticks(operation, workload.iterations, tick) - operation;
  return {{fmt::format("waiting for a virtual CPU (whole ticks for {} operations)", workload.iterations),
           std::max(wait, Duration{}), parameter.name, parameter.source}};
}

}  // namespace fabricast::models
