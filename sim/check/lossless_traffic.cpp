// SPDX-License-Identifier: Apache-2.0
#include "check/lossless_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace fabricast::check {

namespace {

std::set<int> protected_somewhere(const LosslessSettings& settings) {
  std::set<int> out(settings.pfc.begin(), settings.pfc.end());
  for (const auto& entry : settings.port_pfc) out.insert(entry.second.begin(), entry.second.end());
  return out;
}

bool is_paused(const std::vector<int>& ascending, int priority) {
  return std::ranges::binary_search(ascending, priority);
}

}  // namespace

std::string gigabits(Bandwidth rate) { return fmt::format("{:g} Gb/s", rate.bytes_per_s * 8e-9); }

bool chooses_per_packet(const FabricSpec& fabric, const Scenario& scenario) {
  return !scenario.workloads.empty() && packet_routing(fabric, scenario.workloads.front().transport.routing) != "ecmp";
}

std::set<int> priorities_that_travel(const Topology& topology, const LosslessSettings& settings,
                                     const Scenario* scenario) {
  if (scenario == nullptr) return protected_somewhere(settings);
  std::set<std::pair<std::optional<int>, std::optional<int>>> asked;  // by workloads, by their flows
  for (const auto& workload : scenario->workloads) {
    asked.insert({workload.transport.priority, std::nullopt});
    for (const auto& flow : workload.traffic.flows) asked.insert({workload.transport.priority, flow.priority});
  }
  std::set<int> out;
  if (settings.is_ecn_on) out.insert(settings.cnp_priority);
  for (const auto hca : topology.devices(DeviceKind::hca)) {
    for (const auto& [workload, flow] : asked) out.insert(priority_in_use(topology, settings, hca, workload, flow));
  }
  return out;
}

bool is_lossy_everywhere(const Topology& topology, const LosslessSettings& settings, int priority) {
  if (settings.port_pfc.empty()) return !is_paused(settings.pfc, priority);
  const auto num_links = topology.num_links() - topology.first_network_link();
  return static_cast<int>(lossy_links(topology, settings, priority).size()) == num_links;
}

std::string agreed_lossy_cables(const Topology& topology, const LosslessSettings& settings, int priority) {
  std::string first;
  int others = -1;
  for (int l = topology.first_network_link(); l < topology.num_links(); l += 2) {
    const auto link = topology.link(LinkId{l});
    if (is_paused(port_priorities(topology, settings, link.from, link.to), priority)) continue;
    if (is_paused(port_priorities(topology, settings, link.to, link.from), priority)) continue;
    if (first.empty()) first = fmt::format("{} - {}", topology.device(link.from).name, topology.device(link.to).name);
    ++others;
  }
  return others > 0 ? fmt::format("{} (and {} others)", first, others) : first;
}

}  // namespace fabricast::check
