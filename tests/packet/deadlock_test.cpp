// SPDX-License-Identifier: Apache-2.0
// Cyclic buffer dependency, interruption, memory, routing modes.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

struct Ring {
  Cluster cluster;
  std::vector<PortId> clockwise;  ///< port of switch i towards switch i + 1
};

// A ring of switches with one host each; every host sends to the second next one, always clockwise.
Ring ring(const Cluster& base, int size) {
  Ring out{base, {}};
  for (int i = 0; i < size; ++i) out.cluster.add_switch();
  for (int i = 0; i < size; ++i)
    out.clockwise.push_back(out.cluster
                                .join(out.cluster.switches[static_cast<std::size_t>(i)],
                                      out.cluster.switches[static_cast<std::size_t>((i + 1) % size)])
                                .first);
  for (int i = 0; i < size; ++i) out.cluster.add_host(out.cluster.switches[static_cast<std::size_t>(i)]);
  out.cluster.route();
  return out;
}

// More than a ring of such switches can hold before all of it waits.
Bytes more_than_fits(const Ring& given) {
  const auto& config = given.cluster.network.switch_configs.front();
  return config.pool ? 4 * *config.pool : Bytes{4'000'000};
}

void send_clockwise(Simulation& simulation, const Ring& given) {
  const auto& hosts = given.cluster.hosts;
  const std::size_t size = hosts.size();
  for (std::size_t i = 0; i < size; ++i) {
    const auto to = hosts[(i + 2) % size];
    QueuePair queue_pair{hosts[i], to};
    queue_pair.route = {given.clockwise[i], given.clockwise[(i + 1) % size],
                        given.cluster.network.ports[index(to)].peer};
    simulation.post({simulation.add_queue_pair(queue_pair), more_than_fits(given)});
  }
}

}  // namespace

TEST_CASE("a ring of lossless switches deadlocks and the report names the cycle") {
  for (const auto& preset : {k_htsim, k_spectrum, k_infiniband}) {
    for (const int size : {3, 5}) {
      CAPTURE(preset.switch_name);
      CAPTURE(size);
      auto base = Cluster(preset.switch_name, preset.transport_name);
      base.transport().congestion_control = "none";
      const auto given = ring(base, size);
      Simulation simulation(given.cluster.network);
      send_clockwise(simulation, given);
      CHECK(simulation.run() == StopReason::deadlock);
      const auto results = simulation.results();
      REQUIRE(results.deadlock.has_value());
      auto expected = given.clockwise;
      std::vector<PortId> found;
      for (const auto& entry : results.deadlock->cycle) found.push_back(entry.port);
      // Each waits for the next around the ring, from any start.
      const auto start = std::ranges::find(expected, found.empty() ? PortId{} : found.front());
      REQUIRE(start != expected.end());
      std::rotate(expected.begin(), start, expected.end());
      CHECK(found == expected);
      CHECK(results.deadlock->stuck.size() == static_cast<std::size_t>(size));
      CHECK(results.deadlock->reason.find("s0 -> s1, waits for s1 -> s2") != std::string::npos);
      CHECK(results.lossless_drops == 0);
    }
  }
}

