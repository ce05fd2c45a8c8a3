// SPDX-License-Identifier: Apache-2.0
#include "packet/host_stages.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace fabricast::packet {

StageId HostStages::add_stage(Bandwidth rate) {
  FABRICAST_ASSERT(rate.bytes_per_s > 0, "a stage of {} bytes/s", rate.bytes_per_s);
  free.push_back(k_long_ago);
  ps_per_byte.push_back(1e12 / rate.bytes_per_s);
  return StageId{static_cast<std::uint32_t>(free.size() - 1)};
}

HostPathId HostStages::add_path(const HostPath& path, std::int64_t largest_packet) {
  paths.push_back({static_cast<std::uint32_t>(costs.size()), static_cast<std::uint32_t>(path.send.size()),
                   static_cast<std::uint32_t>(path.receive.size())});
  for (const auto* side : {&path.send, &path.receive}) {
    for (const auto& use : *side) {
      const auto stage = static_cast<std::uint32_t>(use.stage);
      FABRICAST_ASSERT(stage < free.size(), "stage {} of {}", stage, free.size());
      const double cost = ps_per_byte[stage] * use.times;
      costs.push_back({stage, cost});
      reach = std::max(reach, static_cast<Time>(static_cast<double>(largest_packet) * cost) + 1);
    }
  }
  return HostPathId{static_cast<std::uint32_t>(paths.size() - 1)};
}

Time HostStages::pass(std::uint32_t first, std::uint32_t count, double bytes, Time not_before, Time now) {
  Time ready = not_before;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Time takes = static_cast<Time>(bytes * costs[i].ps_per_byte);
    auto& until = free[costs[i].stage];
    until = std::max({until, not_before, now - takes}) + takes;
    ready = std::max(ready, until);
  }
  return ready;
}

}  // namespace fabricast::packet
