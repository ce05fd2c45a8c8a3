// SPDX-License-Identifier: Apache-2.0
// Hops of a pattern, put together edge by edge and host by host.
#include <algorithm>
#include <tuple>
#include <utility>

#include "nccl/patterns.hpp"

namespace fabricast::models::nccl {

void merge_hops(std::vector<Hops>& hops, const Hops& more) {
  for (auto& known : hops) {
    if (known.kind != more.kind) continue;
    known.count += more.count;
    known.link_latency = std::max(known.link_latency, more.link_latency);
    known.whole_packet_wait = std::max(known.whole_packet_wait, more.whole_packet_wait);
    known.adapter_latency = std::max(known.adapter_latency, more.adapter_latency);
    if (sum(more.guest_terms) > sum(known.guest_terms)) known.guest_terms = more.guest_terms;
    known.lands_in_gpu = known.lands_in_gpu || more.lands_in_gpu;
    return;
  }
  hops.push_back(more);
}

void merge_hop(std::vector<Hops>& hops, const Route& route, double count, DeviceId adapter) {
  merge_hops(hops, {route.kind, count, route.latency, route.whole_packet_wait, route.adapter_latency, route.guest_terms,
                    is_network(route.kind) ? adapter : DeviceId{}, route.lands_in_gpu});
}

void keep_slowest(std::vector<Hops>& slowest, std::vector<Hops> hops) {
  const auto key = [](const std::vector<Hops>& all) {
    std::tuple<int, double, double, Duration> out{-1, 0, 0, {}};
    auto& [kind, of_kind, count, latency] = out;
    for (const auto& one : all) {
      count += one.count;
      latency = std::max(latency, one.link_latency + one.adapter_latency + sum(one.guest_terms));
      if (static_cast<int>(one.kind) < kind) continue;
      kind = static_cast<int>(one.kind);
      of_kind = one.count;
    }
    return out;
  };
  if (key(hops) > key(slowest)) slowest = std::move(hops);
}

void set_process_uses(const std::map<int, ProcessUse>& processes, double both_ways_cost, bool is_chain, Hops& hops) {
  double most = 0;
  for (const auto& [process, use] : processes) {
    if (use.sends > 0 && use.receives > 0 && !is_chain)
      hops.duplex_uses = std::max({hops.duplex_uses, use.sends, use.receives});
    hops.process_sends = std::max(hops.process_sends, use.sends);
    hops.process_receives = std::max(hops.process_receives, use.receives);
    const int all = use.sends + use.receives;
    const int both_ways = 2 * std::min(use.sends, use.receives);
    const double work = all + (both_ways_cost - 1) * both_ways;
    if (work <= most) continue;
    most = work;
    hops.process_uses = all;
    hops.process_both_ways = both_ways;
  }
  hops.process_meeting = hops.process_uses;
}

}  // namespace fabricast::models::nccl
