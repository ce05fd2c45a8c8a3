// SPDX-License-Identifier: Apache-2.0
// What the packet engine simulates: hosts and switches, ports joined by links, and the equal-cost routes of every
// switch. Plain data: nothing here knows how a topology was described. A port is one end of one full-duplex link; a
// host's port is one HCA port and an end point of traffic. Build with add_switch(), add_host() and connect(), then fill
// `routing` (route_by_shortest_paths() or Routing::set), then hand it to Simulation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"
#include "packet/buffer.hpp"
#include "packet/transport.hpp"

namespace fabricast::packet {

enum class NodeId : std::uint32_t {};
enum class PortId : std::uint32_t {};

/// The number inside an identifier, for indexing the tables of Network and Results.
constexpr std::uint32_t index(NodeId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(PortId id) { return static_cast<std::uint32_t>(id); }

enum class NodeKind { host, packet_switch };

struct Node {
  NodeKind kind = NodeKind::host;
  std::uint32_t config = 0;  ///< index into Network::switch_configs or Network::hca_configs
  std::string name;          ///< as reports print it
  std::vector<PortId> ports;
};

/// One end of a link. Both ends of a link have the same rate and delay.
struct LinkEnd {
  NodeId node{};
  PortId peer{};
  Bandwidth rate;  ///< data rate after line coding
  Duration delay;  ///< propagation one way
  /// Headroom per lossless class at this end when it receives; none = the node's configuration, then
  /// worst_case_headroom().
  std::optional<Bytes> headroom;
  std::uint8_t unprotected = 0;  ///< a bit per class that the flow control does not act on here, whatever the node says
};

/// Equal-cost egress ports of each switch towards each switch that has hosts. The last hop, from that switch to the
/// host's port, is implied by the link.
class Routing {
 public:
  /// Sets the egress ports that `at` may use for hosts attached to `destination_switch`; replaces earlier ones.
  void set(NodeId at, NodeId destination_switch, std::vector<PortId> egress);

  /// The same for packets that came in by `arrival`, where that decides (routes that never go up again).
  void set_behind(PortId arrival, NodeId destination_switch, std::vector<PortId> egress);

  /// Those ports in the order given; empty when there is no route.
  [[nodiscard]] const std::vector<PortId>& candidates(NodeId at, NodeId destination_switch) const;
  [[nodiscard]] const std::vector<PortId>& candidates(NodeId at, NodeId destination_switch, PortId arrival) const;

 private:
  std::uint32_t group_for(std::vector<PortId> egress);

  std::vector<std::vector<PortId>> groups_{{}};
  std::vector<std::vector<std::uint32_t>> group_of_;                         ///< [switch][destination] -> groups_
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> behind_;  ///< {arrival, destination} -> groups_
};

struct Network {
  std::vector<SwitchConfig> switch_configs;
  std::vector<HcaConfig> hca_configs;
  std::vector<Node> nodes;
  std::vector<LinkEnd> ports;
  Routing routing;

  NodeId add_switch(std::string name, std::uint32_t config = 0);
  NodeId add_host(std::string name, std::uint32_t config = 0);

  /// Joins two nodes by a link; gives the port at `a`, then the port at `b`.
  std::pair<PortId, PortId> connect(NodeId a, NodeId b, Bandwidth rate, Duration delay);

  [[nodiscard]] const Node& node_of(PortId port) const { return nodes[index(ports[index(port)].node)]; }
  /// "leaf0 -> spine1", the direction in which `port` sends.
  [[nodiscard]] std::string link_name(PortId port) const;
};

/// All shortest paths (in hops), candidates in port order. Hosts never forward.
Routing route_by_shortest_paths(const Network& network);

/// Every reason why `network` cannot be simulated (errors), and headroom below worst_case_headroom() (warnings).
Diagnostics validate(const Network& network);

}  // namespace fabricast::packet
