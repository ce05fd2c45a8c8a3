// SPDX-License-Identifier: Apache-2.0
// Stages inside hosts: what a stream, streams that share, and streams that come and go get of them.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/packet/networks.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

constexpr int k_packet = 4096;
constexpr double k_wire = 4096 + 82;  ///< RoCE: 62 B of headers, 20 B of preamble and gap

/// Hosts on one switch without ECN, so that nothing but stages and pauses slows a stream. 12.5 GB/s, 1 us per link.
Cluster quiet_star(int hosts, bool is_lossless = true) {
  auto cluster = star(hosts, "spectrum", "rocev2");
  cluster.config().classes[3].ecn.enabled = false;
  cluster.config().classes[3].lossless = is_lossless;
  cluster.config().latency = {};
  cluster.config().cut_through = false;
  return cluster;
}

/// Two links and the second transmission of a packet.
double path_us(double wire_bytes = k_wire) { return 2 + wire_bytes / 12.5e3; }

struct Run {
  std::vector<double> delivered_us;  ///< [message]
  Results results;
};

Run run(const Cluster& cluster, const std::vector<Bandwidth>& stages, const std::vector<HostPath>& paths,
        const std::vector<QueuePair>& pairs, const std::vector<Message>& messages) {
  Traffic traffic;
  traffic.cluster = cluster;
  traffic.stages = stages;
  traffic.host_paths = paths;
  traffic.queue_pairs = pairs;
  traffic.messages = messages;
  auto simulation = traffic.simulation(true);
  Run out;
  simulation.run();
  out.results = simulation.results();
  for (const auto& message : out.results.messages) out.delivered_us.push_back(message.delivered.us());
  return out;
}

Message message(std::uint32_t pair, std::int64_t packets, std::uint32_t path, Duration start = {}) {
  return {QueuePairId{pair}, Bytes{packets * k_packet}, Verb::write, start, 0, HostPathId{path}};
}

}  // namespace

TEST_CASE("a stream through one stage ends when the stage has moved its bytes, one packet or many") {
  const auto cluster = quiet_star(2);
  for (const double rate : {1e9, 3.125e9, 10e9, 12.2e9}) {
    for (const int packets : {1, 2, 3, 1000}) {
      CAPTURE(rate);
      CAPTURE(packets);
      const auto sent = run(cluster, {{rate}}, {{{{StageId{0}}}, {}}}, {{cluster.hosts[0], cluster.hosts[1]}},
                            {message(0, packets, 1)});
      CHECK(sent.delivered_us[0] == test::approx(packets * k_packet / rate * 1e6 + path_us()).epsilon(1e-5));
      CHECK(sent.results.ports[index(cluster.hosts[0])][3].pauses_received == 0);
      // The receiver's stage begins with the first byte of the first packet it has: it ends a packet time before.
      const auto received = run(cluster, {{rate}}, {{{}, {{StageId{0}}}}}, {{cluster.hosts[0], cluster.hosts[1]}},
                                {message(0, packets, 1)});
      CHECK(received.delivered_us[0] ==
            test::approx((packets - 1) * k_packet / rate * 1e6 + k_wire / 12.5e3 + path_us()).epsilon(1e-5));
      CHECK(received.results.lossless_drops == 0);
      // Both: the slow sender never makes the receiver wait.
      const auto both = run(cluster, {{rate}, {rate}}, {{{{StageId{0}}}, {{StageId{1}}}}},
                            {{cluster.hosts[0], cluster.hosts[1]}}, {message(0, packets, 1)});
      CHECK(both.delivered_us[0] == test::approx(sent.delivered_us[0]).epsilon(1e-4));
    }
  }
}

TEST_CASE("a stage that is passed k times, or faster than the wire, costs k times, or nothing") {
  const auto cluster = quiet_star(2);
  const std::vector<QueuePair> pair{{cluster.hosts[0], cluster.hosts[1]}};
  const auto twice = run(cluster, {{6e9}}, {{{{StageId{0}, 2}}, {}}}, pair, {message(0, 500, 1)});
  CHECK(twice.delivered_us[0] == test::approx(500 * k_packet / 3e3 + path_us()).epsilon(1e-5));
  const auto fast = run(cluster, {{50e9}}, {{{{StageId{0}}}, {{StageId{0}}}}}, pair, {message(0, 500, 1)});
  const auto none = run(cluster, {}, {}, pair, {message(0, 500, 0)});
  CHECK(fast.delivered_us[0] == none.delivered_us[0]);
  CHECK(none.delivered_us[0] == test::approx(500 * k_wire / 12.5e3 + path_us()).epsilon(1e-5));
}

