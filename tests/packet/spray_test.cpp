// SPDX-License-Identifier: Apache-2.0
// Choices per packet: a permutation on a fabric that could carry it ends as if every flow were alone, in any shape and
// size; queue pairs take their ports in turn; adaptive routing keeps away from what is slow or stopped.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/packet/networks.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;
using fabricast::test::Random;

namespace {

/// A lane of what one port of an InfiniBand switch has, the shipped default; a permutation fills smaller ones.
Cluster with_whole_buffers(Cluster cluster) {
  cluster.config().buffer = 64_MiB;
  cluster.config().credits.lane_buffer = 64_KiB;
  cluster.transport().out_of_order = true;
  return cluster;
}

Cluster leaf_spine(const Preset& preset, std::uint64_t leaves, std::uint64_t spines, std::uint64_t hosts) {
  Cluster cluster(preset.switch_name, preset.transport_name);
  cluster.delay = 25_ns;  // 5 m
  std::vector<NodeId> above;
  for (std::uint64_t i = 0; i < spines; ++i) above.push_back(cluster.add_switch());
  for (std::uint64_t i = 0; i < leaves; ++i) {
    const auto leaf = cluster.add_switch();
    for (const auto spine : above) cluster.join(leaf, spine);
    for (std::uint64_t host = 0; host < hosts; ++host) cluster.add_host(leaf);
  }
  cluster.route();
  return with_whole_buffers(cluster);
}

std::vector<PortId> permutation(Random& random, const std::vector<PortId>& hosts) {
  auto to = hosts;
  const auto stays = [&] {
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (to[i] == hosts[i]) return true;
    return false;
  };
  while (stays())
    for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random.next(i)]);
  return to;
}

/// Every host sends `bytes` to the one of `to`; times of the flows as multiples of the time alone, ascending.
/// `queue_pairs`: over which the packets of one flow are dealt out.
std::vector<double> slowdowns(const Cluster& cluster, RoutingMode mode, std::uint64_t seed,
                              const std::vector<PortId>& to, Bytes bytes, std::int64_t queue_pairs = 1) {
  Options options;
  options.routing = mode;
  options.seed = seed;
  Simulation all(cluster.network, options);
  std::vector<double> out;
  for (std::size_t i = 0; i < to.size(); ++i) {
    for (std::int64_t q = 0; q < queue_pairs; ++q)
      all.post({all.add_queue_pair({cluster.hosts[i], to[i]}), Bytes{bytes.value / queue_pairs}});
    Simulation alone(cluster.network);
    alone.post({alone.add_queue_pair({cluster.hosts[i], to[i]}), bytes});
    alone.run();
    out.push_back(1 / alone.results().messages[0].delivered.seconds());
  }
  CHECK(all.run() == StopReason::finished);
  const auto results = all.results();
  std::vector<double> ends(to.size());
  for (std::size_t m = 0; m < results.messages.size(); ++m) {
    auto& end = ends[m / static_cast<std::size_t>(queue_pairs)];
    end = std::max(end, results.messages[m].delivered.seconds());
  }
  for (std::size_t i = 0; i < to.size(); ++i) out[i] *= ends[i];
  std::ranges::sort(out);
  CHECK(results.lossless_drops == 0);
  for (const auto& queue_pair : results.queue_pairs) CHECK(queue_pair.retransmitted == 0);
  return out;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

// As many hosts as uplinks, or fewer; one in four is a fat tree of three tiers.
Cluster random_fabric(Random& random, const Preset& preset) {
  if (random.next(4) == 0) return with_whole_buffers(fat_tree(random.next(2) == 0 ? 4 : 6, preset));
  const auto spines = 2 + random.next(11);
  const auto hosts = std::max<std::uint64_t>(2, spines - random.next(3));
  return leaf_spine(preset, 2 + random.next(5), spines, std::min(hosts, spines));
}

}  // namespace

