// SPDX-License-Identifier: Apache-2.0
// Doubts about a cluster that is described without faults: what is physically odd or will cost performance. Every entry
// is a warning with what was found, why it matters, and the fix. One entry per host group and kind, not per host.
#pragma once

#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

struct LoadedScenario;
struct LoadedTopology;

/// All that can be said without planning the workload: what loading warned of, and every check below.
Diagnostics check_all(const LoadedScenario& loaded);
Diagnostics check_all(const LoadedTopology& loaded);
/// Errors of its hosts' virtualization: such a VM does not power on or lacks its devices.
Diagnostics infeasible_hosts(const LoadedScenario& loaded);

Diagnostics check_topology(const Topology& topology, const ParameterSet& parameters);
/// What the hosts' virtualization cannot do (errors: `run` refuses them too) and what costs performance (warnings).
/// Each says why, the fix, and the source of the rule.
/// `types` say which protocol adapters and switches speak.
Diagnostics check_virtualization(const Topology& topology, const ParameterSet& parameters,
                                 const std::vector<DeviceType>& types);
/// Which features remain for the VMs of each host group: migration, snapshot, sharing, peer access, GPUDirect RDMA.
/// Empty without virtual hosts.
std::string virtual_features(const Topology& topology, const ParameterSet& parameters);
Diagnostics check_scenario(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters);
/// Rules of lossless fabrics: headroom, memory, packet sizes, classes, credits, deadlock. With a scenario, deadlock is
/// asked of the routes of its transport, and its traffic must travel in lossless priorities.
Diagnostics check_lossless(const Topology& topology, const ParameterSet& parameters,
                           const Scenario* scenario = nullptr);

/// The settings a lossless fabric ends up with and the headroom of each kind of port, as a table for people. Empty
/// without a `lossless:` block.
std::string describe_lossless(const Topology& topology, const ParameterSet& parameters,
                              const Scenario* scenario = nullptr);

}  // namespace fabricast