TEST_CASE("flows share a stage while both are active, and have it to themselves before and after") {
  // 4 GB/s: alone 2 MB take 512 us. The second starts 200 us later and carries half as much.
  const auto cluster = quiet_star(3);
  const int packets = 500;
  const auto out = run(cluster, {{4e9}}, {{{{StageId{0}}}, {}}},
                       {{cluster.hosts[0], cluster.hosts[1]}, {cluster.hosts[0], cluster.hosts[2]}},
                       {message(0, packets, 1), message(1, packets / 2, 1, 200_us)});
  const double whole = packets * k_packet / 4e3;
  // Until 200 us alone, then both at half rate until the second one's half is over.
  CHECK(out.delivered_us[1] == test::approx(200 + whole + path_us()).epsilon(0.005));
  CHECK(out.delivered_us[0] == test::approx(1.5 * whole + path_us()).epsilon(0.005));
}

TEST_CASE("flows that follow each other do not slow each other, however many are listed") {
  const auto cluster = quiet_star(2);
  std::vector<QueuePair> pairs;
  std::vector<Message> messages;
  for (std::uint32_t i = 0; i < 10; ++i) {
    pairs.push_back({cluster.hosts[0], cluster.hosts[1]});
    messages.push_back(message(i, 244, 1, Duration{1'000'000'000} * std::int64_t{i}));
  }
  const auto out = run(cluster, {{12e9}, {12e9}}, {{{{StageId{0}}}, {{StageId{1}}}}}, pairs, messages);
  for (std::uint32_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(out.delivered_us[i] - 1000 * i == test::approx(244 * k_packet / 12e3 + path_us()).epsilon(1e-4));
  }
}

TEST_CASE("what a held flow leaves of a stage, another port of the host uses") {
  // Two ports of one host share 10 GB/s; the first one's receiver takes 1 GB/s, and its switch holds little.
  auto cluster = quiet_star(4);
  cluster.config().pfc.xoff = 100'000_B;
  const auto out = run(cluster, {{10e9}, {1e9}}, {{{{StageId{0}}}, {{StageId{1}}}}, {{{StageId{0}}}, {}}},
                       {{cluster.hosts[0], cluster.hosts[2]}, {cluster.hosts[1], cluster.hosts[3]}},
                       {message(0, 2000, 1), message(1, 20000, 2)});
  CHECK(out.delivered_us[0] == test::approx(2000 * k_packet / 1e3).epsilon(0.01));
  // While the first one is there it takes 1 of 10 GB/s; 82 MB less 8 of them at 9, then at 10.
  CHECK(out.delivered_us[1] == test::approx(2000 * k_packet / 1e3 + (20000 - 18000) * k_packet / 10e3).epsilon(0.02));
  CHECK(out.results.lossless_drops == 0);
  CHECK(out.results.ports[index(cluster.hosts[0])][3].pauses_received > 0);
  CHECK(out.results.ports[index(cluster.hosts[1])][3].pauses_received == 0);
}

TEST_CASE("a slow receiver pauses a lossless class and takes its rate, of a lossy class it drops") {
  auto cluster = quiet_star(2);
  const std::vector<QueuePair> pair{{cluster.hosts[0], cluster.hosts[1]}};
  const auto lossless = run(cluster, {{2e9}}, {{{}, {{StageId{0}}}}}, pair, {message(0, 4000, 1)});
  CHECK(lossless.delivered_us[0] == test::approx(4000 * k_packet / 2e3).epsilon(0.005));
  CHECK(lossless.results.lossless_drops == 0);
  const auto& host = lossless.results.ports[index(cluster.hosts[1])][3];
  CHECK(host.pauses_sent > 0);
  // The buffer is used up to where the headroom begins, and no farther than its end.
  CHECK(host.max_ingress.value <= cluster.hca().receive_buffer.value);
  CHECK(host.max_ingress.value >= cluster.hca().receive_buffer.value - host.headroom.value);
  auto lossy = quiet_star(2, false);
  const auto dropped = run(lossy, {{2e9}}, {{{}, {{StageId{0}}}}}, pair, {message(0, 4000, 1)});
  CHECK(dropped.results.lossy_drops > 0);
  CHECK(dropped.results.ports[index(lossy.hosts[1])][3].max_ingress.value <= lossy.hca().receive_buffer.value);
  CHECK(dropped.results.ports[index(lossy.hosts[1])][3].pauses_sent == 0);
  CHECK(dropped.delivered_us[0] > lossless.delivered_us[0]);
  // A slow sender before it loses nothing.
  const auto paced = run(lossy, {{2e9}, {2e9}}, {{{{StageId{1}}}, {{StageId{0}}}}}, pair, {message(0, 4000, 1)});
  CHECK(paced.results.lossy_drops == 0);
  CHECK(paced.delivered_us[0] == test::approx(4000 * k_packet / 2e3).epsilon(0.005));
}

TEST_CASE("a slow receiver of InfiniBand withholds credits and takes its rate") {
  const auto cluster = star(2, "infiniband", "infiniband", 10_ns);
  for (const double rate : {0.5e9, 2e9, 8e9}) {
    const auto out =
        run(cluster, {{rate}}, {{{}, {{StageId{0}}}}}, {{cluster.hosts[0], cluster.hosts[1]}}, {message(0, 4000, 1)});
    CAPTURE(rate);
    CHECK(out.delivered_us[0] == test::approx(4000 * k_packet / rate * 1e6).epsilon(0.005));
    CHECK(out.results.lossless_drops == 0);
  }
}

TEST_CASE("two ports that receive through one stage get half of it each") {
  const auto cluster = quiet_star(4);
  const auto out = run(cluster, {{4e9}}, {{{}, {{StageId{0}}}}},
                       {{cluster.hosts[0], cluster.hosts[2]}, {cluster.hosts[1], cluster.hosts[3]}},
                       {message(0, 2000, 1), message(1, 2000, 1)});
  for (const double us : out.delivered_us) CHECK(us == test::approx(2 * 2000 * k_packet / 4e3).epsilon(0.005));
}

TEST_CASE("READ: the data pass the stages of the host that has them") {
  const auto cluster = quiet_star(2);
  auto read = message(0, 1000, 1);
  read.verb = Verb::read;
  const auto out = run(cluster, {{3e9}}, {{{{StageId{0}}}, {}}}, {{cluster.hosts[0], cluster.hosts[1]}}, {read});
  CHECK(out.delivered_us[0] == test::approx(1000 * k_packet / 3e3 + 2 * path_us()).epsilon(0.001));
}

TEST_CASE("bytes beside the wire take turns with packets at a stage") {
  const auto cluster = quiet_star(2);
  Simulation simulation(cluster.network, {});
  const auto stage = simulation.add_stage({4e9});
  const auto path = simulation.add_host_path({{{stage}}, {}});
  const auto pair = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  CHECK(simulation.pass(path, 4000).ps == 1'000'000);
  CHECK(simulation.pass(path, 8000).ps == 3'000'000);
  simulation.post({pair, Bytes{k_packet}, Verb::write, {}, 0, path});
  simulation.run();
  CHECK(simulation.results().messages[0].delivered.us() == test::approx(3 + k_packet / 4e3 + path_us()).epsilon(1e-4));
}

TEST_CASE("several queue pairs behind caps of their own keep them beside a greedy one on the same port") {
  // Three connections held at 2 GB/s each beside one that takes what is left of 12.5 GB/s.
  const auto cluster = quiet_star(2);
  std::vector<QueuePair> pairs(4, QueuePair{cluster.hosts[0], cluster.hosts[1]});
  std::vector<Bandwidth> stages(3, Bandwidth{2e9});
  std::vector<HostPath> paths;
  std::vector<Message> messages;
  for (std::uint32_t i = 0; i < 3; ++i) {
    paths.push_back({{{StageId{i}}}, {}});
    messages.push_back(message(i, 2000, i + 1));
  }
  messages.push_back(message(3, 100'000, 0));
  const auto out = run(cluster, stages, paths, pairs, messages);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(out.delivered_us[i] == test::approx(2000 * k_packet / 2e3).epsilon(0.01));
}
