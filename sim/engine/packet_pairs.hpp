// SPDX-License-Identifier: Apache-2.0
// The queue pairs of a packet run: one set per job, pair of HCAs, route and priority, made at first use, with the
// topology's own routes and lanes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/packet_fabric.hpp"
#include "fabricast/lossless.hpp"
#include "fabricast/models/plan.hpp"
#include "fabricast/scenario.hpp"
#include "packet/simulation.hpp"

namespace fabricast::engine {

class PacketPairs {
 public:
  PacketPairs(const Topology& topology, const LosslessSettings& settings, const std::vector<const Workload*>& workloads,
              const PacketFabric& fabric)
      : topology_(topology), settings_(settings), workloads_(workloads), fabric_(fabric) {}

  /// A READ's initiator is the receiver of the data.
  const std::vector<packet::QueuePairId>& of(packet::Simulation& simulation, std::size_t job, const models::Flow& flow,
                                             const models::Leg& leg);
  /// Priority, or virtual lane where routes start, of a flow of job `job`.
  [[nodiscard]] int priority_of(std::size_t job, int flow_priority, DeviceId sender) const;
  /// Per queue pair, in the order they were made.
  [[nodiscard]] const std::vector<std::string>& flow_names() const { return flow_names_; }

 private:
  [[nodiscard]] packet::QueuePair make(std::size_t job, const models::Leg& leg, int priority) const;
  [[nodiscard]] std::vector<std::uint8_t> lanes_of(const std::vector<LinkId>& links) const;
  [[nodiscard]] std::vector<LinkId> route_of(DeviceId from, DeviceId to, std::uint64_t flow) const;
  [[nodiscard]] std::vector<LinkId> way_back(const std::vector<LinkId>& there, std::vector<LinkId> back) const;
  [[nodiscard]] std::vector<packet::PortId> ports_of(const std::vector<LinkId>& links) const;

  const Topology& topology_;
  const LosslessSettings& settings_;
  const std::vector<const Workload*>& workloads_;
  const PacketFabric& fabric_;
  std::map<std::tuple<std::size_t, DeviceId, DeviceId, std::uint64_t, int>, std::vector<packet::QueuePairId>> pairs_;
  std::vector<std::string> flow_names_;
};

}  // namespace fabricast::engine
