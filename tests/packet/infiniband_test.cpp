// SPDX-License-Identifier: Apache-2.0
// InfiniBand on the packet engine: credits in 64 B blocks per lane, their updates, cut-through, arbitration of lanes.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

constexpr std::int64_t k_frame = 4096 + 26;
constexpr std::int64_t k_wire = k_frame + 4;

// Two hosts that send, one receiver, 100 Gb/s, 5 ns of cable.
Cluster small() { return star(3, "infiniband", "infiniband", 5_ns); }

std::uint64_t credit_frames(const Results& results, int lane) {
  std::uint64_t most = 0;
  for (const auto& port : results.ports) most = std::max(most, port[static_cast<std::size_t>(lane)].pause_frames);
  return most;
}

}  // namespace

TEST_CASE("a lane takes as many packets as their blocks of 64 B fit into its buffer, and no more") {
  // A packet of 4,122 B takes 65 blocks, 4,160 B: three fit into 12,480 B, two into a byte less. The receiver takes
  // 1 B/us, so nothing is freed during the run.
  for (const auto& row : {std::pair{12'480, 3U}, std::pair{12'479, 2U}}) {
    const auto& [buffer, packets] = row;
    CAPTURE(row.first);
    auto cluster = small();
    cluster.config().credits.lane_buffer = {buffer};
    cluster.hca().receive_rate = Bandwidth{1e6};
    Simulation simulation(cluster.network);
    greedy(simulation, cluster.hosts[1], cluster.hosts[0], 0);
    simulation.run(1_ms);
    const auto results = simulation.results();
    const auto to_receiver = cluster.network.ports[index(cluster.hosts[0])].peer;
    CHECK(results.ports[index(to_receiver)][0].sent_packets == packets);
    CHECK(results.ports[index(cluster.hosts[1])][0].sent_packets == 2 * packets);
    CHECK(results.ports[index(to_receiver)][0].starved > 900_us);
  }
}

TEST_CASE("updates of a lane's credits are at least the interval apart") {
  for (const auto interval : {256_ns, 1_us}) {
    CAPTURE(interval.ps);
    auto cluster = small();
    cluster.config().credits.credit_interval = interval;
    Simulation simulation(cluster.network);
    greedy(simulation, cluster.hosts[1], cluster.hosts[0], 0);
    simulation.run(1_ms);
    const auto most = static_cast<std::uint64_t>((1_ms).ps / interval.ps) + 1;
    CHECK(credit_frames(simulation.results(), 0) <= most);
    // A packet takes 330 ns: every one of them, or every interval, changes the credits.
    CHECK(credit_frames(simulation.results(), 0) >= (interval < 300_ns ? 2'500U : most * 9 / 10));
    CHECK(credit_frames(simulation.results(), 1) == 0);
  }
}

TEST_CASE("virtual cut-through pays one packet on the wire and a header per further switch") {
  Cluster cluster("infiniband", "infiniband");
  cluster.delay = 10_ns;
  const auto first = cluster.add_switch();
  const auto second = cluster.add_switch();
  const auto third = cluster.add_switch();
  cluster.join(first, second);
  cluster.join(second, third);
  const auto from = cluster.add_host(first);
  const auto to = cluster.add_host(third);
  cluster.route();
  Simulation simulation(cluster.network);
  simulation.post({simulation.add_queue_pair({from, to, 0, {}, {}}), 4_KiB});
  CHECK(simulation.run() == StopReason::finished);
  // Four cables of 10 ns, three switches of 100 ns, three headers of 72 B, then the whole packet.
  const auto expected = 4 * 10_ns + 3 * 100_ns + Duration{3 * 72 * 80} + Duration{k_wire * 80};
  CHECK(simulation.results().messages[0].delivered == expected);
}

TEST_CASE("arbitration serves lanes by weight, strict ones first") {
  auto cluster = star(4, "infiniband", "infiniband", 5_ns);
  cluster.config().credits.lane_buffer = 64_KiB;
  cluster.config().classes[0].weight = 10;
  cluster.config().classes[1].weight = 30;
  cluster.config().classes[2].strict = true;
  Simulation simulation(cluster.network);
  greedy(simulation, cluster.hosts[1], cluster.hosts[0], 0);
  greedy(simulation, cluster.hosts[2], cluster.hosts[0], 1);
  const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
  const auto weighted = GoodputMeter(simulation).shares(1_ms, 3_ms, capacity);
  CHECK(deviation(weighted[0], 0.25) < 0.02);
  CHECK(deviation(weighted[1], 0.75) < 0.02);
  greedy(simulation, cluster.hosts[3], cluster.hosts[0], 2);
  const auto strict = GoodputMeter(simulation).shares(4_ms, 6_ms, capacity);
  CHECK(deviation(strict[2], 1.0) < 0.01);
}

TEST_CASE("a full lane leaves the others alone, and a shared one does not") {
  // Lane 0 waits for a slow host; another flow leaves the same sender for a fast one.
  for (const int lane : {0, 1}) {
    CAPTURE(lane);
    auto cluster = star(3, "infiniband", "infiniband", 5_ns);
    cluster.network.hca_configs.push_back(cluster.hca());
    cluster.network.hca_configs.back().receive_rate = 1_GBps;
    cluster.network.nodes[index(cluster.network.ports[index(cluster.hosts[0])].node)].config = 1;
    Simulation simulation(cluster.network);
    greedy(simulation, cluster.hosts[1], cluster.hosts[0], 0);
    greedy(simulation, cluster.hosts[1], cluster.hosts[2], lane);
    const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
    const auto shares = GoodputMeter(simulation).shares(1_ms, 3_ms, capacity);
    CHECK(deviation(shares[0], 1 / 12.5) < 0.05);
    if (lane == 1) {
      CHECK(shares[1] > 0.9);
    } else {
      CHECK(shares[1] < 0.2);
    }
    CHECK(simulation.results().lossless_drops == 0);
  }
}
