// SPDX-License-Identifier: Apache-2.0
// Canonical lossless scenarios against their closed forms: N:1 incast, overshoot of PAUSE, parking lot, victim flow.
// All links 100 Gb/s with 1 us; all flows greedy writes in one lossless class. C' = goodput capacity of a link.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

Cluster without_dcqcn(Cluster cluster) {
  cluster.transport().congestion_control = "none";
  return cluster;
}

// Bytes that 100 Gb/s carry in `time`.
Bytes transfer_in(Duration time) { return Bytes{static_cast<std::int64_t>(time.seconds() * 12.5e9)}; }

}  // namespace

void start_incast(Simulation& simulation, const Cluster& cluster, int senders, Duration apart = {}) {
  for (int i = 1; i <= senders; ++i)
    greedy(simulation, cluster.hosts[static_cast<std::size_t>(i)], cluster.hosts[0], 3, apart * i);
}

// How far shares of N senders may lie apart. A share is a sender's part of the queue in front of the receiver, and
// parts are equal up to one burst, what still arrives behind XOFF: two cables and what is on the wire at both ends.
// Dynamic thresholds make a part reserved + T with T = alpha (pool - N T). With fixed ones a turn is whole bursts too,
// and at 127 senders the window has few of them.
double unfairness(const SwitchConfig& config, const TransportConfig& transport, int senders) {
  if (config.pfc.xoff) return senders > 64 ? 0.1 : 0.07;
  const Bytes burst = transfer_in(2_us) + 2 * (transport.mtu + transport.header);
  const auto pool = static_cast<double>(config.pool.value_or(config.buffer).value);
  const double threshold = config.pfc.alpha * pool / (1 + config.pfc.alpha * senders);
  return static_cast<double>(burst.value) / (static_cast<double>(config.reserved.value) + threshold);
}

TEST_CASE("N senders to one receiver share its link equally and nothing is dropped" * doctest::test_suite("long")) {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum}) {
    for (const int senders : {2, 4, 7, 8, 31, 64, 127}) {
      if (senders > 31 && preset.switch_name == k_spectrum.switch_name) continue;  // has 32 ports
      CAPTURE(preset.switch_name);
      CAPTURE(senders);
      const auto cluster = without_dcqcn(star(senders + 1, preset.switch_name, preset.transport_name));
      Simulation simulation(cluster.network);
      // Fixed thresholds lock into phase when all flows start together, which favours some senders by 5 %.
      start_incast(simulation, cluster, senders, cluster.network.switch_configs[0].pfc.xoff ? 5_us : 0_us);
      const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
      const auto shares = GoodputMeter(simulation).shares(2_ms, senders > 31 ? 22_ms : 7_ms, capacity);
      CHECK(deviation(sum(shares), 1) <= 0.001);
      CHECK(jain(shares) >= 0.999);
      const double apart =
          unfairness(cluster.network.switch_configs[0], cluster.network.hca_configs[0].transport, senders);
      for (const double share : shares) CHECK(deviation(share, 1.0 / senders) <= apart);
      CHECK(simulation.results().lossless_drops == 0);
    }
  }
}

TEST_CASE("127 messages of 2 MB to one receiver end at N ceil(S/P) (P+h) 8/C + RTT") {
  for (const auto& preset : {k_htsim, k_ns3}) {
    CAPTURE(preset.switch_name);
    const auto cluster = without_dcqcn(star(128, preset.switch_name, preset.transport_name));
    Simulation simulation(cluster.network);
    for (int i = 1; i < 128; ++i) {
      const auto queue_pair = simulation.add_queue_pair({cluster.hosts[static_cast<std::size_t>(i)], cluster.hosts[0]});
      simulation.post({queue_pair, Bytes{2'000'000}});
    }
    CHECK(simulation.run() == StopReason::finished);
    const auto& transport = cluster.network.hca_configs[0].transport;
    const double packets = std::ceil(2e6 / static_cast<double>(transport.mtu.value));
    const double law_s = 127 * packets * static_cast<double>((transport.mtu + transport.header).value) * 8 / 100e9;
    const double round_trip_s = 4e-6;
    const auto results = simulation.results();
    Duration last{};
    for (const auto& message : results.messages) last = std::max(last, message.completed);
    CHECK(deviation(last.seconds(), law_s + round_trip_s) <= 0.001);
    CHECK(results.lossless_drops == 0);
  }
}

// Hosts 8 to 14 send to the senders 1 to 7, so that PAUSE has to wait for a frame on the wire.
void keep_links_to_senders_busy(Simulation& simulation, const Cluster& cluster) {
  for (std::size_t i = 1; i < 8; ++i) greedy(simulation, cluster.hosts[i + 7], cluster.hosts[i]);
}

