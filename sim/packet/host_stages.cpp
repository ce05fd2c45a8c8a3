// SPDX-License-Identifier: Apache-2.0
// What packets pass inside hosts: stages that serve one packet after the other. A stage that is free may have worked on
// a packet since one packet time ago, because hosts read ahead and the bytes of a packet come in one by one:
//
//   free' = max(free, not_before, now - b / r) + b / r, for b payload bytes and a stage of rate r;   ready = max over
//   stages
//
// So a stage alone lets a stream through at r, a stage shared by n at r / n while they are n. A sender's packet begins
// on the wire so that it ends when its last byte is there.
#include <algorithm>

#include "packet/engine.hpp"

namespace fabricast::packet {

StageId Simulation::Engine::add_stage(Bandwidth rate) {
  FABRICAST_ASSERT(rate.bytes_per_s > 0, "a stage of {} bytes/s", rate.bytes_per_s);
  stage_free.push_back(k_long_ago);
  stage_ps_per_byte.push_back(1e12 / rate.bytes_per_s);
  return StageId{static_cast<std::uint32_t>(stage_free.size() - 1)};
}

HostPathId Simulation::Engine::add_host_path(const HostPath& path) {
  trains.disturb();
  std::int64_t most = 0;
  for (const auto& hca : network.hca_configs) most = std::max(most, hca.transport.mtu.value);
  host_paths.push_back({static_cast<std::uint32_t>(stage_costs.size()), static_cast<std::uint32_t>(path.send.size()),
                        static_cast<std::uint32_t>(path.receive.size())});
  for (const auto* side : {&path.send, &path.receive}) {
    for (const auto& use : *side) {
      const auto stage = static_cast<std::uint32_t>(use.stage);
      FABRICAST_ASSERT(stage < stage_free.size(), "stage {} of {}", stage, stage_free.size());
      const double ps_per_byte = stage_ps_per_byte[stage] * use.times;
      stage_costs.push_back({stage, ps_per_byte});
      host_reach = std::max(host_reach, static_cast<Time>(static_cast<double>(most) * ps_per_byte) + 1);
    }
  }
  return HostPathId{static_cast<std::uint32_t>(host_paths.size() - 1)};
}

// When `bytes` have passed the stages; each is busy with them from now on.
Time Simulation::Engine::pass_stages(std::uint32_t first, std::uint32_t count, double bytes, Time not_before) {
  Time ready = not_before;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Time takes = static_cast<Time>(bytes * stage_costs[i].ps_per_byte);
    auto& free = stage_free[stage_costs[i].stage];
    free = std::max({free, not_before, now - takes}) + takes;
    ready = std::max(ready, free);
  }
  return ready;
}

// When the queue pair's next packet may begin on the wire. Its host fetches it once.
Time Simulation::Engine::host_due(std::uint32_t id) {
  auto& state = queue_pairs[id];
  const auto& message = messages[state.sending];
  const auto& path = host_paths[message.path];
  const std::int64_t payload = next_payload(state);
  if (path.sending == 0 || payload <= 0) return now;
  if (!state.has_host_packet) {
    state.has_host_packet = true;
    state.host_ready = pass_stages(path.first, path.sending, static_cast<double>(payload), message.start);
  }
  const auto& transport = transport_of(state.source);
  const auto bytes = static_cast<std::uint32_t>(payload + transport.header.value + transport.wire_gap.value);
  return state.host_ready - wire_time(ports[state.source], bytes);
}

}  // namespace fabricast::packet
