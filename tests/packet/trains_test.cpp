// SPDX-License-Identifier: Apache-2.0
// Trains of packets: many packets as one event, and nothing else changes. Every run is compared, number by number, with
// the run packet by packet; random runs are counted by what they contain: each kind is known to have had trains.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/packet/fingerprint.hpp"
#include "tests/packet/networks.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;
using fabricast::test::Random;

namespace {
/// What happens on the way, besides the messages posted at the start.
struct Script {
  std::vector<Duration> stops;             ///< run() returns here and is called again
  Duration ends{INT64_MAX / 2};            ///< the same, and is not called again
  std::optional<Message> posted_later;     ///< by a timer at its start time
  std::optional<Message> posted_on_first;  ///< when the first message is delivered
};

struct Case : Traffic {
  Script script;
};

Results simulate(const Case& given, bool shortcuts = true) {
  auto simulation = given.simulation(shortcuts);
  const auto& script = given.script;
  if (script.posted_later) simulation.at(script.posted_later->start, [&] { simulation.post(*script.posted_later); });
  bool is_first = true;
  simulation.on_delivered([&](const Completion&) {
    if (is_first && script.posted_on_first) simulation.post(*script.posted_on_first);
    is_first = false;
  });
  for (const auto stop : script.stops) simulation.run(stop);
  simulation.run(script.ends);
  return simulation.results();
}

/// One flow of `size` between two hosts of a star.
Case single(const Preset& preset, Bytes size, Verb verb = Verb::write) {
  Case out;
  out.cluster = star(2, preset.switch_name, preset.transport_name);
  out.queue_pairs.push_back({out.cluster.hosts[0], out.cluster.hosts[1]});
  out.messages.push_back({QueuePairId{0}, size, verb, {}, 0});
  return out;
}

void check_same(const Case& given, double least_share) {
  const auto fast = simulate(given);
  const auto plain = simulate(given, false);
  CHECK(Fingerprint(fast).difference(Fingerprint(plain)) == "");
  CHECK(plain.trains == 0);
  CHECK(plain.train_packets == 0);
  CHECK(static_cast<double>(fast.train_packets) >= least_share * static_cast<double>(fast.delivered_packets));
}
// ---- random runs ----------------------------------------------------------------------------------------------------

void add_random_network(Random& random, Cluster& cluster) {
  const auto num_spines = static_cast<int>(random.next(4));
  std::vector<NodeId> leaves{cluster.add_switch()};
  if (num_spines > 0) leaves.push_back(cluster.add_switch());
  cluster.rate = random.pick<Bandwidth>({100_Gbps, 200_Gbps, {6.818e9}});
  cluster.delay = random.pick<Duration>({5_ns, 200_ns, 1_us});
  for (int i = 0; i < num_spines; ++i) {
    const auto spine = cluster.add_switch();
    for (const auto leaf : leaves) cluster.join(leaf, spine);
  }
  for (const auto leaf : leaves) {
    cluster.rate = random.pick<Bandwidth>({100_Gbps, 100_Gbps, 25_Gbps, {6.818e9}});
    for (auto hosts = 2 + random.next(2); hosts > 0; --hosts) cluster.add_host(leaf);
  }
  cluster.route();
}

void add_random_transport(Random& random, Case& out) {
  auto& config = out.cluster.config();
  auto& transport = out.cluster.transport();
  auto& hca = out.cluster.hca();
  config.classes[2].lossless = true;
  config.classes[2].weight = static_cast<std::uint32_t>(1 + random.next(50));
  config.pfc.headroom_bandwidth_delays = 0;
  config.pfc.alpha = random.pick<double>({0.0625, 0.5, 1, 8});
  if (random.next(3) == 0)
    config.pfc.pause_quanta = static_cast<std::uint32_t>(100 + random.next(random.next(2) == 0 ? 1'000 : 65'000));
  if (random.next(3) == 0) config.pfc.xoff = Bytes{static_cast<std::int64_t>(8'000 + random.next(60'000))};
  config.latency = random.pick<Duration>({0_ns, 300_ns});
  config.cut_through = random.next(2) == 0;
  config.credits.input_speedup = static_cast<std::uint32_t>(1 + random.next(3));
  config.credits.has_virtual_output_queues = random.next(2) == 0;
  if (random.next(3) == 0) hca.receive_rate = random.pick<Bandwidth>({4_GBps, 2.5_GBps});
  if (random.next(4) == 0) hca.packet_gap = 400_ns;
  if (random.next(4) == 0) hca.message_gap = 5_us;
  if (random.next(3) == 0) hca.receive_latency = 700_ns;
  transport.congestion_control = random.next(2) == 0 ? "dcqcn" : "none";
  transport.ack_every = random.pick<std::uint32_t>({1, 4, 16, 16, 17});
  if (random.next(3) == 0) transport.window = {random.pick<std::int64_t>({50'000, 100'000, 400'000})};
}

void add_random_traffic(Random& random, Case& out) {
  const auto& hosts = out.cluster.hosts;
  const auto num_queue_pairs = 1 + random.next(4);
  while (out.queue_pairs.size() < num_queue_pairs) {
    QueuePair queue_pair{random.pick(hosts), random.pick(hosts)};
    if (queue_pair.source == queue_pair.destination) continue;
    if (random.next(4) == 0) queue_pair.traffic_class = 2;
    out.queue_pairs.push_back(queue_pair);
  }
  const auto message = [&](Duration latest) {
    Message posted{QueuePairId{static_cast<std::uint32_t>(random.next(num_queue_pairs))}, Bytes{}};
    posted.bytes = {static_cast<std::int64_t>(random.next(4) == 0 ? random.next(20'000) : random.next(4'000'000))};
    if (random.next(4) == 0) posted.verb = Verb::read;
    posted.start = Duration{static_cast<std::int64_t>(random.next(static_cast<std::uint64_t>(latest.ps)))};
    return posted;
  };
  for (auto count = 1 + random.next(2 * num_queue_pairs); count > 0; --count)
    out.messages.push_back(message(random.pick<Duration>({1_ns, 400_us})));
  if (random.next(3) == 0) out.script.posted_later = message(600_us);
  if (random.next(3) == 0) out.script.posted_on_first = message(1_ns);
  while (random.next(3) == 0)
    out.script.stops.push_back((out.script.stops.empty() ? Duration{} : out.script.stops.back()) +
                               Duration{static_cast<std::int64_t>(random.next(300'000'000))});
}

void add_random_observation(Random& random, Case& out) {
  auto& options = out.options;
  options.deadlock_interval = random.pick<Duration>({1_ms, 50_us});
  options.record_pauses = random.next(4) == 0;
  if (random.next(3) > 0) return;
  options.sample_interval = random.pick<Duration>({3_us, 100_us});
  options.sample_flows = true;
  for (std::uint32_t port = 0; port < out.cluster.network.ports.size(); ++port)
    options.sampled_queues.push_back({PortId{port}, 3});
}

/// Stages inside hosts, some shared, for most messages of every third run.
void add_random_host_paths(std::uint64_t seed, Case& out) {
  if (seed % 3 != 1) return;
  Random random(seed + 1'000'000);
  for (auto count = 1 + random.next(3); count > 0; --count)
    out.stages.push_back(random.pick<Bandwidth>({1.3_GBps, 2_GBps, 4_GBps, 9_GBps, 20_GBps}));
  const auto uses = [&] {
    std::vector<StageUse> side;
    for (std::uint32_t stage = 0; stage < out.stages.size(); ++stage)
      if (random.next(2) == 0) side.push_back({StageId{stage}, random.pick<double>({1, 0.5, 2})});
    return side;
  };
  for (auto count = 1 + random.next(3); count > 0; --count) out.host_paths.push_back({uses(), uses()});
  const auto set = [&](Message& message) {
    message.path = HostPathId{static_cast<std::uint32_t>(random.next(out.host_paths.size() + 1))};
  };
  for (auto& message : out.messages) set(message);
  if (out.script.posted_later) set(*out.script.posted_later);
  if (out.script.posted_on_first) set(*out.script.posted_on_first);
}

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case out;
  const auto preset = random.pick<Preset>({k_htsim, k_ns3, k_spectrum, k_spectrum, k_infiniband, k_infiniband});
  out.cluster = Cluster(preset.switch_name, preset.transport_name);
  add_random_transport(random, out);
  out.options.routing =
      random.pick<RoutingMode>({RoutingMode::ecmp, RoutingMode::ecmp, RoutingMode::spray, RoutingMode::adaptive});
  out.cluster.transport().out_of_order = out.options.routing != RoutingMode::ecmp;
  out.options.seed = seed;
  add_random_network(random, out.cluster);
  add_random_traffic(random, out);
  add_random_host_paths(seed, out);
  add_random_observation(random, out);
  if (random.next(5) == 0) {  // less headroom than arrives: drops, go-back-N and timeouts
    out.cluster.config().pfc.headroom = Bytes{6'000};
    out.cluster.transport().timeout = 100_us;
  }
  if (random.next(3) == 0) out.cluster.transport().mtu = {random.pick<std::int64_t>({1024, 2048})};
  if (random.next(4) == 0) out.cluster.config().classes[3].ecn = {true, 50_KiB, 50_KiB, 1};  // marks without chance
  return out;
}

/// Names of what a run contains, for counting.
std::vector<std::string> contents(const Case& given, const Results& results) {
  std::vector<std::string> out{"any"};
  const auto add = [&](const char* name, bool has) {
    if (has) out.emplace_back(name);
  };
  bool has_pauses = false, has_starvation = false;
  for (const auto& port : results.ports)
    for (const auto& entry : port) {
      has_pauses = has_pauses || entry.pauses_sent > 0;
      has_starvation = has_starvation || entry.starved.ps > 0;
    }
  std::uint64_t cnps = 0;
  std::uint64_t retransmitted = 0;
  for (const auto& pair : results.queue_pairs) cnps += pair.cnps, retransmitted += pair.retransmitted;
  const auto& config = given.cluster.network.switch_configs[0];
  add("pauses", has_pauses);
  add("quanta", has_pauses && config.pfc.pause_quanta > 0);
  add("credits", config.flow_control == packet::FlowControl::credits);
  add("input queues", config.flow_control == packet::FlowControl::credits && !config.credits.has_virtual_output_queues);
  add("starvation", has_starvation);
  add("CNPs", cnps > 0);
  add("retransmission", retransmitted > 0);
  add("drops", results.lossless_drops > 0);
  add("slow receiver", given.cluster.network.hca_configs[0].receive_rate.bytes_per_s > 0);
  add("host stages", std::ranges::any_of(given.messages, [](const auto& m) { return m.path != HostPathId::none; }));
  add("window", given.cluster.network.hca_configs[0].transport.window.value > 0);
  add("spray", given.options.routing == RoutingMode::spray);
  add("adaptive", given.options.routing == RoutingMode::adaptive);
  add("samples", given.options.sample_interval.ps > 0);
  add("stops", !given.script.stops.empty());
  add("timer", given.script.posted_later.has_value());
  add("READ", std::ranges::any_of(given.messages, [](const auto& m) { return m.verb == Verb::read; }));
  add("many messages", given.messages.size() > 3);
  add("two classes", std::ranges::any_of(given.queue_pairs, [](const auto& q) { return q.traffic_class == 2; }));
  add("many queue pairs", given.queue_pairs.size() > 2);
  return out;
}

// Drops leave few runs quiet enough.
const std::vector<std::string> k_kinds_with_trains{
    "pauses",        "quanta",      "credits", "input queues",  "starvation",  "CNPs",
    "slow receiver", "host stages", "window",  "spray",         "adaptive",    "samples",
    "stops",         "timer",       "READ",    "many messages", "two classes", "many queue pairs"};

}  // namespace

TEST_CASE("random runs with trains are the runs packet by packet, and every kind of traffic has trains" *
          doctest::test_suite("long")) {
  constexpr std::uint64_t num_seeds = 300;
  std::map<std::string, std::uint64_t> trains;
  for (std::uint64_t seed = 1; seed <= num_seeds; ++seed) {
    CAPTURE(seed);
    const auto given = random_case(seed);
    const auto fast = simulate(given);
    const auto plain = simulate(given, false);
    CHECK(Fingerprint(fast).difference(Fingerprint(plain)) == "");
    CHECK(fast.train_packets <= fast.delivered_packets);
    for (const auto& kind : contents(given, fast)) trains[kind] += fast.trains;
  }
  for (const auto& kind : k_kinds_with_trains) {
    CAPTURE(kind);
    CHECK(trains[kind] > 0);
  }
}

// Data that came out of order end a READ before its request is acknowledged, and a dropped acknowledgement has the
// request sent again, later than everything else. A seed with such an end.
TEST_CASE("a run ends when all messages are done, even if a READ request is then still sent again") {
  const auto given = random_case(3393);
  const auto fast = simulate(given);
  CHECK(fast.stop == StopReason::finished);
  for (const auto& message : fast.messages) CHECK(message.completed.ps > 0);
  CHECK(Fingerprint(fast).difference(Fingerprint(simulate(given, false))) == "");
}

TEST_CASE("a long write or READ over a quiet fabric is one train per look for deadlocks") {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum, k_infiniband}) {
    for (const auto verb : {Verb::write, Verb::read}) {
      CAPTURE(preset.switch_name);
      CAPTURE(static_cast<int>(verb));
      auto given = single(preset, 256_MiB, verb);
      const auto fast = simulate(given);
      const auto looks = static_cast<std::uint64_t>(fast.now.ps / given.options.deadlock_interval.ps);
      CHECK(fast.trains >= looks);
      CHECK(fast.trains <= looks + 2);
      CHECK(fast.train_packets * 100 >= fast.delivered_packets * 92);
      CHECK(fast.events * 3 <= fast.packet_hops);
      given.messages[0].bytes = 16_MiB;
      check_same(given, 0.88);
    }
  }
}

TEST_CASE("marks that do not depend on chance go in trains") {
  Case given;
  given.cluster = star(3, "spectrum", "rocev2");
  auto& config = given.cluster.config();
  config.classes[3].ecn = {true, 20_KiB, 20_KiB, 1};
  config.pfc.xoff = 64_KiB;
  given.cluster.transport().congestion_control = "none";
  for (const std::size_t from : {1U, 2U})
    given.queue_pairs.push_back({given.cluster.hosts[from], given.cluster.hosts[0]});
  for (const std::uint32_t pair : {0U, 1U}) given.messages.push_back({QueuePairId{pair}, 16_MiB, Verb::write, {}, 0});
  CHECK(simulate(given).queue_pairs[0].marked > 1'000);
  check_same(given, 0.2);
}

TEST_CASE("progress counts the bytes of trains") {
  auto given = single(k_spectrum, 16_MiB);
  Bytes last{};
  given.options.progress_events = 1;
  given.options.progress = [&](const Progress& progress) { last = progress.delivered; };
  CHECK(simulate(given).trains > 0);
  CHECK(last == 16_MiB);
}

TEST_CASE("without shortcuts there are no trains") {
  const auto plain = simulate(single(k_spectrum, 16_MiB), false);
  CHECK(plain.trains == 0);
  CHECK(plain.train_packets == 0);
  CHECK(plain.events > plain.packet_hops);
}

TEST_CASE("a train ends before a message does, whatever its last packet is") {
  for (const std::int64_t rest : {0, 1, 64, 2'000, 4'000, 4'095}) {
    CAPTURE(rest);
    for (const auto& preset : {k_spectrum, k_infiniband}) {
      CAPTURE(preset.switch_name);
      auto given = single(preset, 4_MiB + Bytes{rest});
      given.messages.push_back({QueuePairId{0}, Bytes{1 + rest}, Verb::write, {}, 0});
      given.messages.push_back({QueuePairId{0}, 1_MiB + Bytes{rest}, Verb::read, {}, 0});
      given.messages.push_back({QueuePairId{0}, 2_MiB + Bytes{rest}, Verb::send, {}, 0});
      check_same(given, 0.5);
    }
  }
}

// A lane buffer of three packets gives less than a round trip: the sender waits for credits all the time, and the last
// packet needs fewer than the others.
TEST_CASE("the short last packet of a sender without credits does not wait for as many as the packet before") {
  for (std::int64_t packets = 600; packets < 632; ++packets) {
    CAPTURE(packets);
    auto given = single(k_infiniband, Bytes{packets * 4096 + 100});
    given.cluster.config().credits.lane_buffer = 12_KiB;
    check_same(given, 0.7);
  }
}

TEST_CASE("pauses that repeat go in trains, with their counts, times and causes") {
  for (const std::uint32_t quanta : {0U, 40U, 400U, 65'535U}) {
    CAPTURE(quanta);
    auto given = single(k_spectrum, 16_MiB);
    given.cluster.hca().receive_rate = 4_GBps;
    given.cluster.config().pfc.xoff = 64_KiB;
    given.cluster.config().pfc.pause_quanta = quanta;
    check_same(given, quanta < 1'000 ? 0.4 : 0);  // longer ones are repeated at times of their own
    const auto results = simulate(given);
    CHECK(results.ports[0][3].pauses_received > 50);
    CHECK(!results.pause_tree.empty());
    given.options.record_pauses = true;  // every interval is wanted: no trains while there are pauses
    check_same(given, 0);
    CHECK(simulate(given).pause_intervals.size() >= results.ports[0][3].pauses_received);
  }
}

// Marks without chance, so that DCQCN acts: two senders share one link and then go on at rates that rise in ticks.
TEST_CASE("between two ticks of DCQCN paced packets go in trains") {
  for (const std::int64_t byte_counter : {0, 2'000'000, 10'000'000}) {
    CAPTURE(byte_counter);
    Case given;
    given.cluster = star(3, "spectrum", "rocev2");
    auto& ecn = given.cluster.config().classes[3].ecn;
    ecn.min = ecn.max = 100_KiB;
    given.cluster.transport().dcqcn.byte_counter = {byte_counter};
    for (const std::size_t from : {1U, 2U})
      given.queue_pairs.push_back({given.cluster.hosts[from], given.cluster.hosts[0]});
    given.messages.push_back({QueuePairId{0}, 24_MiB, Verb::write, {}, 0});
    given.messages.push_back({QueuePairId{1}, 2_MiB, Verb::write, {}, 0});
    const auto results = simulate(given);
    CHECK(results.queue_pairs[0].cnps > 0);
    CHECK(results.trains > 5);
    check_same(given, 0.05);
  }
}

TEST_CASE("trains come back after drops, timeouts and packets sent again") {
  Case given;
  given.cluster = star(5, "spectrum", "rocev2");
  auto& cluster = given.cluster;
  cluster.config().pfc.headroom = Bytes{5'000};
  cluster.config().pfc.xoff = 20_KiB;
  cluster.config().classes[3].ecn.enabled = false;
  cluster.transport().timeout = 50_us;
  for (std::size_t from = 1; from < 5; ++from) given.queue_pairs.push_back({cluster.hosts[from], cluster.hosts[0]});
  for (std::uint32_t i = 0; i < 4; ++i)
    given.messages.push_back({QueuePairId{i}, i == 0 ? 16_MiB : 64_KiB, Verb::write, {}, 0});
  const auto results = simulate(given);
  CHECK(results.lossless_drops > 0);
  CHECK(results.queue_pairs[0].retransmitted > 0);
  check_same(given, 0.6);
}

TEST_CASE("a look at a run in the middle of a train shows what it would show without") {
  auto given = single(k_spectrum, 64_MiB);
  for (std::int64_t i = 1; i < 40; ++i) given.script.stops.push_back(Duration{i * 123'456'789});
  for (std::size_t shown = 0; shown < 40; shown += 13) {
    auto part = given;
    part.script.stops.resize(shown);
    part.script.ends = Duration{static_cast<std::int64_t>(shown + 1) * 123'456'789};
    CAPTURE(shown);
    check_same(part, 0.2);
  }
  check_same(given, 0.5);
}