TEST_CASE("the same ring finishes with shortest paths, and with lossy classes" * doctest::test_suite("long")) {
  auto base = Cluster("htsim-like", "htsim-like");
  base.transport().timeout = 100_us;
  const auto given = ring(base, 5);
  Simulation shortest(given.cluster.network);
  for (std::size_t i = 0; i < 5; ++i)
    shortest.post({shortest.add_queue_pair({given.cluster.hosts[i], given.cluster.hosts[(i + 1) % 5]}), 4_MiB});
  CHECK(shortest.run() == StopReason::finished);

  auto lossy = given;
  lossy.cluster.config().classes[3].lossless = false;
  lossy.cluster.config().lossy_limit = {40'000};
  lossy.cluster.transport().window = {100'000};
  Simulation dropping(lossy.cluster.network);
  send_clockwise(dropping, lossy);
  CHECK(dropping.run() == StopReason::finished);
  CHECK(dropping.results().lossy_drops > 0);

  // Without a window the queues stay full and the same flows lose all their packets.
  lossy.cluster.transport().window = {};
  Simulation futile(lossy.cluster.network);
  send_clockwise(futile, lossy);
  CHECK(futile.run() == StopReason::stalled);
  CHECK(futile.results().deadlock->reason.find("lost") != std::string::npos);
}

TEST_CASE("packets that take another lane behind the ring's last switch never wait in a circle") {
  const auto given = ring(Cluster("infiniband", "infiniband"), 5);
  const auto& hosts = given.cluster.hosts;
  for (const bool has_dateline : {false, true}) {
    CAPTURE(has_dateline);
    Simulation simulation(given.cluster.network);
    for (std::size_t i = 0; i < 5; ++i) {
      QueuePair queue_pair{hosts[i], hosts[(i + 2) % 5], 0, {}, {}, {}, {}};
      queue_pair.route = {given.clockwise[i], given.clockwise[(i + 1) % 5],
                          given.cluster.network.ports[index(hosts[(i + 2) % 5])].peer};
      // The link from switch 4 to switch 0, and what follows it, is lane 1.
      const auto first = static_cast<std::uint8_t>(i == 4 ? 1 : 0);
      const auto second = static_cast<std::uint8_t>(i >= 3 ? 1 : 0);
      if (has_dateline) queue_pair.lanes = {first, second, second};
      simulation.post({simulation.add_queue_pair(queue_pair), Bytes{4'000'000}});
    }
    CHECK(simulation.run() == (has_dateline ? StopReason::finished : StopReason::deadlock));
    const auto results = simulation.results();
    const auto wrap = index(given.clockwise[4]);
    CHECK((results.ports[wrap][1].sent_packets > 0) == has_dateline);
    CHECK(results.lossless_drops == 0);
    for (const auto& port : results.ports)
      for (const auto& lane : port) CHECK(lane.max_ingress <= 16_KiB);
  }
}

TEST_CASE("pauses around a circle of switches are no deadlock while one of them can still move") {
  for (const auto& preset : {k_htsim, k_spectrum, k_infiniband}) {
    CAPTURE(preset.switch_name);
    auto base = Cluster(preset.switch_name, preset.transport_name);
    base.transport().congestion_control = "none";
    const auto given = ring(base, 5);
    Options options;
    options.deadlock_interval = 5_us;  // looks in the middle of every pause
    Simulation simulation(given.cluster.network, options);
    // All but one of the flows that deadlock the ring, and a sender more: the circle fills but for one link.
    const auto& hosts = given.cluster.hosts;
    for (std::size_t i = 0; i < 4; ++i) {
      QueuePair queue_pair{hosts[i], hosts[(i + 2) % 5]};
      queue_pair.route = {given.clockwise[i], given.clockwise[(i + 1) % 5],
                          given.cluster.network.ports[index(hosts[(i + 2) % 5])].peer};
      for (int twice = 0; twice < 2; ++twice)
        simulation.post({simulation.add_queue_pair(queue_pair), more_than_fits(given)});
    }
    CHECK(simulation.run() == StopReason::finished);
    const auto results = simulation.results();
    CHECK_FALSE(results.deadlock.has_value());
    CHECK(results.pause_tree.size() > 3);
  }
}

TEST_CASE("a host that drains for milliseconds while everybody waits for it is no deadlock") {
  for (const char* name : {"htsim-like", "infiniband"}) {
    CAPTURE(name);
    auto cluster = star(4, name, "htsim-like", 100_ns);
    cluster.hca().receive_rate = Bandwidth{1e6};  // a packet in 4 ms
    Options options;
    options.deadlock_interval = 100_us;
    Simulation simulation(cluster.network, options);
    for (std::size_t i = 1; i < 4; ++i)
      simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[0]}), Bytes{100'000}});
    CHECK(simulation.run() == StopReason::finished);
    CHECK(simulation.results().lossless_drops == 0);
    CHECK(simulation.now() > 290_ms);
  }
}

TEST_CASE("a long computation between messages is no deadlock") {
  const auto cluster = star(2, "spectrum", "rocev2");
  Simulation simulation(cluster.network);
  const auto queue_pair = simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]});
  simulation.post({queue_pair, 4_KiB});
  simulation.at(1000_ms, [&] { simulation.post({queue_pair, 4_KiB}); });
  simulation.post({queue_pair, 4_KiB, Verb::write, 500_ms});
  CHECK(simulation.run() == StopReason::finished);
  CHECK(simulation.results().messages.back().delivered > 1000_ms);
  CHECK(simulation.now() == simulation.results().messages.back().completed);
}

