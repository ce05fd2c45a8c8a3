// SPDX-License-Identifier: Apache-2.0
#include "mpi/placement.hpp"

#include <algorithm>
#include <cstdint>

namespace fabricast::models::mpi {

namespace {

/// Ranks fill hosts that have what their buffers need, `per_host` each; nothing where some are left over.
std::vector<PairPlace> filled_in_order(const Topology& topology, const Workload& workload, int per_host) {
  const bool needs_gpu = workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
  std::vector<int> hosts;
  for (int host = 0; host < topology.num_hosts(); ++host)
    if (topology.count(needs_gpu ? DeviceKind::gpu : DeviceKind::memory, host) > 0) hosts.push_back(host);
  const int pairs = workload.pairs;
  if (2 * static_cast<std::int64_t>(pairs) > per_host * static_cast<std::int64_t>(hosts.size())) return {};
  std::vector<PairPlace> out;
  const auto host_of = [&](int rank) { return hosts[static_cast<std::size_t>(rank / per_host)]; };
  for (int i = 0; i < pairs; ++i) out.push_back({host_of(i), host_of(i + pairs), i % per_host, (i + pairs) % per_host});
  return out;
}

}  // namespace

std::vector<PairPlace> places_of_pairs(const Topology& topology, const Workload& workload) {
  if (workload.pairs > 1 && workload.ranks_per_host)
    return filled_in_order(topology, workload, *workload.ranks_per_host);
  const bool first_gpu = workload.send_buffer == BufferPlace::device;
  const bool second_gpu = workload.receive_buffer == BufferPlace::device;
  // Both ends of a pair fit on one host when it is told to take that many ranks.
  const bool is_packed = workload.ranks_per_host.value_or(1) >= 2;
  const bool is_remote = topology.num_hosts() > 1 && !is_packed;
  const bool starts_on_gpu = first_gpu || (second_gpu && !is_remote);
  const int first = starts_on_gpu ? topology.first_host_with(DeviceKind::gpu) : 0;
  const int second =
      is_remote ? topology.next_host_with(second_gpu ? DeviceKind::gpu : DeviceKind::memory, first) : first;
  std::vector<PairPlace> out;
  for (int i = 0; i < workload.pairs; ++i) out.push_back({first, second, i, is_remote ? i : i + workload.pairs});
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
  for (const auto& pair : places_of_pairs(topology, workload))
    for (const int host : {pair.first, pair.second})
      if (std::ranges::find(out, host) == out.end()) out.push_back(host);
  if (out.empty()) out = {0};
  return out;
}

}  // namespace fabricast::models::mpi
