// SPDX-License-Identifier: Apache-2.0
// Routes through the network: minimal hops, dimension order on a torus. Among equal-cost links Ethernet picks by a hash
// of the flow, InfiniBand by destination modulo, as its subnet managers do on fat trees: that keeps shifts free of
// collisions. Distances to a switch are found by breadth-first search when first needed and kept; there is no table of
// pairs.
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
  Network(int num_nodes, const std::vector<std::pair<int, int>>& cables, int first_link,
          std::vector<std::vector<int>> coordinates, std::vector<int> dimensions, std::vector<bool> is_switch,
          bool is_routed_by_destination);
  ~Network();

  /// Links from one node to another, or an empty list when there is no way (or both are the same).
  [[nodiscard]] std::vector<LinkId> route(int from, int to, std::uint64_t flow) const;
  [[nodiscard]] std::vector<std::vector<LinkId>> all_routes(int from, int to, std::size_t limit) const;

 private:
  struct Edge {
    int to = 0;
    int link = 0;
  };
  [[nodiscard]] const std::vector<std::uint16_t>& distances_to(int target) const;
  [[nodiscard]] std::vector<Edge> next_edges(int at, int to, const std::vector<std::uint16_t>& distance) const;
  static const Edge& by_destination(const std::vector<Edge>& next, std::uint64_t& destination);
  [[nodiscard]] int entry_of(int node) const;  ///< the switch an HCA hangs at, or itself

  std::vector<std::vector<Edge>> edges_;
  std::vector<std::vector<int>> coordinates_;
  std::vector<int> dimensions_;
  std::vector<bool> is_switch_;
  bool is_routed_by_destination_ = false;
  struct SwitchGraph;
  std::unique_ptr<SwitchGraph> graph_;  ///< switches only, for the searches
  mutable std::map<int, std::vector<std::uint16_t>> distances_;
};

}  // namespace fabricast::topology
