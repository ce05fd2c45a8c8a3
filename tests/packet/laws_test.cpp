// SPDX-License-Identifier: Apache-2.0
// Laws over random networks and traffic: conservation, order, no overflow, the same results on every run and without
// shortcuts. A seed gives a network; a failing seed is printed.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/packet/fingerprint.hpp"
#include "tests/packet/networks.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;
using fabricast::test::Random;

namespace {

using Case = Traffic;

// Leaves, spines, and hosts at random; every leaf on every spine, links of three rates.
void add_random_network(Random& random, Cluster& cluster) {
  const auto num_spines = static_cast<int>(1 + random.next(3));
  const auto num_leaves = static_cast<int>(1 + random.next(4));
  std::vector<NodeId> spines;
  for (int i = 0; i < num_spines; ++i) spines.push_back(cluster.add_switch());
  for (int i = 0; i < num_leaves; ++i) {
    const auto leaf = cluster.add_switch();
    cluster.rate = random.pick<Bandwidth>({100_Gbps, 200_Gbps, {6.818e9}});
    cluster.delay = random.pick<Duration>({5_ns, 200_ns, 1_us});
    for (const auto spine : spines) cluster.join(leaf, spine);
    cluster.rate = random.pick<Bandwidth>({100_Gbps, 25_Gbps});
    const auto num_hosts = 2 + random.next(5);
    for (std::uint64_t host = 0; host < num_hosts; ++host) cluster.add_host(leaf);
  }
  cluster.route();
}

void add_random_traffic(Random& random, Case& out) {
  const auto& hosts = out.cluster.hosts;
  const bool has_hot_spot = random.next(2) == 0;
  const auto num_queue_pairs = 3 + random.next(20);
  for (std::uint64_t i = 0; i < num_queue_pairs; ++i) {
    QueuePair queue_pair;
    queue_pair.source = random.pick(hosts);
    queue_pair.destination = has_hot_spot && random.next(3) > 0 ? hosts[0] : random.pick(hosts);
    if (queue_pair.source == queue_pair.destination) continue;
    queue_pair.traffic_class = random.next(4) == 0 ? 2 : 3;
    out.queue_pairs.push_back(queue_pair);
    const QueuePairId id{static_cast<std::uint32_t>(out.queue_pairs.size() - 1)};
    for (std::uint64_t count = 1 + random.next(3); count > 0; --count) {
      const auto bytes = static_cast<std::int64_t>(random.next(2) == 0 ? random.next(10'000) : random.next(1'000'000));
      const auto verb = random.next(5) == 0 ? Verb::read : Verb::write;
      out.messages.push_back({id, Bytes{bytes}, verb, Duration{static_cast<std::int64_t>(random.next(20'000'000))}, 0});
    }
  }
}

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case out;
  const auto preset = random.pick<Preset>({k_htsim, k_ns3, k_spectrum, k_spectrum, k_infiniband});
  out.cluster = Cluster(preset.switch_name, preset.transport_name);
  auto& config = out.cluster.config();
  config.classes[2].lossless = true;
  config.classes[2].weight = static_cast<std::uint32_t>(1 + random.next(50));
  config.pfc.headroom_bandwidth_delays = 0;  // the bound instead of a guess
  config.pfc.alpha = random.pick<double>({0.0625, 0.5, 1, 8});
  config.latency = random.pick<Duration>({0_ns, 300_ns});
  config.cut_through = random.next(2) == 0;
  config.credits.input_speedup = static_cast<std::uint32_t>(1 + random.next(3));
  config.credits.has_virtual_output_queues = random.next(2) == 0;
  if (random.next(3) == 0) out.cluster.hca().receive_rate = 4_GBps;
  out.cluster.transport().congestion_control = random.next(2) == 0 ? "dcqcn" : "none";
  out.cluster.transport().ack_every = static_cast<std::uint32_t>(1 + random.next(20));
  if (random.next(3) == 0) out.cluster.transport().window = {100'000};
  out.options.routing =
      random.pick<RoutingMode>({RoutingMode::ecmp, RoutingMode::ecmp, RoutingMode::spray, RoutingMode::adaptive});
  out.cluster.transport().out_of_order = out.options.routing != RoutingMode::ecmp;
  out.options.seed = seed;
  add_random_network(random, out.cluster);
  add_random_traffic(random, out);
  return out;
}

Results simulate(const Case& given, bool shortcuts = true) {
  auto simulation = given.simulation(shortcuts);
  simulation.run();
  return simulation.results();
}

constexpr std::uint64_t k_num_seeds = 120;

}  // namespace

TEST_CASE("what is posted arrives, all of it, not before light could carry it, and lossless classes drop nothing") {
  for (std::uint64_t seed = 1; seed <= k_num_seeds; ++seed) {
    CAPTURE(seed);
    const auto given = random_case(seed);
    const auto results = simulate(given);
    CAPTURE(results.deadlock.value_or(Deadlock{}).reason);
    REQUIRE(results.stop == StopReason::finished);
    CHECK(results.lossless_drops == 0);
    CHECK(results.lossy_drops == 0);
    std::int64_t posted = 0;
    std::int64_t delivered = 0;
    for (const auto& message : results.messages) {
      posted += message.bytes.value;
      const auto& queue_pair = given.queue_pairs[index(message.queue_pair)];
      const auto& ports = given.cluster.network.ports;  // the data of a READ come from the destination
      const auto rate = std::max(ports[index(queue_pair.source)].rate, ports[index(queue_pair.destination)].rate);
      CAPTURE(index(message.message));
      CHECK(message.delivered >= message.started + transfer_time(message.bytes, rate));
      CHECK(message.completed >= message.delivered);
    }
    for (const auto& queue_pair : results.queue_pairs) {
      delivered += queue_pair.delivered.value;
      CHECK(queue_pair.retransmitted == 0);
    }
    CHECK(delivered == posted);
  }
}

TEST_CASE("every packet that enters a link leaves it, and no buffer holds more than it has") {
  for (std::uint64_t seed = 1; seed <= k_num_seeds; ++seed) {
    CAPTURE(seed);
    const auto given = random_case(seed);
    const auto& network = given.cluster.network;
    const auto& config = network.switch_configs[0];
    const auto results = simulate(given);
    std::uint64_t hops = 0;
    for (std::uint32_t port = 0; port < network.ports.size(); ++port) {
      const bool is_host = network.node_of(PortId{port}).kind == NodeKind::host;
      const double busy_s = static_cast<double>(results.ports[port][2].sent.value + results.ports[port][3].sent.value) /
                            network.ports[port].rate.bytes_per_s;
      CHECK(busy_s <= results.now.seconds() * 1.000001);
      for (const auto& entry : results.ports[port]) {
        hops += entry.sent_packets;
        CHECK(entry.max_headroom <= entry.headroom);
        if (config.flow_control == packet::FlowControl::credits && entry.is_lossless)
          CHECK(entry.max_ingress <= config.credits.lane_buffer);
        CHECK(entry.paused <= results.now);
      }
      if (is_host && config.flow_control == packet::FlowControl::pfc)
        CHECK(results.ports[port][3].max_ingress <= network.hca_configs[0].receive_buffer);
    }
    CHECK(hops == results.packet_hops);
    if (config.flow_control != packet::FlowControl::pfc) continue;
    for (const auto used : results.max_switch_buffer) CHECK(used <= config.buffer);
  }
}

TEST_CASE("messages of one queue pair are delivered in the order posted") {
  for (std::uint64_t seed = 1; seed <= k_num_seeds; ++seed) {
    CAPTURE(seed);
    const auto given = random_case(seed);
    if (given.options.routing != RoutingMode::ecmp) continue;
    const auto results = simulate(given);
    std::map<std::uint32_t, Duration> last;
    for (std::size_t i = 0; i < results.messages.size(); ++i) {
      if (given.messages[i].verb == Verb::read) continue;
      auto& before = last[index(results.messages[i].queue_pair)];
      CHECK(results.messages[i].delivered >= before);
      before = results.messages[i].delivered;
    }
  }
}

TEST_CASE("a run gives the same results again, and with the shortcuts off") {
  for (std::uint64_t seed = 1; seed <= k_num_seeds; ++seed) {
    CAPTURE(seed);
    const auto given = random_case(seed);
    const auto once = simulate(given);
    CHECK(Fingerprint(once).difference(Fingerprint(simulate(given))) == "");
    const auto expanded = simulate(given, false);
    CHECK(Fingerprint(once).difference(Fingerprint(expanded)) == "");
    CHECK(expanded.events > once.events);
  }
}
