// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_doubt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "engine/host_limits.hpp"
#include "fabricast/lossless.hpp"

namespace fabricast::engine {

namespace {

/// Demand above the rate by less is rounding.
constexpr double k_tolerance = 1.01;

struct Threshold {
  double bytes = 0;
  std::string name;
};

Threshold threshold_of(const LosslessSettings& settings) {
  if (settings.flow_control == FlowControl::credits)
    return {static_cast<double>(settings.vl_buffer.value),
            fmt::format("{}, where credits run out", to_string(settings.vl_buffer))};
  if (settings.is_ecn_on)
    return {static_cast<double>(settings.ecn_min.value),
            fmt::format("{}, where ECN marks", to_string(settings.ecn_min))};
  const double pause = settings.is_static
                           ? static_cast<double>(settings.xoff.value)
                           : static_cast<double>(settings.shared_buffer.value) * settings.alpha / (1 + settings.alpha);
  return {pause, fmt::format("{}, where PFC pauses", to_string(Bytes{range::whole(pause)}))};
}

struct Demand {
  double rate = 0;
  double bytes = 0;
  std::set<DeviceId> sources;
};

/// What the flows of one round ask of each link behind a switch.
std::map<LinkId, Demand> demands_of(const models::Resources& resources, const std::vector<models::Flow>& flows) {
  const auto& topology = resources.topology();
  const auto rates = host_rates(resources, flows);
  std::map<DeviceId, double> legs_of_source;
  for (const auto& flow : flows) {
    for (const auto& leg : flow.legs) legs_of_source[leg.from] += leg.times;
  }
  std::map<LinkId, Demand> demands;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const auto& leg : flows[f].legs) {
      const auto path = topology.path_between_hcas(leg.from, leg.to, leg.flow);
      if (!path || path->links.empty() || leg.is_tcp) continue;
      const double uplink = topology.link_bandwidth(path->links.front()).bytes_per_s;
      const double port = uplink * leg.times / legs_of_source[leg.from];
      for (std::size_t i = 1; i < path->links.size(); ++i) {
        if (topology.spread_of(path->links[i])) continue;
        auto& demand = demands[path->links[i]];
        demand.rate += std::min(port, rates[f] * leg.times);
        demand.bytes += flows[f].bytes * leg.times;
        demand.sources.insert(leg.from);
      }
    }
  }
  return demands;
}

}  // namespace

std::optional<PacketDoubt> packet_doubt(const ParameterSet& parameters, const models::Resources& resources,
                                        const std::vector<Job>& jobs) {
  const auto& topology = resources.topology();
  const auto settings = lossless_settings(topology, parameters);
  if (settings.flow_control == FlowControl::drop) return std::nullopt;
  const auto threshold = threshold_of(settings);
  std::optional<PacketDoubt> worst;
  for (const auto& job : jobs) {
    for (const auto& round : job.plan->program.nodes) {
      for (const auto& [link, demand] : demands_of(resources, round.flows)) {
        const double ratio = demand.rate / topology.link_bandwidth(link).bytes_per_s;
        const double queue = demand.bytes * (1 - 1 / std::max(1.0, ratio));
        if (demand.sources.size() < 2 || ratio < k_tolerance || queue <= threshold.bytes) continue;
        if (worst && ratio <= worst->oversubscription) continue;
        worst = PacketDoubt{topology.link_name(link), ratio, Bytes{range::whole(queue)}, threshold.name};
      }
    }
  }
  return worst;
}

}  // namespace fabricast::engine
