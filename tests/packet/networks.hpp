// SPDX-License-Identifier: Apache-2.0
// Small networks and traffic patterns for the tests of the packet engine.
#pragma once

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "packet/headroom.hpp"
#include "packet/network.hpp"
#include "packet/simulation.hpp"

namespace fabricast::packet::testing {

using namespace fabricast::literals;

/// A switch and a transport by name.
struct Preset {
  const char* switch_name;
  const char* transport_name;
};
inline constexpr Preset k_htsim{"htsim-like", "htsim-like"};
inline constexpr Preset k_ns3{"hpcc-ns3-like", "hpcc-ns3-like"};
inline constexpr Preset k_spectrum{"spectrum", "rocev2"};
inline constexpr Preset k_infiniband{"infiniband", "infiniband"};

inline double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

inline double deviation(double value, double law) { return std::abs(value / law - 1); }

/// Fairness: 1 = all equal.
inline double jain(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return sum(values) * sum(values) / (static_cast<double>(values.size()) * squares);
}

/// An ASIC of the catalogue with the defaults that users get, at 100 Gb/s.
SwitchConfig catalogue_switch(const std::string& asic);

/// "spectrum" is Spectrum-1 of the catalogue; other names are presets of the engine.
inline SwitchConfig switch_by_name(const std::string& name) {
  const auto preset = switch_preset(name);
  return preset ? *preset : catalogue_switch(name == "spectrum" ? "spectrum-1" : name);
}

/// A network under construction: all links alike, hosts with one port.
struct Cluster {
  Network network;
  std::vector<PortId> hosts;  ///< their ports
  std::vector<NodeId> switches;
  Bandwidth rate = 100_Gbps;
  Duration delay = 1_us;

  Cluster(const std::string& switch_preset_name, const std::string& transport_preset_name) {
    network.switch_configs.push_back(switch_by_name(switch_preset_name));
    network.hca_configs.push_back({});
    network.hca_configs.back().transport = *transport_preset(transport_preset_name);
  }
  SwitchConfig& config() { return network.switch_configs.front(); }
  HcaConfig& hca() { return network.hca_configs.front(); }
  TransportConfig& transport() { return network.hca_configs.front().transport; }

