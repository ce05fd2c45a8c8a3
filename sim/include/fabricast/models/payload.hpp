// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// Payload in what packets of an adapter of this type take on the fabric: MTU / (MTU + header); 1 when its type does
/// not say.
double payload_share(const Topology& topology, const ParameterSet& parameters, const std::string& type);

/// What the result assumes of the packets of Ethernet adapters where the fabric names no `mtu`: one sentence per type,
/// of adapters with RDMA where there are any, else of all that are cabled.
std::vector<std::string> packet_assumptions(const Topology& topology, const ParameterSet& parameters);

}  // namespace fabricast::models
