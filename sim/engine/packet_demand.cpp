// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_demand.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace fabricast::engine {

namespace {

using models::Flow;
using models::Leg;

template <typename Visit>
void for_each_flow(const Topology& topology, const std::vector<Job>& jobs, const Visit& visit) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (const auto& round : jobs[j].plan->program.nodes) {
      for (const auto& flow : round.flows) {
        if (is_on_fabric(topology, flow)) visit(j, flow);
      }
    }
  }
}

}  // namespace

double payload_rate(const Topology& topology, const ParameterSet& parameters, DeviceId hca) {
  const auto type = topology.device(hca).type;
  const double payload = packet_payload(topology.spec().fabric, parameters, type);
  const double mtu = payload > 0 ? payload : 4096;
  const auto ups = topology.uplinks(hca);
  const double rate = ups.empty() ? 0 : topology.link_bandwidth(ups.front()).bytes_per_s;
  return rate * mtu / (mtu + parameters.value_or(type, "packet_header", 30));
}

bool is_on_fabric(const Topology& topology, const Flow& flow) {
  return !flow.legs.empty() && std::all_of(flow.legs.begin(), flow.legs.end(), [&](const Leg& leg) {
    const auto path = topology.path_between_hcas(leg.from, leg.to, leg.flow);
    return path && path->links.size() > 1;
  });
}

std::vector<DeviceId> hcas_on_fabric(const Topology& topology, const std::vector<Job>& jobs) {
  std::set<DeviceId> used;
  for_each_flow(topology, jobs, [&](std::size_t, const Flow& flow) {
    for (const auto& leg : flow.legs) {
      used.insert(leg.from);
      used.insert(leg.to);
    }
  });
  return {used.begin(), used.end()};
}

double payload_of(const models::Node& round) {
  double bytes = 0;
  for (const auto& flow : round.flows) {
    for (const auto& leg : flow.legs) bytes += flow.bytes * leg.times;
  }
  return bytes;
}

double payload_of(const std::vector<Job>& jobs) {
  double bytes = 0;
  for (const auto& job : jobs) {
    for (const auto& round : job.plan->program.nodes) bytes += payload_of(round) * static_cast<double>(round.repeat);
  }
  return bytes;
}

std::vector<std::size_t> starting_order(const Topology& topology, const models::Node& round) {
  std::vector<std::size_t> order(round.flows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto distance = [&](std::size_t f) {
    if (round.flows[f].legs.empty()) return 0;
    const auto& leg = round.flows[f].legs.front();
    return (leg.to.value - leg.from.value + topology.num_devices()) % topology.num_devices();
  };
  std::ranges::stable_sort(order, {}, distance);
  return order;
}

std::vector<SharedQueue> shared_queues(const Topology& topology, const std::vector<Job>& jobs, std::size_t limit) {
  std::map<SharedQueue, std::set<std::pair<DeviceId, DeviceId>>> users;
  for_each_flow(topology, jobs, [&](std::size_t job, const Flow& flow) {
    for (const auto& leg : flow.legs) {
      const auto path = topology.path_between_hcas(leg.from, leg.to, leg.flow);
      for (std::size_t i = 1; path && i < path->links.size(); ++i)
        users[{path->links[i], job, flow.priority}].insert({leg.from, leg.to});
    }
  });
  std::vector<std::pair<std::size_t, SharedQueue>> order;
  for (const auto& [queue, who] : users) order.emplace_back(who.size(), queue);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SharedQueue> out;
  for (const auto& [count, queue] : order) {
    if (out.size() >= limit) break;
    out.push_back(queue);
    out.back().sender = users.at(queue).begin()->first;
  }
  return out;
}

Diagnostics contradictions(const std::vector<const Workload*>& workloads, const FabricSpec& fabric,
                           FlowControl control) {
  Diagnostics faults;
  for (const auto* one : workloads) {
    const auto& first = workloads[0]->transport;
    const auto& own = one->transport;
    if (control == FlowControl::credits && own.congestion_control == "dcqcn") {
      auto fault = make_error_at(
          one->location, "'congestion_control: dcqcn' does nothing in a fabric with credits: nothing marks packets",
          "leave `congestion_control` out; InfiniBand's own is not modelled");
      faults.push_back(std::move(fault));
    }
    if (packet_routing(fabric, own.routing) == packet_routing(fabric, first.routing) &&
        own.congestion_control == first.congestion_control && own.window == first.window)
      continue;
    faults.push_back(make_error_at(one->location, "workloads that run together have different transports",
                                   "give all of them the same routing, congestion_control and window"));
  }
  return faults;
}

}  // namespace fabricast::engine
