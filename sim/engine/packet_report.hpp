// SPDX-License-Identifier: Apache-2.0
// Numbers of the packet engine to a report with names.
#pragma once

#include <string>
#include <vector>

#include "fabricast/fabric_report.hpp"
#include "fabricast/result.hpp"
#include "fabricast/topology.hpp"
#include "packet/statistics.hpp"

namespace fabricast::engine {

/// `flow_names[i]` names queue pair i.
FabricReport make_report(const packet::Network& network, const packet::Results& results,
                         const std::vector<std::string>& flow_names);

/// What a packet run of `workload` takes for granted, in words. `has_tcp`: something of it goes by TCP.
std::vector<std::string> assumptions_of_packets(const Topology& topology, const WorkloadPrediction& workload,
                                                bool has_tcp);

}  // namespace fabricast::engine
