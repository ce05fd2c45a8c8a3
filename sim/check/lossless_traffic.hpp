// SPDX-License-Identifier: Apache-2.0
// In which priorities packets of a scenario travel, and what PFC makes of them on the cables.
#pragma once

#include <set>
#include <string>

#include "fabricast/lossless.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::check {

/// "100 Gb/s".
std::string gigabits(Bandwidth rate);

/// Packets of the scenario choose their ports one by one. Its workloads share the fabric's routing.
bool chooses_per_packet(const FabricSpec& fabric, const Scenario& scenario);

/// Priorities that packets may have: of each workload, flow and port group of VMs, and of congestion notifications.
/// Without a scenario: all that a port protects.
std::set<int> priorities_that_travel(const Topology& topology, const LosslessSettings& settings,
                                     const Scenario* scenario);

/// True when no cable of the fabric protects `priority`.
bool is_lossy_everywhere(const Topology& topology, const LosslessSettings& settings, int priority);

/// Cables whose two ends agree that `priority` is lossy: "leaf0 - n3.hca0 (and 2 others)". Empty = none. Where the ends
/// disagree is said elsewhere.
std::string agreed_lossy_cables(const Topology& topology, const LosslessSettings& settings, int priority);

}  // namespace fabricast::check