TEST_CASE("a permutation on a fabric that could carry it ends as if every flow were alone, sprayed or adaptive" *
          doctest::test_suite("long")) {
  for (const auto& preset : {k_spectrum, k_infiniband}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Random random(seed);
      const auto cluster = random_fabric(random, preset);
      const auto to = permutation(random, cluster.hosts);
      const Bytes bytes{static_cast<std::int64_t>(400'000 + random.next(1'600'000))};
      for (const auto mode : {RoutingMode::spray, RoutingMode::adaptive}) {
        CAPTURE(preset.switch_name);
        CAPTURE(seed);
        CAPTURE(static_cast<int>(mode));
        const auto found = slowdowns(cluster, mode, seed, to, bytes);
        // A few packets of 100 or more wait for each other.
        CHECK(median(found) <= 1.06);
        CHECK(found.back() <= 1.12);
      }
    }
  }
}

// A random choice per packet: every packet a queue pair with a hashed route of its own.
TEST_CASE("spraying in turn and adaptive routing are no worse than a random choice per packet") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    Random random(seed);
    const auto cluster = leaf_spine(k_spectrum, 4, 4 + 2 * seed, 4 + 2 * seed);
    const auto to = permutation(random, cluster.hosts);
    const Bytes bytes{4096 * 240};
    const auto chance = slowdowns(cluster, RoutingMode::ecmp, seed, to, bytes, 240);
    for (const auto mode : {RoutingMode::spray, RoutingMode::adaptive}) {
      CAPTURE(static_cast<int>(mode));
      const auto found = slowdowns(cluster, mode, seed, to, bytes);
      CHECK(median(found) <= median(chance));
      CHECK(found.back() <= chance.back());
    }
  }
}

TEST_CASE("over a cycle every path of a sprayed queue pair carries one packet") {
  auto cluster = with_whole_buffers(fat_tree(6, k_spectrum));
  const auto& network = cluster.network;
  Options options;
  options.routing = RoutingMode::spray;
  for (const std::uint64_t seed : {1U, 2U}) {
    options.seed = seed;
    Simulation simulation(network, options);
    const auto pair = simulation.add_queue_pair({cluster.hosts.front(), cluster.hosts.back()});
    constexpr std::uint64_t cycles = 5;
    simulation.post({pair, Bytes{4096 * 9 * static_cast<std::int64_t>(cycles)}});  // 3 uplinks, 3 cores behind each
    simulation.run();
    const auto results = simulation.results();
    std::uint64_t cores = 0;
    for (std::uint32_t port = 0; port < network.ports.size(); ++port) {
      const auto sent = results.ports[port][3].sent_packets;
      const auto acknowledgements = results.delivered_packets / 16 + 1;
      if (sent <= acknowledgements) continue;  // only the way back of acknowledgements
      const bool is_host = network.node_of(PortId{port}).kind == NodeKind::host ||
                           network.node_of(network.ports[port].peer).kind == NodeKind::host;
      CAPTURE(network.link_name(PortId{port}));
      CHECK((sent == 9 * cycles || (!is_host && (sent % cycles <= acknowledgements))));
      const auto below = sent - sent % cycles;
      if (below == cycles) ++cores;
    }
    CHECK(cores == 2 * 9);  // up to nine cores, and down
  }
}

TEST_CASE("queue pairs begin their turns in different places, and the seed decides where") {
  const auto cluster = leaf_spine(k_spectrum, 2, 8, 8);
  const auto first_ports = [&](std::uint64_t seed) {
    Options options;
    options.routing = RoutingMode::spray;
    options.seed = seed;
    Simulation simulation(cluster.network, options);
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 8; j < 16; ++j)
        simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[j]}), 1_KiB});
    simulation.run();
    std::vector<std::uint64_t> used;
    for (const auto& port : simulation.results().ports) used.push_back(port[3].sent_packets);
    return used;
  };
  const auto used = first_ports(1);
  CHECK(used == first_ports(1));
  CHECK(used != first_ports(2));
  for (const auto port : cluster.network.nodes[index(cluster.switches[8])].ports)
    if (cluster.network.node_of(cluster.network.ports[index(port)].peer).kind == NodeKind::packet_switch)
      CHECK(used[index(port)] > 0);
}

