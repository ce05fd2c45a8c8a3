// SPDX-License-Identifier: Apache-2.0
#include "mpi/end_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "mpi/placement.hpp"
#include "mpi/verbs.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

/// The fastest, nearest first, equally near ones from the rank's turn on.
std::vector<DeviceId> rotated_hcas(const PlanContext& context, DeviceId device, int turn) {
  const auto& topology = context.topology;
  auto hcas = topology.hcas_by_distance(device);
  keep_fastest(context, hcas);
  if (hcas.size() < 2) return hcas;
  std::size_t equal = 1;
  while (equal < hcas.size() && topology.distance(device, hcas[equal]) == topology.distance(device, hcas[0])) ++equal;
  std::rotate(hcas.begin(), hcas.begin() + turn % static_cast<int>(equal),
              hcas.begin() + static_cast<std::ptrdiff_t>(equal));
  return hcas;
}

/// `index`: of the rank among those of its host, which take GPUs, memories and adapters in turn.
EndPoint end_point(const PlanContext& context, int host, int index, bool needs_gpu, const Profile& profile) {
  const auto& topology = context.topology;
  EndPoint end;
  end.host = host;
  if (needs_gpu) {
    end.gpu = topology.device_in_host(host, DeviceKind::gpu, index % topology.count(DeviceKind::gpu, host));
    end.memory = topology.local_memory(end.gpu);
    end.hcas = rotated_hcas(context, profile.compares_gpus ? end.gpu : end.memory, 0);
    return end;
  }
  const int memories = topology.count(DeviceKind::memory, host);
  end.memory = topology.device_in_host(host, DeviceKind::memory, index % memories);
  end.hcas = rotated_hcas(context, end.memory, profile.rotates_hcas ? index / memories : 0);
  return end;
}

Result<EndPoint> named_end_point(const PlanContext& context, const Workload& workload, const std::string& name,
                                 bool needs_gpu, const Profile& profile) {
  if (const auto vm = host_called(context.topology, name);
      vm && !(needs_gpu && context.topology.count(DeviceKind::gpu, *vm) == 0))
    return end_point(context, *vm, 0, needs_gpu, profile);
  const auto device = context.topology.find_device(name);
  if (!device)
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location, fmt::format("no device '{}' in topology '{}'", name, context.topology.name()),
                      "devices are called host.gpuN or host.memoryN")});
  const auto kind = context.topology.kind(*device);
  if (needs_gpu != (kind == DeviceKind::gpu)) {
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location, fmt::format("'{}' does not fit buffers on the {}", name, needs_gpu ? "device" : "host"),
        "name GPUs for device buffers and memories for host buffers")});
  }
  EndPoint end;
  end.host = context.topology.host_of(*device);
  end.memory = needs_gpu ? context.topology.local_memory(*device) : *device;
  if (needs_gpu) end.gpu = *device;
  end.hcas = rotated_hcas(context, profile.compares_gpus ? *device : end.memory, 0);
  return end;
}

/// Why two ends cannot talk; empty when they can. Ends of one system need no network.
Diagnostics unreachable(const PlanContext& context, const Workload& workload, const Profile& profile, const EndPoint& a,
                        const EndPoint& b) {
  if (is_same_system(context, a.device(), b.device())) return {};
  const bool has_path = !a.hcas.empty() && !b.hcas.empty() &&
                        (can_stay_inside_host(context, a.hcas.front(), b.hcas.front()) ||
                         context.topology.path_between_hcas(a.hcas.front(), b.hcas.front()));
  if (has_path) return library_faults(context, profile, {a, b});
  return Diagnostics{no_network_path(context, workload.location, a.host, b.host)};
}

/// Client and server of perftest in one system open the same adapter: without a fabric it is the only way to each
/// other.
void share_adapter(const PlanContext& context, const Profile& profile, const EndPoint& first, EndPoint& second) {
  if (profile.posts_verbs && is_same_system(context, first.device(), second.device())) second.hcas = first.hcas;
}

/// Why a host's GPUs are too few for one end of all pairs; nothing when they are enough.
std::optional<Diagnostic> missing_gpus(const PlanContext& context, const Workload& workload, int host, int wanted) {
  const int there = context.topology.count(DeviceKind::gpu, host);
  if (there >= wanted) return std::nullopt;
  const auto& name = context.topology.host_name(host);
  if (there == 0)
    return make_error_at(workload.location, fmt::format("device buffers, host '{}' has no GPU", name),
                         "write `buffers: [host, host]`");
  return make_error_at(workload.location,
                       fmt::format("{} {} {} GPUs on host '{}', it has {}", workload.pairs,
                                   workload.pairs == 1 ? "pair needs" : "pairs need", wanted, name, there),
                       "lower pairs, add a host or use host buffers");
}

/// Why a host cannot run so many ranks at a time; nothing when it can, or when nobody knows its cores.
std::optional<Diagnostic> missing_threads(const PlanContext& context, const Workload& workload, int host, int ranks) {
  const int threads = hardware_threads(context, host);
  if (threads == 0 || ranks <= threads) return std::nullopt;
  const auto& topology = context.topology;
  const auto& socket = topology.device(topology.devices(DeviceKind::socket, host).front());
  return make_error_at(workload.location,
                       fmt::format("{} ranks on host '{}', whose {:.0f} cores ({}) have {} hardware threads", ranks,
                                   topology.host_name(host), cores_of(context, host), socket.type, threads),
                       fmt::format("lower ranks or ranks_per_host: ranks that share a thread yield to each other, "
                                   "which no forecast here describes; "
                                   "where the processor has more cores, tell the topology: `parameters: {{{}.cores: "
                                   "{{value: N, source: lscpu}}}}`",
                                   socket.type));
}

}  // namespace

