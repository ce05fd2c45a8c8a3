// SPDX-License-Identifier: Apache-2.0
// What a set of jobs asks of the fabric: which HCAs take part, how fast hosts drain, which queues flows share.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::engine {

/// A host limit this near to the fabric's own rate is not paced.
inline constexpr double k_near = 0.999;

/// All ends hang at a switch. Flows over a cable from HCA to HCA meet nobody and stay with the fluid rule.
bool is_on_fabric(const Topology& topology, const models::Flow& flow);

/// HCAs at the ends of flows on the fabric.
std::vector<DeviceId> hcas_on_fabric(const Topology& topology, const std::vector<Job>& jobs);

/// Payload bytes/s that the HCA's port carries after headers.
double payload_rate(const Topology& topology, const ParameterSet& parameters, DeviceId hca);

/// Bytes that one repeat of a round, and all jobs, send over the fabric.
double payload_of(const models::Node& round);
double payload_of(const std::vector<Job>& jobs);

/// Egress of a switch in one priority (-1 = the workload's) of job `job`.
struct SharedQueue {
  LinkId link;
  std::size_t job = 0;
  int priority = -1;
  DeviceId sender{-1};  ///< one of those that use it
  friend auto operator<=>(const SharedQueue&, const SharedQueue&) = default;
};

/// Queues by the number of pairs of HCAs that use them, most first; at most `limit`.
std::vector<SharedQueue> shared_queues(const Topology& topology, const std::vector<Job>& jobs, std::size_t limit);

/// Flows of a round by the distance from source to destination among the devices: libraries begin an exchange of all
/// with all at the next rank, so that not everybody sends to the first one first.
std::vector<std::size_t> starting_order(const Topology& topology, const models::Node& round);

/// Settings that hold for a whole simulation must not differ between workloads.
Diagnostics contradictions(const std::vector<const Workload*>& workloads, const FabricSpec& fabric,
                           FlowControl control);

/// whole x k / n, rounded down, for 0 <= k <= n.
inline std::int64_t part(std::int64_t whole, std::int64_t k, std::int64_t n) {
  return whole / n * k + whole % n * k / n;
}

}  // namespace fabricast::engine
