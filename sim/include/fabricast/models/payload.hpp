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

/// Seconds per byte that a lone packet takes on `links` beyond its time on the narrowest: switches cut through to ports
/// no faster than the one a packet comes in by; for a faster one they wait for all of it. 0 where no link is faster
/// than the one before.
double whole_packet_wait(const Topology& topology, const std::vector<LinkId>& links);

/// Bytes on the wire of the first packet of a message of `bytes`, sent by an adapter of this type.
double first_frame(const Topology& topology, const ParameterSet& parameters, const std::string& type, double bytes);

/// What the result assumes of the packets of Ethernet adapters where the fabric names no `mtu`: one sentence per type,
/// of adapters with RDMA where there are any, else of all that are cabled.
std::vector<std::string> packet_assumptions(const Topology& topology, const ParameterSet& parameters);

}  // namespace fabricast::models