TEST_CASE("an interrupted run has partial results, and goes on to the same end") {
  const auto cluster = star(9, "spectrum", "rocev2");
  std::atomic<bool> stop = false;
  Options options;
  options.stop = &stop;
  options.progress_events = 100;
  std::uint64_t reports = 0;
  options.progress = [&](const Progress& at) {
    ++reports;
    CHECK(at.now > Duration{});
  };
  const auto start = [&](Simulation& simulation) {
    for (std::size_t i = 1; i < 9; ++i)
      simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[0]}), 1_MiB});
  };
  Simulation whole(cluster.network);
  start(whole);
  CHECK(whole.run() == StopReason::finished);
  Simulation parts(cluster.network, options);
  start(parts);
  stop = true;
  CHECK(parts.run() == StopReason::interrupted);
  CHECK(reports == 1);
  const auto partial = parts.results();
  CHECK(partial.stop == StopReason::interrupted);
  CHECK(partial.packet_hops > 0);
  CHECK(partial.messages[0].started.ps >= 0);
  CHECK(partial.messages[0].delivered.ps < 0);
  stop = false;
  CHECK(parts.run(100_us) == StopReason::time_limit);
  CHECK(parts.now() == 100_us);
  CHECK(parts.run() == StopReason::finished);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(parts.results().messages[i].completed == whole.results().messages[i].completed);
}

TEST_CASE("spraying and adaptive routing fill two uplinks that one hash would leave empty") {
  for (const auto mode : {RoutingMode::spray, RoutingMode::adaptive}) {
    Cluster cluster("htsim-like", "htsim-like");
    cluster.transport().out_of_order = true;
    const auto leaf0 = cluster.add_switch();
    const auto leaf1 = cluster.add_switch();
    for (int i = 0; i < 2; ++i) {
      const auto spine = cluster.add_switch();
      cluster.rate = 50_Gbps;
      cluster.join(leaf0, spine);
      cluster.join(spine, leaf1);
    }
    cluster.rate = 100_Gbps;
    const auto from = cluster.add_host(leaf0);
    const auto to = cluster.add_host(leaf1);
    cluster.route();
    Options options;
    options.routing = mode;
    Simulation simulation(cluster.network, options);
    greedy(simulation, from, to);
    const auto capacity = goodput_capacity(cluster.transport(), 100_Gbps);
    CHECK(deviation(GoodputMeter(simulation).shares(1_ms, 3_ms, capacity)[0], 1) < 0.01);
    Simulation hashed(cluster.network);
    greedy(hashed, from, to);
    CHECK(deviation(GoodputMeter(hashed).shares(1_ms, 3_ms, capacity)[0], 0.5) < 0.01);
  }
}

TEST_CASE("ECMP spreads flows over all equal-cost ports, and the seed decides which") {
  Cluster cluster("htsim-like", "htsim-like");
  const auto leaf0 = cluster.add_switch();
  const auto leaf1 = cluster.add_switch();
  for (int i = 0; i < 8; ++i) {
    const auto spine = cluster.add_switch();
    cluster.join(leaf0, spine);
    cluster.join(spine, leaf1);
  }
  const auto from = cluster.add_host(leaf0);
  const auto to = cluster.add_host(leaf1);
  cluster.route();
  const auto ports_used = [&](std::uint64_t seed) {
    Options options;
    options.seed = seed;
    Simulation simulation(cluster.network, options);
    std::vector<std::uint32_t> uses(cluster.network.ports.size());
    for (int flow = 0; flow < 800; ++flow) ++uses[index(simulation.route(simulation.add_queue_pair({from, to}))[1])];
    return uses;
  };
  const auto uses = ports_used(1);
  for (const auto port : cluster.network.nodes[index(leaf0)].ports)
    if (cluster.network.node_of(cluster.network.ports[index(port)].peer).kind == NodeKind::packet_switch) {
      CHECK(uses[index(port)] > 60);
      CHECK(uses[index(port)] < 140);
    }
  CHECK(uses != ports_used(2));
}

