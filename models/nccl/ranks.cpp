// SPDX-License-Identifier: Apache-2.0
#include "nccl/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nccl/channels.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

Result<std::vector<DeviceId>> named_gpus(const Topology& topology, const Workload& workload) {
  std::vector<DeviceId> ranks;
  Diagnostics faults;
  const auto fault = [&](std::string message, std::string hint) {
    faults.push_back(make_error_at(workload.location, std::move(message), std::move(hint)));
  };
  const auto add = [&](DeviceId gpu) {
    if (std::ranges::find(ranks, gpu) != ranks.end())
      fault(fmt::format("'{}' is named twice, by itself and by its host", topology.device(gpu).name),
            fmt::format("{} gives every rank a GPU of its own", to_string(workload.benchmark)));
    ranks.push_back(gpu);
  };
  for (const auto& name : workload.devices) {
    if (const auto vm = host_called(topology, name)) {
      const auto held = topology.devices(DeviceKind::gpu, *vm);
      std::ranges::for_each(held, add);
      if (held.empty()) fault(fmt::format("'{}' holds no GPU", name), "name one that does, or single GPUs: host.gpuN");
      continue;
    }
    const auto device = topology.find_device(name);
    if (!device || topology.kind(*device) != DeviceKind::gpu) {
      fault(fmt::format("'{}' is not a GPU of topology '{}'", name, topology.name()),
            topology.num_hosts() > 0 && !topology.virtualization(0).vm_name.empty()
                ? "GPUs of VMs are called host/vm.gpuN, all of a VM host/vm"
                : "GPUs are called host.gpuN");
    } else {
      add(*device);
    }
  }
  const auto wanted = static_cast<std::size_t>(workload.gpus.value_or(static_cast<int>(ranks.size())));
  if (faults.empty() && wanted > ranks.size())
    fault(fmt::format("{} GPUs asked for, 'devices' names {}", wanted, ranks.size()),
          "name as many, or lower workload.gpus: the first of those that are named take part");
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  ranks.resize(wanted);
  return ranks;
}

Result<std::vector<DeviceId>> choose_ranks(const Topology& topology, const Workload& workload) {
  if (!workload.devices.empty()) return named_gpus(topology, workload);
  std::vector<DeviceId> ranks;
  const auto all = topology.devices(DeviceKind::gpu);
  Diagnostics faults;
  const auto fault = [&](std::string message, std::string hint) {
    faults.push_back(make_error_at(workload.location, std::move(message), std::move(hint)));
  };
  const auto wanted =
      static_cast<std::size_t>(workload.gpus.value_or(workload.ranks.value_or(static_cast<int>(all.size()))));
  if (wanted > all.size()) {
    fault(fmt::format("{} GPUs asked for, topology '{}' has {}", wanted, topology.name(), all.size()),
          "raise the host count of the topology or lower workload.gpus");
  } else if (workload.ranks_per_host) {
    for (int host = 0; host < topology.num_hosts() && ranks.size() < wanted; ++host) {
      const auto gpus = topology.devices(DeviceKind::gpu, host);
      for (std::size_t g = 0;
           g < gpus.size() && g < static_cast<std::size_t>(*workload.ranks_per_host) && ranks.size() < wanted; ++g) {
        ranks.push_back(gpus[g]);
      }
    }
    if (ranks.size() < wanted)
      fault(fmt::format("{} GPUs with {} per host need more hosts than the {} there are", wanted,
                        *workload.ranks_per_host, topology.num_hosts()),
            "");
  } else {
    ranks.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted));
  }
  if (faults.empty() && ranks.empty())
    fault(fmt::format("topology '{}' has no GPU", topology.name()),
          fmt::format("{} works on GPUs", to_string(workload.benchmark)));
  if (!faults.empty()) return tl::unexpected(faults);
  return ranks;
}

Diagnostics unreachable_hosts(const PlanContext& context, const Workload& workload,
                              const std::vector<DeviceId>& ranks) {
  Diagnostics faults;
  const auto hosts = group_by_host(context.topology, ranks);
  for (std::size_t h = 0; hosts.size() > 1 && h < hosts.size(); ++h) {
    const auto here = context.topology.hcas_by_distance(hosts[h].gpus.front());
    const auto next = context.topology.hcas_by_distance(hosts[(h + 1) % hosts.size()].gpus.front());
    if (!here.empty() && !next.empty() &&
        (can_stay_inside_host(context, here.front(), next.front()) ||
         context.topology.path_between_hcas(here.front(), next.front())))
      continue;
    faults.push_back(no_network_path(context, workload.location, hosts[h].host, hosts[(h + 1) % hosts.size()].host));
    break;
  }
  return faults;
}

}  // namespace fabricast::models::nccl