Result<std::vector<Pair>> make_pairs(const PlanContext& context, const Workload& workload, const Profile& profile) {
  const auto& topology = context.topology;
  const bool first_gpu = workload.send_buffer == BufferPlace::device;
  const bool second_gpu = workload.receive_buffer == BufferPlace::device;
  if (!workload.devices.empty()) {
    if (workload.devices.size() != 2)
      return tl::unexpected(Diagnostics{make_error_at(
          workload.location, fmt::format("{} devices named for a point-to-point test", workload.devices.size()),
          "name two")});
    auto first = named_end_point(context, workload, workload.devices[0], first_gpu, profile);
    auto second = named_end_point(context, workload, workload.devices[1], second_gpu, profile);
    if (!first) return tl::unexpected(first.error());
    if (!second) return tl::unexpected(second.error());
    share_adapter(context, profile, *first, *second);
    if (auto faults = unreachable(context, workload, profile, *first, *second); !faults.empty())
      return tl::unexpected(faults);
    return std::vector<Pair>{{*first, *second}};
  }
  const auto places = places_of_pairs(topology, workload);
  if (places.empty())
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location,
                      fmt::format("{} pairs are {} ranks, topology '{}' does not hold them at {} per host",
                                  workload.pairs, 2 * workload.pairs, topology.name(), *workload.ranks_per_host),
                      "lower ranks or pairs, raise ranks_per_host or add hosts")});
  std::map<int, int> ranks, gpus;  // by host, so many that the last one has its own
  for (const auto& place : places) {
    const auto add = [&](int host, int index, bool is_device) {
      ranks[host] = std::max(ranks[host], index + 1);
      gpus[host] = std::max(gpus[host], is_device ? index + 1 : 0);
    };
    add(place.first, place.first_index, first_gpu);
    add(place.second, place.second_index, second_gpu);
  }
  for (const auto& [host, wanted] : gpus)
    if (auto fault = missing_gpus(context, workload, host, wanted)) return tl::unexpected(Diagnostics{*fault});
  for (const auto& [host, wanted] : ranks)
    if (auto fault = missing_threads(context, workload, host, wanted)) return tl::unexpected(Diagnostics{*fault});
  std::vector<Pair> out;
  for (const auto& place : places)
    out.push_back({end_point(context, place.first, place.first_index, first_gpu, profile),
                   end_point(context, place.second, place.second_index, second_gpu, profile)});
  for (auto& pair : out) {
    share_adapter(context, profile, pair.first, pair.second);
    if (auto faults = unreachable(context, workload, profile, pair.first, pair.second); !faults.empty())
      return tl::unexpected(faults);
  }
  return out;
}

Result<std::vector<EndPoint>> make_ranks(const PlanContext& context, const Workload& workload, const Profile& profile) {
  const auto& topology = context.topology;
  const bool needs_gpu = workload.send_buffer == BufferPlace::device;
  const auto places = places_of_ranks(topology, workload);
  if (places.wanted > places.most) {
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location,
        fmt::format("{} ranks asked for, topology '{}' holds {}", places.wanted, topology.name(), places.most),
        "raise the host count of the topology or lower workload.ranks")});
  }
  for (const auto& share : places.hosts)
    if (auto fault = missing_threads(context, workload, share.host, share.ranks))
      return tl::unexpected(Diagnostics{*fault});
  std::vector<EndPoint> ranks;
  for (const auto& share : places.hosts)
    for (int i = 0; i < share.ranks; ++i) ranks.push_back(end_point(context, share.host, i, needs_gpu, profile));
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    if (auto faults = unreachable(context, workload, profile, ranks[r - 1], ranks[r]); !faults.empty())
      return tl::unexpected(faults);
  }
  return ranks;
}

namespace {

EndPoint process_of(const PlanContext& context, DeviceId gpu, const Profile& profile) {
  const auto& topology = context.topology;
  EndPoint end;
  end.host = topology.host_of(gpu);
  end.gpu = gpu;
  end.memory = topology.local_memory(gpu);
  int turn = 0;
  for (const auto other : topology.devices(DeviceKind::gpu, end.host))
    turn += other < gpu && topology.local_memory(other) == end.memory ? 1 : 0;
  end.hcas = rotated_hcas(context, end.memory, profile.rotates_hcas ? turn : 0);
  return end;
}

}  // namespace

Result<std::vector<EndPoint>> make_processes(const PlanContext& context, const Workload& workload,
                                             const std::vector<DeviceId>& gpus, const Profile& profile) {
  std::vector<EndPoint> ranks;
  for (const auto gpu : gpus) {
    ranks.push_back(process_of(context, gpu, profile));
    if (ranks.size() < 2) continue;
    if (auto faults = unreachable(context, workload, profile, ranks[ranks.size() - 2], ranks.back()); !faults.empty())
      return tl::unexpected(faults);
  }
  return ranks;
}

std::string name_of(const Topology& topology, const EndPoint& end) {
  return topology.device(end.is_device() ? end.gpu : end.memory).name;
}

}  // namespace fabricast::models::mpi
