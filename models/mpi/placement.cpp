// SPDX-License-Identifier: Apache-2.0
#include "mpi/placement.hpp"

#include <algorithm>

namespace fabricast::models::mpi {

PairPlaces places_of_pairs(const Topology& topology, const Workload& workload) {
  const bool first_gpu = workload.send_buffer == BufferPlace::device;
  const bool second_gpu = workload.receive_buffer == BufferPlace::device;
  // Both ends of every pair fit on one host when it is told to take that many ranks.
  const bool is_packed = workload.ranks_per_host.value_or(1) >= 2 * workload.pairs;
  const bool is_remote = topology.num_hosts() > 1 && !is_packed;
  const bool starts_on_gpu = first_gpu || (second_gpu && !is_remote);
  PairPlaces out;
  out.first = starts_on_gpu ? topology.first_host_with(DeviceKind::gpu) : 0;
  out.second =
      is_remote ? topology.next_host_with(second_gpu ? DeviceKind::gpu : DeviceKind::memory, out.first) : out.first;
  out.offset = is_remote ? 0 : workload.pairs;
  return out;
}

RankPlaces places_of_ranks(const Topology& topology, const Workload& workload) {
  const bool needs_gpu = workload.send_buffer == BufferPlace::device;
  const auto capacity = [&](int host) {
    const int gpus = topology.count(DeviceKind::gpu, host);
    if (needs_gpu) return std::min(workload.ranks_per_host.value_or(gpus), gpus);
    return workload.ranks_per_host.value_or(gpus > 0 ? gpus : topology.count(DeviceKind::memory, host));
  };
  RankPlaces out;
  for (int host = 0; host < topology.num_hosts(); ++host) out.most += capacity(host);
  out.wanted = workload.ranks.value_or(workload.gpus.value_or(out.most));
  const bool is_spread = out.wanted > out.most && !needs_gpu && !workload.ranks_per_host;
  if (is_spread) out.most = out.wanted;
  const int each = (out.wanted + topology.num_hosts() - 1) / topology.num_hosts();
  int left = std::min(out.wanted, out.most);
  for (int host = 0; host < topology.num_hosts() && left > 0; ++host) {
    const int here = std::min(left, is_spread ? each : capacity(host));
    if (here > 0) out.hosts.push_back({host, here});
    left -= here;
  }
  return out;
}

void keep_fastest(const PlanContext& context, std::vector<DeviceId>& hcas) {
  if (hcas.size() < 2) return;
  const auto rate = [&](DeviceId hca) { return device_value(context, hca, "rate"); };
  const double fastest = rate(*std::ranges::max_element(hcas, {}, rate));
  std::erase_if(hcas, [&](DeviceId hca) { return rate(hca) < fastest; });
}

std::vector<int> hosts_taking_part(const Topology& topology, const Workload& workload) {
  std::vector<int> out;
  for (const auto& name : workload.devices) {
    if (const auto vm = host_called(topology, name)) {
      out.push_back(*vm);
    } else if (const auto device = topology.find_device(name)) {
      out.push_back(topology.host_of(*device));
    }
  }
  if (!out.empty()) return out;
  if (is_collective(workload.benchmark)) {
    for (const auto& share : places_of_ranks(topology, workload).hosts) out.push_back(share.host);
    return out;
  }
  const auto places = places_of_pairs(topology, workload);
  return {places.first, places.second};
}

}  // namespace fabricast::models::mpi
