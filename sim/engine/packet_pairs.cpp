// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace fabricast::engine {

int PacketPairs::priority_of(std::size_t job, int flow_priority, DeviceId sender) const {
  if (has_lane_rule(topology_, settings_)) return 0;  // where routes start
  return priority_in_use(topology_, settings_, sender, workloads_[job]->transport.priority,
                         flow_priority < 0 ? std::nullopt : std::optional(flow_priority));
}

const std::vector<packet::QueuePairId>& PacketPairs::of(packet::Simulation& simulation, std::size_t job,
                                                        const models::Flow& flow, const models::Leg& leg) {
  const int priority = priority_of(job, flow.priority, leg.from);
  auto& pairs = pairs_[{job, leg.from, leg.to, leg.flow, priority}];
  if (!pairs.empty()) return pairs;
  const auto pair = make(job, leg, priority);
  auto name = flow.name;
  if (name.empty()) name = fmt::format("{} -> {}", topology_.device(leg.from).name, topology_.device(leg.to).name);
  for (int q = 0; q < std::max(1, workloads_[job]->queue_pairs); ++q) {
    pairs.push_back(simulation.add_queue_pair(pair));
    flow_names_.push_back(name);
  }
  return pairs;
}

packet::QueuePair PacketPairs::make(std::size_t job, const models::Leg& leg, int priority) const {
  packet::QueuePair pair;
  const auto there = route_of(leg.from, leg.to, leg.flow);
  pair.source = fabric_.sender(there.front());
  pair.destination = fabric_.sender(topology_.reverse(there.back()));
  pair.traffic_class = priority;
  if (packet_routing(topology_.spec().fabric, workloads_[0]->transport.routing) == "ecmp") {
    pair.route = ports_of(there);
    const auto back = way_back(there, route_of(leg.to, leg.from, leg.flow));
    pair.reverse_route = ports_of(back);
    pair.lanes = lanes_of(there);
    pair.reverse_lanes = lanes_of(back);
  }
  if (workloads_[job]->transport.verb == "read") {
    std::swap(pair.source, pair.destination);
    std::swap(pair.route, pair.reverse_route);
    std::swap(pair.lanes, pair.reverse_lanes);
  }
  return pair;
}

/// Virtual lanes from the first switch on, where routes change them on their way (torus, dragonfly); else none.
std::vector<std::uint8_t> PacketPairs::lanes_of(const std::vector<LinkId>& links) const {
  std::vector<std::uint8_t> lanes;
  if (!has_lane_rule(topology_, settings_)) return lanes;
  int lane = 0;
  for (std::size_t i = 1; i < links.size(); ++i) {
    lane = topology_.next_lane(links[i - 1], lane, links[i], settings_.virtual_lanes);
    lanes.push_back(static_cast<std::uint8_t>(lane));
  }
  return lanes;
}

std::vector<LinkId> PacketPairs::route_of(DeviceId from, DeviceId to, std::uint64_t flow) const {
  const auto path = topology_.path_between_hcas(from, to, flow);
  FABRICAST_ASSERT(path.has_value(), "no route for a leg of a flow");
  return path->links;
}

/// Acknowledgements take the fabric's own route back, where that joins the same two ports; else a way between these
/// ports by the fabric's rules.
std::vector<LinkId> PacketPairs::way_back(const std::vector<LinkId>& there, std::vector<LinkId> back) const {
  const auto first = topology_.reverse(there.back());
  const auto last = topology_.reverse(there.front());
  if (back.front() == first && back.back() == last) return back;
  back = {first};
  if (there.size() == 1) return back;
  const auto goal = topology_.link(last).from;
  while (topology_.link(back.back()).to != goal) {
    const auto next = topology_.next_network_links(back.back(), goal);
    FABRICAST_ASSERT(!next.empty(), "no way back to {}", topology_.device(goal).name);
    back.push_back(next.front());
  }
  back.push_back(last);
  return back;
}

/// Egress ports from the first switch on.
std::vector<packet::PortId> PacketPairs::ports_of(const std::vector<LinkId>& links) const {
  std::vector<packet::PortId> ports;
  for (std::size_t i = 1; i < links.size(); ++i) ports.push_back(fabric_.sender(links[i]));
  return ports;
}

}  // namespace fabricast::engine
