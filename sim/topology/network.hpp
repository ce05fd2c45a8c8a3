// SPDX-License-Identifier: Apache-2.0
// Routes through the network: fewest switches; dimension order on a torus; at most one global cable on a dragonfly;
// up-down when asked for.
// Among equal-cost links Ethernet picks by a hash of the flow, InfiniBand by destination modulo, as its subnet managers
// do on fat trees: that keeps shifts free of collisions. Distances to a switch are found by breadth-first search when
// first needed and kept while they are few; there is no table of pairs.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

/// Hops between devices that no cable joins.
inline constexpr auto k_unreachable = std::numeric_limits<std::uint16_t>::max();

/// The network as a graph of nodes: HCAs from 0, then switches.
struct NetworkPlan {
  int num_hcas = 0;
  int num_switches = 0;
  std::vector<std::pair<int, int>> cables;  ///< ends; cable k has the links first_link + 2k (a to b) and + 2k + 1
  int first_link = 0;
  bool is_routed_by_destination = false;
  std::vector<int> dimensions;                ///< torus: routers per dimension, else empty
  std::vector<std::vector<int>> coordinates;  ///< torus: [switch] -> place; empty for switches added by hand
  int num_routers = 0;                        ///< dragonfly: switches from 0 that are routers, group after group
  int routers_per_group = 0;                  ///< dragonfly, else 0
  Routing routing = Routing::automatic;
  std::vector<bool> failed;  ///< [cable] -> carries nothing; empty = none
};

class Network {
 public:
  explicit Network(NetworkPlan plan);
  ~Network();

  /// The same network with these cables dead; ports keep their numbers.
  [[nodiscard]] std::unique_ptr<Network> without(const std::vector<int>& cables) const;

  [[nodiscard]] int node_of_switch(int number) const { return plan_.num_hcas + number; }
  [[nodiscard]] bool has_cable(int node) const { return !edges_of(node).empty(); }
  /// Links from one HCA to another, or an empty list when there is no way (or both are the same).
  [[nodiscard]] std::vector<LinkId> route(int from, int to, std::uint64_t flow) const;
  [[nodiscard]] std::vector<std::vector<LinkId>> all_routes(int from, int to, std::size_t limit) const;
  /// Links after `arrived` on the way to HCA or switch `to`; see Topology.
  [[nodiscard]] std::vector<LinkId> next_links(LinkId arrived, int to) const;
  [[nodiscard]] int next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const;
  /// The switch from which on the way to any other HCA is that of all HCAs that hang on it: where routes go by
  /// destination, of an HCA with one cable.
  [[nodiscard]] std::optional<int> common_start(int hca) const;
  /// The links from an HCA to its switches.
  [[nodiscard]] std::vector<LinkId> uplinks(int node) const;

 private:
  struct Edge {
    int to = 0;
    int link = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  using Edges = std::vector<Edge>;
  /// A way out of the sending HCA and a way into the receiving one.
  struct Ends {
    Edge out;  ///< to the first switch
    Edge in;   ///< `to` is the last switch, `link` leads from it to the HCA
  };
  /// Ways on from a switch, and the same by the switch they lead to (in the order of the first cable to each).
  struct Step {
    Edges all;
    std::vector<Edges> by_neighbour;
  };
  class Chooser;

  [[nodiscard]] bool is_switch(int node) const { return node >= plan_.num_hcas; }
  [[nodiscard]] int part_of(int node) const { return part_[static_cast<std::size_t>(node - plan_.num_hcas)]; }
  [[nodiscard]] const Edges& edges_of(int node) const { return edges_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] bool is_failed(std::size_t cable) const { return !plan_.failed.empty() && plan_.failed[cable]; }
  void remove_failed();
  void number_by_port();
  void collect_global_cables();
  void label_parts();
  [[nodiscard]] const std::vector<std::uint16_t>& distances_to(int target) const;
  [[nodiscard]] Edges direct_edges(int from, int to) const;
  [[nodiscard]] std::vector<Ends> nearest_ends(int from, int to) const;
  [[nodiscard]] Edges next_edges(int at, int to, bool has_descended) const;
  [[nodiscard]] static Step step_of(Edges edges);
  /// The same, kept while it is asked for.
  [[nodiscard]] const Step& next_step(int at, int to, bool has_descended) const;
  [[nodiscard]] Edges next_on_torus(int at, int to) const;
  [[nodiscard]] Edges next_on_dragonfly(int at, int to) const;
  [[nodiscard]] Edges next_by_distance(int at, int to) const;
  // up-down routing and lanes: network_order.cpp
  [[nodiscard]] Edges next_up_down(int at, int to, bool has_descended) const;
  [[nodiscard]] bool is_down(int from, int to) const { return order_of(from) < order_of(to); }
  [[nodiscard]] std::int64_t order_of(int node) const {
    return order_[static_cast<std::size_t>(node - plan_.num_hcas)];
  }
  [[nodiscard]] std::vector<std::uint16_t> up_down_distances(int target) const;
  [[nodiscard]] std::pair<int, int> ends_of(LinkId link) const;  ///< from, to
  [[nodiscard]] int changed_dimension(LinkId link) const;        ///< of a torus link between switches, or -1
  [[nodiscard]] bool wraps_around(LinkId link) const;
  void order_from(const std::vector<int>& tops);
  void choose_order();
  [[nodiscard]] bool reaches_everybody() const;
  [[nodiscard]] int group_of(int node) const;  ///< dragonfly group, -1 for anything but a router

  NetworkPlan plan_;
  std::vector<Edges> edges_;
  std::vector<int> port_number_;  ///< [HCA] -> number in port order: HCAs of one switch are consecutive
  std::vector<int> part_;         ///< [switch without the HCAs] -> connected part it belongs to
  struct SwitchGraph;
  std::unique_ptr<SwitchGraph> graph_;  ///< switches only, for the searches
  struct GlobalCable {
    int router = 0;  ///< in the first group of the pair
    Edge edge;       ///< to the router of the second
  };
  std::map<std::pair<int, int>, std::vector<GlobalCable>> global_cables_;  ///< dragonfly: by pair of groups
  /// [switch without the HCAs] -> hops to a target; up-down: while a packet may go up, then once more when it has gone
  /// down.
  mutable std::map<int, std::vector<std::uint16_t>> distances_;
  mutable std::vector<std::deque<Step>> steps_;  ///< [switch without the HCAs] -> different ones
  struct KnownStep {
    std::uint64_t key = ~std::uint64_t{};
    const Step* step = nullptr;
  };
  mutable std::vector<KnownStep> known_steps_;  ///< [key modulo size]; a later one takes the place of another
  /// up-down: place of each switch between the tops and the edge; a link to a higher place goes down.
  std::vector<std::int64_t> order_;
};

}  // namespace fabricast::topology
