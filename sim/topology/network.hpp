// SPDX-License-Identifier: Apache-2.0
// Routes through the network: minimal hops, dimension order on a torus, or up-down. Among equal-cost links Ethernet
// picks by a hash of the flow, InfiniBand by destination modulo, as its subnet managers do on fat trees: that keeps
// shifts free of collisions. Distances to a switch are found by breadth-first search when first needed and kept; there
// is no table of pairs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

class Network {
 public:
  /// `ends`: 2 node numbers per cable (HCAs and switches numbered together); the cable's links are first_link + 2k
  /// (a to b) and first_link + 2k + 1. `coordinates[node]` is empty except on a torus of size `dimensions`.
  struct Options {
    std::vector<std::vector<int>> coordinates;
    std::vector<int> dimensions;
    std::vector<int> groups;  ///< per node; -1 outside a dragonfly
    std::vector<bool> is_switch;
    bool is_routed_by_destination = false;
    Routing routing = Routing::automatic;
  };
  Network(int num_nodes, std::vector<std::pair<int, int>> cables, int first_link, Options options);
  ~Network();

  /// Links from one node to another, or an empty list when there is no way (or both are the same).
  [[nodiscard]] std::vector<LinkId> route(int from, int to, std::uint64_t flow) const;
  [[nodiscard]] std::vector<std::vector<LinkId>> all_routes(int from, int to, std::size_t limit) const;
  /// Links after `arrived` on the way to node `to`; see Topology.
  [[nodiscard]] std::vector<LinkId> next_links(LinkId arrived, int to) const;
  [[nodiscard]] int next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const;
  /// The link from an HCA to the switch it is routed by, or -1.
  [[nodiscard]] LinkId uplink(int node) const;

 private:
  struct Edge {
    int to = 0;
    int link = 0;
  };
  [[nodiscard]] const std::vector<std::uint16_t>& distances_to(int target) const;
  [[nodiscard]] std::vector<Edge> next_edges(int at, int to, bool has_descended) const;
  [[nodiscard]] std::vector<Edge> next_in_dimension_order(int at, int to) const;
  [[nodiscard]] bool uses_dimension_order() const;
  [[nodiscard]] std::pair<int, int> ends_of(LinkId link) const;  ///< from, to
  [[nodiscard]] bool is_down(int from, int to) const {
    return order_[static_cast<std::size_t>(from)] < order_[static_cast<std::size_t>(to)];
  }
  [[nodiscard]] std::vector<std::uint16_t> minimal_distances(int target) const;
  [[nodiscard]] std::vector<std::uint16_t> up_down_distances(int target) const;
  [[nodiscard]] int changed_dimension(LinkId link) const;  ///< of a torus link between switches, or -1
  [[nodiscard]] bool wraps_around(LinkId link) const;
  void order_from(const std::vector<int>& tops);
  void choose_order();
  [[nodiscard]] bool reaches_everybody() const;
  static const Edge& by_destination(const std::vector<Edge>& next, std::uint64_t& destination);
  [[nodiscard]] int entry_of(int node) const;  ///< the switch an HCA hangs at, or itself

  std::vector<std::vector<Edge>> edges_;
  std::vector<std::pair<int, int>> cables_;
  int first_link_ = 0;
  std::vector<std::vector<int>> coordinates_;
  std::vector<int> dimensions_;
  std::vector<int> groups_;
  std::vector<bool> is_switch_;
  bool is_routed_by_destination_ = false;
  Routing routing_ = Routing::automatic;
  /// up_down: place of each node between the tops (0) and the edge; a link to a higher place goes down.
  std::vector<std::int64_t> order_;
  struct SwitchGraph;
  std::unique_ptr<SwitchGraph> graph_;  ///< switches only, for the searches
  /// Hops to a target per node; up_down: then, for packets that have descended, once more per node.
  mutable std::map<int, std::vector<std::uint16_t>> distances_;
};

}  // namespace fabricast::topology