TEST_CASE("time series sample queues and flows at the interval asked for") {
  const auto cluster = star(3, "htsim-like", "htsim-like");
  Options options;
  options.sample_interval = 10_us;
  options.sampled_queues = {{cluster.network.ports[index(cluster.hosts[0])].peer, 3}};
  options.sample_flows = true;
  options.record_pauses = true;
  Simulation simulation(cluster.network, options);
  for (std::size_t i = 1; i < 3; ++i)
    simulation.post({simulation.add_queue_pair({cluster.hosts[i], cluster.hosts[0]}), Bytes{4'000'000}});
  CHECK(simulation.run() == StopReason::finished);
  const auto results = simulation.results();
  REQUIRE(results.queue_samples.size() >= 60);
  CHECK(results.flow_samples.size() == 2 * results.queue_samples.size());
  for (std::size_t i = 0; i < results.queue_samples.size(); ++i)
    CHECK(results.queue_samples[i].time == 10_us * static_cast<std::int64_t>(i + 1));
  CHECK(deviation(results.queue_samples[30].rate.bytes_per_s, 12.5e9) < 0.05);
  CHECK(results.queue_samples[30].queue.value > 50'000);
  Duration paused{};
  for (const auto& interval : results.pause_intervals) {
    CHECK(interval.root == options.sampled_queues[0].port);
    if (interval.paused.port == cluster.hosts[1]) paused += interval.end - interval.begin;
  }
  CHECK(paused == results.ports[index(cluster.hosts[1])][3].paused);
  CHECK(paused.ps > 0);
}

TEST_CASE("faults of a network are told, all of them") {
  auto cluster = star(2, "spectrum", "rocev2");
  CHECK(validate(cluster.network).empty());
  Cluster apart("spectrum", "rocev2");
  for (int i = 0; i < 2; ++i) apart.add_host(apart.add_switch());
  apart.route();
  CHECK(validate(apart.network).size() == 2);  // one way and the other
  cluster.config().cell = {0};
  cluster.transport().mtu = {0};
  CHECK(validate(cluster.network).size() == 2);
  auto small = star(32, "spectrum", "rocev2");
  small.config().pfc.headroom = 1_KiB;
  const auto warnings = validate(small.network);
  CHECK(warnings.size() == 32);
  CHECK(!has_errors(warnings));
  small.config().pfc.headroom = 1_MiB;
  for (const std::optional<Bytes> pool : {std::optional<Bytes>{}, std::optional<Bytes>{1_MiB}}) {
    small.config().pool = pool;  // is no memory beside the buffer
    CHECK(has_errors(validate(small.network)));
  }
}

TEST_CASE("a shared pool is never more than what headroom and reserved space leave of the memory") {
  const auto largest_use = [](Bytes pool) {
    auto cluster = star(3, "spectrum", "rocev2");
    cluster.transport().congestion_control = "none";
    cluster.config().buffer = 1_MiB;
    cluster.config().pool = pool;
    Simulation simulation(cluster.network);
    for (std::size_t i = 1; i < 3; ++i) greedy(simulation, cluster.hosts[i], cluster.hosts[0]);
    simulation.run(2_ms);
    const auto results = simulation.results();
    CHECK(results.lossless_drops == 0);
    return *std::ranges::max_element(results.max_switch_buffer);
  };
  CHECK(largest_use(8_MiB) <= 1_MiB);
  CHECK(largest_use(8_MiB) == largest_use(1_MiB));
  CHECK(largest_use(8_MiB) > largest_use(256_KiB));
}

TEST_CASE("headroom of the SN2700 agrees with its published table within 2 KiB") {
  struct Row {
    std::int64_t gbps;
    double meters;
    std::int64_t xoff;
  };
  for (const auto& row : {Row{10, 5, 29696},
                          {25, 5, 29696},
                          {40, 5, 29696},
                          {50, 5, 29696},
                          {100, 5, 30720},
                          {25, 40, 31744},
                          {40, 40, 32768},
                          {50, 40, 33792},
                          {100, 40, 38912},
                          {25, 300, 48128},
                          {40, 300, 59392},
                          {50, 300, 66560},
                          {100, 300, 104448}}) {
    CAPTURE(row.gbps);
    CAPTURE(row.meters);
    const auto headroom =
        spectrum_headroom({.rate = Bandwidth{static_cast<double>(row.gbps) * 0.125e9}, .cable_m = row.meters});
    CHECK(std::abs(headroom.xoff.value - row.xoff) <= 2048);
    CHECK(headroom.xon == 19_KiB);
    CHECK(headroom.size == headroom.xon + headroom.xoff);
  }
  CHECK(pause_response_limit(100_Gbps) == from_seconds(394 * 512 / 100e9));
  CHECK(cable_delay(100).ps == 505'051);
}