TEST_CASE("the overshoot with PAUSE out of band is the published one to the byte") {
  // 4,064 B packets: 7 and 13 of them; the bound is 2 d C + one packet.
  for (const int senders : {4, 7}) {
    for (const auto& [delay, published] : {std::pair{1_us, 28'448}, std::pair{2_us, 52'832}}) {
      const auto cluster = star(senders + 1, "htsim-like", "htsim-like", delay);
      Simulation simulation(cluster.network);
      start_incast(simulation, cluster, senders);
      simulation.run(5_ms);
      std::int64_t overshoot = 0;
      for (const auto& port : simulation.results().ports) overshoot = std::max(overshoot, port[3].max_overshoot.value);
      CHECK(overshoot == published);
    }
  }
}

TEST_CASE("after XOFF at most 2 d C + 2 MTU + PAUSE + response arrive, and any less headroom than arrives loses some" *
          doctest::test_suite("long")) {
  for (const auto delay : {50_ns, 200_ns, 1_us, 2_us}) {
    for (const std::int64_t mtu : {1000, 4096, 9000}) {
      for (const auto response : {0_ns, 500_ns}) {
        CAPTURE(delay.ps);
        CAPTURE(mtu);
        CAPTURE(response.ps);
        auto cluster = without_dcqcn(star(15, "hpcc-ns3-like", "rocev2", delay));
        cluster.transport().mtu = {mtu};
        cluster.hca().pause_response = response;
        cluster.config().buffer = 1_MiB;
        const auto frame = mtu + 62;
        const double bound = (2 * delay + response).seconds() * 12.5e9 + 2.0 * static_cast<double>(frame) + 84;
        cluster.config().pfc.headroom = Bytes{static_cast<std::int64_t>(bound) + 1};
        Simulation enough(cluster.network);
        start_incast(enough, cluster, 7);
        keep_links_to_senders_busy(enough, cluster);
        enough.run(3_ms);
        const auto results = enough.results();
        CHECK(results.lossless_drops == 0);
        std::int64_t overshoot = 0;
        for (const auto& port : results.ports) overshoot = std::max(overshoot, port[3].max_overshoot.value);
        CHECK(overshoot > 0);
        CHECK(static_cast<double>(overshoot) <= bound);

        // One byte less than what arrived, and the round trip without the frames under way.
        for (const auto headroom : {Bytes{overshoot - 1}, transfer_in(2 * delay + response)}) {
          cluster.config().pfc.headroom = headroom;
          Simulation too_small(cluster.network);
          start_incast(too_small, cluster, 7);
          keep_links_to_senders_busy(too_small, cluster);
          too_small.run(3_ms);
          CHECK(too_small.results().lossless_drops > 0);
        }
      }
    }
  }
}

TEST_CASE("a headroom of 3 C d loses packets on short links exactly where the published simulator does") {
  // Its drops: 50 ns 15,602 (1 KB) and 74,186 (4 KB), 200 ns 0 and 6,095, 1 us 0 and 0; with drops next to no goodput
  // is left.
  struct Row {
    Duration delay;
    std::int64_t mtu;
    bool drops;
  };
  for (const auto& row : {Row{50_ns, 1000, true},
                          {50_ns, 4000, true},
                          {200_ns, 1000, false},
                          {200_ns, 4000, true},
                          {1_us, 1000, false},
                          {1_us, 4000, false}}) {
    const auto& [delay, mtu, drops] = row;
    CAPTURE(row.delay.ps);
    CAPTURE(row.mtu);
    auto cluster = without_dcqcn(star(8, "hpcc-ns3-like", "hpcc-ns3-like", delay));
    cluster.transport().mtu = {mtu};
    cluster.config().buffer = {1'000'000};
    Simulation simulation(cluster.network);
    start_incast(simulation, cluster, 7);
    const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
    const double used = sum(GoodputMeter(simulation).shares(2_ms, 6_ms, capacity));
    CHECK((simulation.results().lossless_drops > 0) == drops);
    if (drops) {
      CHECK(used < 0.15);
    } else {
      CHECK(used > 0.999);
    }
  }
}

TEST_CASE("a parking lot without congestion control gives 1/2, 1/4, 1/8, 1/8" * doctest::test_suite("long")) {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum, k_infiniband}) {
    CAPTURE(preset.switch_name);
    auto cluster = without_dcqcn(parking_lot(preset));
    cluster.config().credits.lane_buffer = 64_KiB;  // more than 2 d C
    Simulation simulation(cluster.network);
    for (std::size_t i = 1; i < 5; ++i) greedy(simulation, cluster.hosts[i], cluster.hosts[0]);
    const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
    const auto shares = GoodputMeter(simulation).shares(2_ms, 12_ms, capacity);
    CHECK(deviation(shares[0], 0.5) <= 0.01);
    CHECK(deviation(shares[1], 0.25) <= 0.01);
    CHECK(deviation(shares[2], 0.125) <= 0.01);
    CHECK(deviation(shares[3], 0.125) <= 0.01);
    CHECK(simulation.results().lossless_drops == 0);
  }
}