// Two uplinks of 100 Gb/s and one of 10: in turn a flow has three times 10, by queue 100 + 100 + 10 at least.
TEST_CASE("adaptive routing fills links as fast as they are, spraying waits for the slowest") {
  for (const auto mode : {RoutingMode::spray, RoutingMode::adaptive}) {
    for (const auto& preset : {k_spectrum, k_infiniband}) {
      CAPTURE(preset.switch_name);
      CAPTURE(static_cast<int>(mode));
      auto cluster = with_whole_buffers(Cluster(preset.switch_name, preset.transport_name));
      cluster.delay = 25_ns;
      cluster.transport().congestion_control = "none";
      cluster.config().pfc.xoff = 64_KiB;
      const auto leaf0 = cluster.add_switch();
      const auto leaf1 = cluster.add_switch();
      for (const auto rate : {100_Gbps, 100_Gbps, 10_Gbps}) {
        const auto spine = cluster.add_switch();
        cluster.rate = rate;
        cluster.join(leaf0, spine);
        cluster.join(spine, leaf1);
      }
      cluster.rate = 100_Gbps;
      for (int i = 0; i < 2; ++i) cluster.add_host(leaf0);
      for (int i = 0; i < 2; ++i) cluster.add_host(leaf1);
      cluster.route();
      Options options;
      options.routing = mode;
      Simulation simulation(cluster.network, options);
      for (std::size_t i = 0; i < 2; ++i) greedy(simulation, cluster.hosts[i], cluster.hosts[i + 2]);
      const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
      const double total = sum(GoodputMeter(simulation).shares(1_ms, 3_ms, capacity));
      if (mode == RoutingMode::spray) {
        CHECK(deviation(total, 0.3) < 0.05);
      } else {
        CHECK(total > 1.9);
      }
    }
  }
}

TEST_CASE("where the way that packets came by decides, they choose among the ports behind that link") {
  Cluster cluster("htsim-like", "htsim-like");
  cluster.transport().out_of_order = true;
  for (int i = 0; i < 5; ++i) cluster.add_switch();
  const auto& s = cluster.switches;  // 0 - 1 - {2, 3} - 4
  const auto arrival = cluster.join(s[0], s[1]).second;
  const auto by_2 = cluster.join(s[1], s[2]).first;
  const auto by_3 = cluster.join(s[1], s[3]).first;
  cluster.join(s[2], s[4]);
  cluster.join(s[3], s[4]);
  for (const int leaf : {0, 1, 4}) cluster.add_host(s[static_cast<std::size_t>(leaf)]);
  cluster.route();
  cluster.network.routing.set(s[1], s[4], {by_2});
  cluster.network.routing.set_behind(arrival, s[4], {by_3});
  CHECK(cluster.network.routing.candidates(s[1], s[4]) == std::vector{by_2});
  CHECK(cluster.network.routing.candidates(s[1], s[4], arrival) == std::vector{by_3});
  CHECK(cluster.network.routing.candidates(s[1], s[4], by_2) == std::vector{by_2});
  Options options;
  options.routing = RoutingMode::spray;
  Simulation simulation(cluster.network, options);
  for (const std::size_t from : {0U, 1U})
    simulation.post(
        {simulation.add_queue_pair({cluster.hosts[from], cluster.hosts[2]}), Bytes{4'000 * (from == 0 ? 30 : 50)}});
  simulation.run();
  const auto results = simulation.results();
  CHECK(results.ports[index(by_2)][3].sent_packets == 50);
  CHECK(results.ports[index(by_3)][3].sent_packets == 30);
}