  NodeId add_switch() {
    switches.push_back(network.add_switch("s" + std::to_string(switches.size())));
    return switches.back();
  }
  PortId add_host(NodeId leaf) {
    const auto host = network.add_host("h" + std::to_string(hosts.size()));
    hosts.push_back(network.connect(host, leaf, rate, delay).first);
    return hosts.back();
  }
  std::pair<PortId, PortId> join(NodeId a, NodeId b) { return network.connect(a, b, rate, delay); }
  void route() { network.routing = route_by_shortest_paths(network); }
};

/// `num_hosts` hosts on one switch.
inline Cluster star(int num_hosts, const std::string& switch_name, const std::string& transport_name,
                    Duration delay = 1_us) {
  Cluster cluster(switch_name, transport_name);
  cluster.delay = delay;
  const auto leaf = cluster.add_switch();
  for (int i = 0; i < num_hosts; ++i) cluster.add_host(leaf);
  cluster.route();
  return cluster;
}

/// 25 GB/s, two links of 0.5 us over one switch without a latency of its own, 4 KiB packets, no latency in the hosts.
inline Cluster ring_links(int ranks) {
  auto cluster = Cluster("spectrum", "rocev2");
  cluster.config().latency = {};
  cluster.config().cut_through = false;  // as in the published run
  cluster.config().buffer = 64_MiB;      // a switch with enough ports
  cluster.rate = 25_GBps;
  cluster.delay = Duration{500'000};
  const auto leaf = cluster.add_switch();
  for (int rank = 0; rank < ranks; ++rank) cluster.add_host(leaf);
  cluster.route();
  return cluster;
}

/// Payload rate that data packets of this transport reach on `rate`.
inline Bandwidth goodput_capacity(const TransportConfig& transport, Bandwidth rate) {
  const auto payload = static_cast<double>(transport.mtu.value);
  return rate * (payload / (payload + static_cast<double>((transport.header + transport.wire_gap).value)));
}

/// Payload that a flow delivered between two times, as a share of `capacity`.
class GoodputMeter {
 public:
  explicit GoodputMeter(Simulation& simulation) : simulation_(simulation) {}

  std::vector<double> shares(Duration from, Duration to, Bandwidth capacity) {
    simulation_.run(from);
    const auto before = simulation_.results().queue_pairs;
    simulation_.run(to);
    const auto after = simulation_.results().queue_pairs;
    std::vector<double> out;
    for (std::size_t i = 0; i < before.size(); ++i)
      out.push_back(static_cast<double>((after[i].delivered - before[i].delivered).value) / (to - from).seconds() /
                    capacity.bytes_per_s);
    return out;
  }

 private:
  Simulation& simulation_;
};

/// Posts a message that does not end within a test.
inline QueuePairId greedy(Simulation& simulation, PortId from, PortId to, int traffic_class = 3, Duration start = {}) {
  const auto queue_pair = simulation.add_queue_pair({from, to, traffic_class, {}, {}});
  simulation.post({queue_pair, 4_GiB, Verb::write, start, 0});
  return queue_pair;
}

/// Three-tier chain: receiver h0 and h1 on one leaf, h4 in the same pod, h8 and h12 in the other pod, one uplink
/// per level.
inline Cluster parking_lot(const Preset& preset) {
  Cluster cluster(preset.switch_name, preset.transport_name);
  for (int i = 0; i < 7; ++i) cluster.add_switch();
  const auto& s = cluster.switches;  // leaves 0-3, aggregation 4 and 5, core 6
  cluster.join(s[0], s[4]);
  cluster.join(s[1], s[4]);
  cluster.join(s[2], s[5]);
  cluster.join(s[3], s[5]);
  cluster.join(s[4], s[6]);
  cluster.join(s[5], s[6]);
  for (const int leaf : {0, 0, 1, 2, 3}) cluster.add_host(s[static_cast<std::size_t>(leaf)]);
  cluster.route();
  return cluster;
}

/// Three-tier fat tree of switches with k ports: k^3/4 hosts, full bisection.
inline Cluster fat_tree(int k, const Preset& preset) {
  Cluster cluster(preset.switch_name, preset.transport_name);
  const int half = k / 2;
  std::vector<NodeId> core;
  for (int i = 0; i < half * half; ++i) core.push_back(cluster.add_switch());
  for (int pod = 0; pod < k; ++pod) {
    std::vector<NodeId> aggregation;
    for (int i = 0; i < half; ++i) {
      aggregation.push_back(cluster.add_switch());
      for (int j = 0; j < half; ++j) cluster.join(aggregation.back(), core[static_cast<std::size_t>(i * half + j)]);
    }
    for (int i = 0; i < half; ++i) {
      const auto leaf = cluster.add_switch();
      for (const auto above : aggregation) cluster.join(leaf, above);
      for (int j = 0; j < half; ++j) cluster.add_host(leaf);
    }
  }
  cluster.route();
  return cluster;
}

struct VictimNetwork {
  Cluster cluster;
  PortId receiver{};
  PortId idle{};
  std::vector<PortId> senders;  ///< the victim, then the far ones, then the local ones
};

/// Leaf-spine with one trunk: `far` senders on leaf 0 and `local` ones on leaf 1 send to the receiver on leaf 1; the
/// victim goes from leaf 0 to an idle host on leaf 1 and shares only the trunk.
inline VictimNetwork victim_network(const Cluster& base, int far, int local) {
  VictimNetwork out{base, {}, {}, {}};
  auto& cluster = out.cluster;
  const auto leaf0 = cluster.add_switch();
  const auto spine = cluster.add_switch();
  const auto leaf1 = cluster.add_switch();
  cluster.join(leaf0, spine);
  cluster.join(spine, leaf1);
  out.receiver = cluster.add_host(leaf1);
  out.idle = cluster.add_host(leaf1);
  for (int i = 0; i <= far; ++i) out.senders.push_back(cluster.add_host(leaf0));
  for (int i = 0; i < local; ++i) out.senders.push_back(cluster.add_host(leaf1));
  cluster.route();
  return out;
}

/// A network with what is sent over it.
struct Traffic {
  Cluster cluster{"spectrum", "rocev2"};
  Options options;
  std::vector<QueuePair> queue_pairs;
  std::vector<Bandwidth> stages;     ///< inside hosts
  std::vector<HostPath> host_paths;  ///< from number 1 on
  std::vector<Message> messages;

  [[nodiscard]] Simulation simulation(bool shortcuts) const {
    auto wanted = options;
    wanted.shortcuts = shortcuts;
    Simulation out(cluster.network, wanted);
    for (const auto& queue_pair : queue_pairs) out.add_queue_pair(queue_pair);
    for (const auto rate : stages) out.add_stage(rate);
    for (const auto& path : host_paths) out.add_host_path(path);
    for (const auto& message : messages) out.post(message);
    return out;
  }
};

}  // namespace fabricast::packet::testing