TEST_CASE("three far senders behind one trunk get 1/6 each, one beside the receiver 1/2" *
          doctest::test_suite("long")) {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum, k_infiniband}) {
    CAPTURE(preset.switch_name);
    auto cluster = without_dcqcn(Cluster(preset.switch_name, preset.transport_name));
    cluster.config().credits.lane_buffer = 64_KiB;
    const auto leaf0 = cluster.add_switch();
    const auto spine = cluster.add_switch();
    const auto leaf1 = cluster.add_switch();
    cluster.join(leaf0, spine);
    cluster.join(spine, leaf1);
    const auto receiver = cluster.add_host(leaf1);
    for (const auto leaf : {leaf1, leaf0, leaf0, leaf0}) cluster.add_host(leaf);
    cluster.route();
    Simulation simulation(cluster.network);
    for (std::size_t i = 1; i < 5; ++i) greedy(simulation, cluster.hosts[i], receiver);
    const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
    const auto shares = GoodputMeter(simulation).shares(2_ms, 12_ms, capacity);
    CHECK(deviation(shares[0], 1.0 / 2) <= 0.01);
    for (std::size_t i = 1; i < 4; ++i) CHECK(deviation(shares[i], 1.0 / 6) <= 0.05);
    CHECK(simulation.results().lossless_drops == 0);
  }
}

// Flow 0 alone suffers from the queue in front of the receiver, and the pauses come from there.
void check_victim(const Results& results, PortId root) {
  REQUIRE(results.victims.size() == 1);
  CHECK(index(results.victims.front().queue_pair) == 0);
  CHECK(results.victims.front().root.port == root);
  const auto is_at_root = [&](const PauseEdge& edge) { return edge.root.port == root && edge.depth == 1; };
  CHECK(std::ranges::any_of(results.pause_tree, is_at_root));
}

// Shares of the victim, the far and the local senders.
std::vector<double> victim_flow(const Cluster& base, int far, int local, Duration jitter) {
  const auto [cluster, receiver, idle, senders] = victim_network(base, far, local);
  Simulation simulation(cluster.network);
  for (std::size_t i = 0; i < senders.size(); ++i)
    greedy(simulation, senders[i], i == 0 ? idle : receiver, 3, jitter * static_cast<std::int64_t>(i));
  const auto capacity = goodput_capacity(cluster.network.hca_configs[0].transport, 100_Gbps);
  auto shares = GoodputMeter(simulation).shares(2_ms, 7_ms, capacity);
  const auto results = simulation.results();
  CHECK(results.lossless_drops == 0);
  check_victim(results, cluster.network.ports[index(receiver)].peer);
  return shares;
}

TEST_CASE("a victim of PAUSE gets what the flows to the congested host get" * doctest::test_suite("long")) {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum}) {
    for (const int far : {1, 2, 4}) {
      for (const int local : {1, 2, 4}) {
        CAPTURE(preset.switch_name);
        CAPTURE(far);
        CAPTURE(local);
        const double law = 1.0 / ((local + 1) * far);
        // Single runs lock into phase; the mean over start times is what the law speaks of.
        std::vector<double> flows(static_cast<std::size_t>(far) + 1);
        for (const auto jitter : {0_us, 3_us, 7_us, 11_us}) {
          const Cluster cluster = without_dcqcn(Cluster(preset.switch_name, preset.transport_name));
          const auto shares = victim_flow(cluster, far, local, jitter);
          for (std::size_t i = 0; i < flows.size(); ++i) flows[i] += shares[i] / 4;
        }
        const double mean = sum(flows) / (far + 1);
        if (local == 1) {
          CHECK(mean >= 1.0 / (2 * far + 1) * 0.99);
          CHECK(mean <= law * 1.02);
        } else {
          CHECK(mean >= law * 0.8);
          CHECK(mean <= law * 1.02);
          CHECK(*std::ranges::min_element(flows) >= law * 0.75);
        }
      }
    }
  }
}

TEST_CASE("with credits and one packet per input at a time a victim gets the input-queued law") {
  for (const int far : {1, 2, 4}) {
    for (const int local : {1, 2, 4}) {
      CAPTURE(far);
      CAPTURE(local);
      auto cluster = without_dcqcn(Cluster("infiniband", "infiniband"));
      cluster.config().credits.input_speedup = 1;
      cluster.config().credits.has_virtual_output_queues = false;
      cluster.config().credits.lane_buffer = 64_KiB;
      cluster.transport().ack_every = 256;  // credits for acknowledgements shift the packets of the congested port
      const double law = local == 1 ? 1.0 / (2 * far + 1) : 1.0 / ((local + 1) * far);
      const auto shares = victim_flow(cluster, far, local, 0_us);
      const double mean = std::accumulate(shares.begin(), shares.begin() + far + 1, 0.0) / (far + 1);
      CHECK(deviation(mean, law) <= 0.02);
    }
  }
}
