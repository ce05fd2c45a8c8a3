// SPDX-License-Identifier: Apache-2.0
// A topology as the packet engine sees it: HCAs, switches, cables, and the settings of fabricast/lossless.hpp.
// Intra-host links stay outside: engine/host_paths.hpp.
#pragma once

#include <vector>

#include "fabricast/lossless.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"
#include "packet/network.hpp"

namespace fabricast::engine {

struct PacketFabric {
  packet::Network network;
  std::vector<packet::PortId> port_of_link;  ///< [link - first network link]: the port that sends over it
  int first_link = 0;

  [[nodiscard]] packet::PortId sender(LinkId link) const {
    return port_of_link[static_cast<std::size_t>(link.value - first_link)];
  }
};

struct PacketFabricInput {
  const Topology& topology;
  const ParameterSet& parameters;
  const TransportSpec& transport;
  std::vector<DeviceId> hcas;  ///< that take part
};

/// True when senders run DCQCN: asked for, or automatic on Ethernet switches that mark.
bool uses_dcqcn(const LosslessSettings& settings, const TransportSpec& transport);

PacketFabric make_packet_fabric(const PacketFabricInput& input);

}  // namespace fabricast::engine
