// SPDX-License-Identifier: Apache-2.0
// The transport: times of single messages by hand, go-back-N, windows, READ, processing rates, slow receivers.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

// Two hosts on one switch that stores and forwards; 1,000 B packets in 1,100 B on the wire: 88 ns each at 100 Gb/s.
Cluster pair() {
  auto cluster = star(2, "htsim-like", "htsim-like");
  cluster.transport().mtu = {1000};
  cluster.transport().header = {100};
  cluster.transport().ack = {100};  // 8 ns
  return cluster;
}

Results run_one(const Cluster& cluster, Bytes bytes, Verb verb = Verb::write) {
  Simulation simulation(cluster.network);
  const auto queue_pair = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  simulation.post({queue_pair, bytes, verb});
  CHECK(simulation.run() == StopReason::finished);
  return simulation.results();
}

}  // namespace

TEST_CASE("a message takes its packets on the first link, one packet on the second, and two cable delays") {
  const auto results = run_one(pair(), Bytes{10'000});
  // 10 x 88 ns + 88 ns + 2 us; the acknowledgement adds 2 x 8 ns + 2 us.
  CHECK(results.messages[0].delivered == 2968_ns);
  CHECK(results.messages[0].completed == 4984_ns);
  CHECK(results.delivered_packets == 10);
}

TEST_CASE("cut-through saves the second transmission but for the header") {
  auto cluster = pair();
  cluster.config().cut_through = true;
  // Header: 72 B = 5.76 ns; the last packet ends 10 x 88 ns + 5.76 ns + 2 us after the start.
  CHECK(run_one(cluster, Bytes{10'000}).messages[0].delivered == Duration{2'885'760});
  cluster.config().latency = 300_ns;
  CHECK(run_one(cluster, Bytes{10'000}).messages[0].delivered == Duration{3'185'760});
}

TEST_CASE("cut-through waits for the end of a packet before a faster egress") {
  auto cluster = Cluster("htsim-like", "htsim-like");
  cluster.transport().mtu = {1000};
  cluster.transport().header = {100};
  cluster.config().cut_through = true;
  const auto leaf = cluster.add_switch();
  cluster.add_host(leaf);
  cluster.rate = 200_Gbps;
  cluster.add_host(leaf);
  cluster.route();
  // 88 ns, 44 ns and two cables; back, the slower egress begins with the header (72 B at 200 Gb/s).
  CHECK(run_one(cluster, Bytes{1000}).messages[0].delivered == 2132_ns);
  std::swap(cluster.hosts[0], cluster.hosts[1]);
  CHECK(run_one(cluster, Bytes{1000}).messages[0].delivered == Duration{2'090'880});
}

TEST_CASE("a message of zero bytes is one packet") {
  const auto results = run_one(pair(), Bytes{0});
  CHECK(results.delivered_packets == 1);
  CHECK(results.messages[0].delivered == 2016_ns);
}

TEST_CASE("READ takes a request and then the data, and both ends know at once") {
  auto cluster = pair();
  cluster.transport().read_request = {100};
  const auto results = run_one(cluster, Bytes{10'000}, Verb::read);
  // Request 2 x 8 ns + 2 us, data as for a write.
  CHECK(results.messages[0].delivered == 4984_ns);
  CHECK(results.messages[0].completed == 4984_ns);
}

TEST_CASE("at most max_reads READ requests are outstanding") {
  auto cluster = pair();
  cluster.transport().max_reads = 1;
  cluster.transport().read_request = {100};
  Simulation simulation(cluster.network);
  const auto queue_pair = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  for (int i = 0; i < 3; ++i) simulation.post({queue_pair, Bytes{10'000}, Verb::read});
  CHECK(simulation.run() == StopReason::finished);
  const auto results = simulation.results();
  for (int i = 0; i < 3; ++i) CHECK(results.messages[static_cast<std::size_t>(i)].completed == 4984_ns * (i + 1));
}

TEST_CASE("a window of W bytes carries W per round trip") {
  auto cluster = pair();
  cluster.transport().window = {8000};
  cluster.transport().ack_every = 1;
  const auto results = run_one(cluster, Bytes{8'000'000});
  // Round trip of one packet: 2 x 88 + 2 x 8 ns + 4 us = 4.192 us; 8 packets in each.
  CHECK(deviation(results.messages[0].completed.seconds(), 1000 * 4.192e-6) < 0.01);
}

TEST_CASE("messages of one queue pair arrive in order, those of several share the port in turn") {
  const auto cluster = pair();
  Simulation simulation(cluster.network);
  std::vector<std::uint64_t> order;
  simulation.on_delivered([&](const Completion& completion) { order.push_back(completion.tag); });
  const auto first = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  const auto second = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  simulation.post({first, Bytes{20'000}, Verb::write, {}, 1});
  simulation.post({first, Bytes{1'000}, Verb::write, {}, 2});
  simulation.post({second, Bytes{10'000}, Verb::write, {}, 3});
  CHECK(simulation.run() == StopReason::finished);
  CHECK(order == std::vector<std::uint64_t>{3, 1, 2});
}

TEST_CASE("a message posted from a completion starts then, and start times are kept") {
  const auto cluster = pair();
  Simulation simulation(cluster.network);
  const auto there = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  const auto back = simulation.add_queue_pair({cluster.hosts[1], cluster.hosts[0]});
  simulation.on_delivered([&](const Completion& completion) {
    if (completion.tag == 1) simulation.post({back, Bytes{1000}, Verb::write, {}, 2});
  });
  simulation.post({there, Bytes{1000}, Verb::write, 5_us, 1});
  Duration fired{};
  simulation.at(7_us, [&] { fired = simulation.now(); });
  CHECK(simulation.run() == StopReason::finished);
  const auto results = simulation.results();
  CHECK(fired == 7_us);
  CHECK(results.messages[0].started == 5_us);
  CHECK(results.messages[0].delivered == 7176_ns);
  CHECK(results.messages[1].delivered == 7176_ns + 2176_ns);
}

TEST_CASE("go-back-N delivers everything in order in spite of drops") {
  // Lossy class, 4:1, queue of 20 packets.
  auto cluster = star(5, "htsim-like", "htsim-like");
  cluster.config().lossy_limit = {80'000};
  cluster.transport().timeout = 100_us;
  Simulation simulation(cluster.network);
  for (std::size_t i = 1; i < 5; ++i)
    simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[0], 0, {}, {}}), Bytes{2'000'000}});
  CHECK(simulation.run() == StopReason::finished);
  const auto results = simulation.results();
  CHECK(results.lossy_drops > 0);
  CHECK(results.lossless_drops == 0);
  for (const auto& queue_pair : results.queue_pairs) {
    CHECK(queue_pair.delivered == Bytes{2'000'000});
    CHECK(queue_pair.packets == 500);
    CHECK(queue_pair.retransmitted > 0);
  }
}

TEST_CASE("without a timeout the loss of a last packet stops the run and is told") {
  auto cluster = star(3, "htsim-like", "htsim-like");
  cluster.config().lossy_limit = {4'100};
  cluster.transport().timeout = {};
  Simulation simulation(cluster.network);
  for (std::size_t i = 1; i < 3; ++i)
    simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[0], 0, {}, {}}), Bytes{12'000}});
  CHECK(simulation.run() == StopReason::stalled);
  const auto results = simulation.results();
  REQUIRE(results.deadlock.has_value());
  CHECK(results.deadlock->cycle.empty());
  CHECK(results.deadlock->stuck.size() >= 1);
}

TEST_CASE("the packet rate of an HCA limits small packets") {
  auto cluster = pair();
  cluster.transport().mtu = {100};
  cluster.hca().packet_gap = 100_ns;  // a packet takes 16 ns
  const auto results = run_one(cluster, Bytes{100'000});
  CHECK(deviation(results.messages[0].delivered.us(), 100 + 2) < 0.01);
}

TEST_CASE("a slow receiver pauses the fabric and loses nothing") {
  for (const char* name : {"htsim-like", "infiniband"}) {
    CAPTURE(name);
    auto cluster = star(3, name, "htsim-like", 100_ns);
    cluster.hca().receive_rate = 5_GBps;
    Simulation simulation(cluster.network);
    greedy(simulation, cluster.hosts[1], cluster.hosts[0], 3);
    const auto shares = GoodputMeter(simulation).shares(1_ms, 3_ms, 5_GBps);
    CHECK(deviation(shares[0], 4000.0 / 4064) < 0.01);
    const auto results = simulation.results();
    CHECK(results.lossless_drops == 0);
    const auto& sender = results.ports[index(cluster.hosts[1])][3];
    CHECK((sender.paused + sender.starved).seconds() > 0.3 * 3e-3);
    if (cluster.config().flow_control == packet::FlowControl::pfc) {
      REQUIRE(!results.pause_tree.empty());
      CHECK(results.pause_tree.front().root.port == cluster.hosts[0]);
    }
  }
}

TEST_CASE(
    "credits carry the full rate when a lane holds C (2 d + turnaround + interval) + 2 MTU, and half of it with half") {
  // 2 x 500 ns + 100 ns + 256 ns at 12.5 GB/s = 16,950 B; a buffer is counted in whole packets.
  for (const double share : {1.0, 0.5}) {
    CAPTURE(share);
    auto cluster = star(2, "infiniband", "infiniband", 500_ns);
    cluster.config().credits.turnaround = 100_ns;
    cluster.config().latency = {};
    const auto frame = 4096.0 + 26;
    cluster.config().credits.lane_buffer = {static_cast<std::int64_t>(share * (16'950 + 2 * frame))};
    Simulation simulation(cluster.network);
    greedy(simulation, cluster.hosts[0], cluster.hosts[1], 0);
    const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
    const auto got = GoodputMeter(simulation).shares(1_ms, 3_ms, capacity);
    if (share == 1.0) {
      CHECK(got[0] > 0.99);
    } else {
      CHECK(got[0] < 0.85);
      CHECK(got[0] > 0.4);
      CHECK(simulation.results().ports[index(cluster.hosts[0])][0].starved.ps > 0);
    }
  }
}

TEST_CASE("strict classes go first and weights share the rest") {
  auto cluster = star(7, "spectrum", "rocev2");
  cluster.transport().congestion_control = "none";
  cluster.config().lossy_limit = {1 << 30};
  cluster.config().buffer = {std::int64_t{1} << 30};
  cluster.config().classes[3].ecn.enabled = false;
  cluster.config().classes[0] = {true, false, 10, {}};
  cluster.config().classes[3] = {true, false, 30, {}};
  cluster.config().classes[6] = {true, true, 1, {}};
  cluster.transport().cnp_class = 7;
  Simulation simulation(cluster.network);
  greedy(simulation, cluster.hosts[1], cluster.hosts[0], 0);
  greedy(simulation, cluster.hosts[2], cluster.hosts[0], 3);
  const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
  const auto weighted = GoodputMeter(simulation).shares(1_ms, 3_ms, capacity);
  CHECK(deviation(weighted[0], 0.25) < 0.01);
  CHECK(deviation(weighted[1], 0.75) < 0.01);
  greedy(simulation, cluster.hosts[3], cluster.hosts[0], 6);
  const auto strict = GoodputMeter(simulation).shares(4_ms, 6_ms, capacity);
  CHECK(deviation(strict[2], 1.0) < 0.01);
}

TEST_CASE("PAUSE with quanta is repeated while it lasts, and without repeats it expires and packets are lost") {
  auto cluster = star(5, "htsim-like", "htsim-like", 100_ns);
  cluster.config().pfc.headroom = 20'000_B;
  cluster.config().pfc.pause_quanta = 200;  // 1.024 us at 100 Gb/s
  const auto run = [&](const Cluster& given) {
    Simulation simulation(given.network);
    for (std::size_t i = 1; i < 5; ++i) greedy(simulation, given.hosts[i], given.hosts[0]);
    simulation.run(2_ms);
    return simulation.results();
  };
  const auto repeated = run(cluster);
  const auto& ingress = repeated.ports[index(cluster.network.ports[index(cluster.hosts[1])].peer)][3];
  CHECK(repeated.lossless_drops == 0);
  CHECK(ingress.pauses_sent > 10);
  CHECK(ingress.pause_frames > 4 * ingress.pauses_sent);
  cluster.config().pfc.refresh_interval = 1_ms;
  CHECK(run(cluster).lossless_drops > 0);
  cluster.config().pfc.pause_quanta = 0;
  const auto latched = run(cluster);
  const auto& other = latched.ports[index(cluster.network.ports[index(cluster.hosts[1])].peer)][3];
  CHECK(latched.lossless_drops == 0);
  CHECK(other.pause_frames <= 2 * other.pauses_sent);
}

TEST_CASE("a pause of one class leaves the others alone") {
  for (const int other_class : {3, 2}) {
    CAPTURE(other_class);
    auto cluster = star(6, "spectrum", "rocev2");
    cluster.transport().congestion_control = "none";
    cluster.config().classes[2] = cluster.config().classes[3];
    Simulation simulation(cluster.network);
    for (std::size_t i = 1; i < 5; ++i) greedy(simulation, cluster.hosts[i], cluster.hosts[0], 3);
    greedy(simulation, cluster.hosts[1], cluster.hosts[5], other_class);
    const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
    const auto shares = GoodputMeter(simulation).shares(5_ms, 15_ms, capacity);
    // Its own class leaves 3/4 of the uplink; in the paused class it gets what the paused flow gets.
    CHECK(deviation(shares[4], other_class == 3 ? 0.25 : 0.75) < 0.05);
  }
}
