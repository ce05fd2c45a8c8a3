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

/// What flows that are active together ask of each link.
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
      for (const auto link : path->links) {
        if (topology.spread_of(link)) continue;
        auto& demand = demands[link];
        demand.rate += std::min(port, rates[f] * leg.times);
        demand.bytes += flows[f].bytes * leg.times;
        demand.sources.insert(leg.from);
      }
    }
  }
  return demands;
}

/// A round of a job, and when it is on its way.
struct Round {
  const models::Node* node = nullptr;
  const NodeTiming* timing = nullptr;
  Duration begin, end;

  [[nodiscard]] Duration begin_of(std::size_t flow) const { return begin + node->flows[flow].start; }
  [[nodiscard]] Duration end_of(std::size_t flow) const {
    const bool is_known = node->repeat == 1 && flow < timing->flow_ends.size() && timing->flow_ends[flow].ps > 0 &&
                          timing->flow_ends[flow] <= end - begin;
    return is_known ? begin + timing->flow_ends[flow] : end;
  }
};

class Search {
 public:
  Search(const ParameterSet& parameters, const models::Resources& resources)
      : resources_(resources),
        topology_(resources.topology()),
        switches_(topology_, parameters),
        packet_(largest_payload(topology_, parameters)) {}

  /// Rounds that overlap are looked at together, at every moment at which flows begin.
  std::optional<PacketDoubt> run(std::vector<Round> rounds) {
    std::ranges::stable_sort(rounds, {}, &Round::begin);
    for (std::size_t first = 0; first < rounds.size();) {
      auto last = first + 1;
      for (auto end = rounds[first].end; last < rounds.size() && rounds[last].begin < end; ++last)
        end = std::max(end, rounds[last].end);
      look_at(
          {rounds.begin() + static_cast<std::ptrdiff_t>(first), rounds.begin() + static_cast<std::ptrdiff_t>(last)});
      first = last;
    }
    return std::move(worst_);
  }

 private:
  void look_at(const std::vector<Round>& together) {
    std::set<Duration> moments;
    for (const auto& round : together)
      for (std::size_t f = 0; f < round.node->flows.size(); ++f) moments.insert(round.begin_of(f));
    if (together.size() == 1 && moments.size() == 1) return look_at_flows(together.front().node->flows);
    for (const auto moment : moments) {
      std::vector<models::Flow> active;
      for (const auto& round : together) {
        for (std::size_t f = 0; f < round.node->flows.size(); ++f)
          if (round.begin_of(f) <= moment && moment < round.end_of(f)) active.push_back(round.node->flows[f]);
      }
      look_at_flows(active);
    }
  }

  void look_at_flows(const std::vector<models::Flow>& flows) {
    for (const auto& [id, demand] : demands_of(resources_, flows)) {
      const auto link = topology_.link(id);
      judge(link, demand);
      judge_credits(link, demand);
    }
  }

  void judge(const Link& link, const Demand& demand) {
    const double ratio = demand.rate / link.bandwidth.bytes_per_s;
    if (demand.sources.size() < 2 || ratio < k_tolerance || !is_worse(ratio)) return;
    const auto threshold = threshold_of(switches_.of(topology_.device(link.from).type));
    const double queue = demand.bytes * (1 - 1 / std::max(1.0, ratio));
    if (queue <= threshold.bytes) return;
    worst_ = PacketDoubt{topology_.link_name(link.id), ratio, Bytes{range::whole(queue)}, threshold.name, 1, {}};
  }

  void judge_credits(const Link& link, const Demand& demand) {
    if (topology_.kind(link.to) != DeviceKind::network_switch) return;
    const auto& settings = switches_.of(link);
    if (settings.flow_control != FlowControl::credits || demand.bytes <= static_cast<double>(settings.vl_buffer.value))
      return;
    const auto trip = credit_round_trip(topology_, settings, link, packet_);
    const double ratio = std::min(demand.rate / link.bandwidth.bytes_per_s, 1.0) / trip.share;
    if (ratio < k_tolerance || !is_worse(ratio)) return;
    worst_ = PacketDoubt{topology_.link_name(link.id), ratio, {}, "", trip.share, settings.vl_buffer};
  }

  [[nodiscard]] bool is_worse(double ratio) const { return !worst_ || ratio > worst_->oversubscription; }

  const models::Resources& resources_;
  const Topology& topology_;
  SwitchSettings switches_;
  Bytes packet_;
  std::optional<PacketDoubt> worst_;
};

}  // namespace

std::string PacketDoubt::text() const {
  if (credit_share < 1)
    return fmt::format("credits for {} of buffer per lane let {} run at {:.0f} % of its rate", to_string(lane_buffer),
                       link, 100 * credit_share);
  return fmt::format("{} is asked for {:.1f} times its rate and queues up to {}, above {}", link, oversubscription,
                     to_string(queue), threshold);
}

std::optional<PacketDoubt> packet_doubt(const ParameterSet& parameters, const models::Resources& resources,
                                        const std::vector<Job>& jobs, const std::vector<OperationTiming>& timings) {
  if (lossless_settings(resources.topology(), parameters).flow_control == FlowControl::drop) return std::nullopt;
  std::vector<Round> rounds;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto& nodes = jobs[j].plan->program.nodes;
    for (std::size_t n = 0; n < nodes.size() && n < timings[j].nodes.size(); ++n) {
      const auto& one = timings[j].nodes[n];
      if (nodes[n].flows.empty() || one.end.ps < 0) continue;  // it never ran
      rounds.push_back({&nodes[n], &one, jobs[j].start + one.start, jobs[j].start + one.end});
    }
  }
  return Search(parameters, resources).run(std::move(rounds));
}

}  // namespace fabricast::engine
