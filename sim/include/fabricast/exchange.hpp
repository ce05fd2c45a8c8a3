// SPDX-License-Identifier: Apache-2.0
// Pictures of a topology: a text tree, Graphviz DOT, and SVG drawn here.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

/// Host groups with their PCIe tree, NVLinks and distances, then the fabric. Equal hosts are shown once.
std::string topology_text(const Topology& topology);
/// Graphviz: one cluster per host, edges sorted. `is_collapsed`: one node per host.
std::string topology_dot(const Topology& topology, bool is_collapsed);
/// Switches by tier, plane or group above hosts with their PCIe tree. At most two hosts of a group are drawn, and every
/// switch that they are cabled to; no two boxes overlap.
/// `use`: share of its rate in use of the links from one device to another; they are coloured by it.
using LinkShares = std::map<std::pair<DeviceId, DeviceId>, double>;
std::string topology_svg(const Topology& topology, const LinkShares& use = {});

}  // namespace fabricast
