// SPDX-License-Identifier: Apache-2.0
// The executor against a plain list scheduler, hand-computed slowdowns, rings by their recurrence, and packets against
// fluid shares.
#include "engine/executor.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "engine/fluid.hpp"
#include "engine/packet_run.hpp"
#include "engine/ring_rounds.hpp"
#include "fabricast/models/planner.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/engine/bench.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using engine::OperationTiming;
using models::Flow;
using models::Node;
using models::NodeKind;
using models::OperationPlan;
using models::RepeatOrder;
using test::Bench;

namespace {

Node delay(Duration time, std::vector<int> after = {}, int stream = -1) {
  Node node;
  node.kind = NodeKind::delay;
  node.fixed = {{"delay", time, "", ""}};
  node.after = std::move(after);
  node.stream = stream;
  return node;
}

Node compute(Duration work, std::vector<int> after = {}, int stream = -1) {
  Node node;
  node.kind = NodeKind::compute;
  node.work = work;
  node.work_name = "work";
  node.after = std::move(after);
  node.stream = stream;
  return node;
}

Node transfer(double bytes, int resource, Duration latency = {}, std::vector<int> after = {}, int stream = -1) {
  Node node;
  Flow flow;
  flow.bytes = bytes;
  flow.crossings = {{resource, 1}};
  flow.latency = latency;
  flow.latency_terms = {{"wire", latency, "", ""}};
  node.flows = {flow};
  node.after = std::move(after);
  node.stream = stream;
  return node;
}

/// Within `slack` and a part in 1e9: the clock below is a double.
bool is_near(Duration a, Duration b, std::int64_t slack = 2) {
  return std::abs(a.ps - b.ps) <= slack + std::abs(b.ps) / 100'000'000;
}

/// A random graph of nodes that meet on no resource.
OperationPlan random_plan(Bench& bench, test::Random& random, std::size_t num_nodes, std::size_t num_streams) {
  OperationPlan plan;
  auto& program = plan.program;
  program.num_devices = static_cast<int>(num_streams);
  for (std::size_t s = 0; s < num_streams; ++s) program.streams.push_back({"stream", static_cast<int>(s)});
  for (std::size_t n = 0; n < num_nodes; ++n) {
    std::vector<int> after;
    for (std::uint64_t e = random.next(4); n > 0 && e > 0; --e) after.push_back(static_cast<int>(random.next(n)));
    const int stream = static_cast<int>(random.next(num_streams + 1)) - 1;
    const Duration time{static_cast<std::int64_t>(random.next(30'000'000))};
    const auto kind = random.next(3);
    if (kind == 0) program.nodes.push_back(delay(time, after, stream));
    if (kind == 1) program.nodes.push_back(compute(time, after, stream));
    if (kind == 2)
      program.nodes.push_back(transfer(1e3 * static_cast<double>(random.next(100)),
                                       bench.resource(static_cast<double>(1 + random.next(20))),
                                       Duration{static_cast<std::int64_t>(random.next(4'000'000))}, after, stream));
    program.nodes.back().repeat = static_cast<std::int64_t>(1 + random.next(3));
  }
  return plan;
}

/// How long a node takes by itself.
Duration alone(const Bench& bench, const Node& node) {
  auto once = models::sum(node.fixed) + node.work;
  if (!node.flows.empty()) {
    const auto& flow = node.flows[0];
    once += flow.latency + from_seconds(flow.bytes / bench.resources.capacity(flow.crossings[0].resource));
  }
  return node.repeat * once;
}

}  // namespace

TEST_CASE("random graphs whose nodes do not meet start and end as a list scheduler says") {
  Bench bench;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto num_streams = 1 + random.next(5);
    const auto plan = random_plan(bench, random, 2 + random.next(60), num_streams);
    const auto timing = bench.timing(plan, random.next(2) == 0);
    std::vector<Duration> ends;
    std::vector<Duration> free(num_streams);
    Duration last;
    for (std::size_t n = 0; n < plan.program.nodes.size(); ++n) {
      CAPTURE(n);
      const auto& node = plan.program.nodes[n];
      Duration start = node.stream < 0 ? Duration{} : free[static_cast<std::size_t>(node.stream)];
      for (const int earlier : node.after) start = std::max(start, ends[static_cast<std::size_t>(earlier)]);
      ends.push_back(start + alone(bench, node));
      if (node.stream >= 0) free[static_cast<std::size_t>(node.stream)] = ends.back();
      last = std::max(last, ends.back());
      CHECK(is_near(timing.nodes[n].start, start, 10 * static_cast<std::int64_t>(n + 1)));
      CHECK(is_near(timing.nodes[n].end, ends.back(), 10 * static_cast<std::int64_t>(n + 1)));
    }
    CHECK(is_near(timing.total, last, 600));
  }
}

TEST_CASE("nodes of a stream run one at a time in the order of the list, whatever flows share and slow") {
  Bench bench;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    auto plan = random_plan(bench, random, 60, 4);
    const int shared = bench.resource(2);
    for (auto& node : plan.program.nodes) {
      for (auto& flow : node.flows) flow.crossings.push_back({shared, 1});
      if (!node.flows.empty()) node.slows = {{static_cast<int>(random.next(4)), 0.3}};
    }
    const auto timing = bench.timing(plan);
    std::vector<Duration> free(4);
    for (std::size_t n = 0; n < plan.program.nodes.size(); ++n) {
      const auto& node = plan.program.nodes[n];
      const auto& one = timing.nodes[n];
      for (const int earlier : node.after) CHECK(one.start >= timing.nodes[static_cast<std::size_t>(earlier)].end);
      if (node.stream >= 0) {
        CHECK(one.start >= free[static_cast<std::size_t>(node.stream)]);
        free[static_cast<std::size_t>(node.stream)] = one.end;
      }
      CHECK(one.end - one.start + Duration{20} >= alone(bench, node));
      if (node.kind == NodeKind::compute) CHECK(one.end - one.start == alone(bench, node) + one.slowed);
    }
  }
}

TEST_CASE("a node waits for the last of all it comes after") {
  Bench bench;
  OperationPlan plan;
  auto& nodes = plan.program.nodes;
  nodes = {delay(3_us), compute(9_us), transfer(5e3, bench.resource(1), 1_us), delay(1_us, {0, 1, 2}), delay(1_us)};
  plan.before = {{"launch", 4_us, "", ""}};
  const auto timing = bench.timing(plan);
  CHECK(timing.nodes[2].end == 6_us);
  CHECK(timing.nodes[3].start == 9_us);
  CHECK(timing.nodes[4].end == 1_us);
  CHECK(timing.total == 14_us);
}

TEST_CASE("flows slow compute on their device while they are active, to the picosecond") {
  Bench bench;
  OperationPlan plan;
  auto& program = plan.program;
  program.num_devices = 2;
  program.streams = {{"GPU 0", 0}, {"GPU 1", 1}, {"network", -1}};
  program.nodes = {compute(100_us, {}, 0), compute(100_us, {}, 1), delay(20_us)};
  program.nodes.push_back(transfer(30e3, bench.resource(1), {}, {2}, 2));  // from 20 to 50 us
  program.nodes[3].slows = {{0, 0.5}};
  // 20 us at full rate, 30 us at 1 / 1.5 do 20 us, 60 us are left at 50 us.
  auto timing = bench.timing(plan);
  CHECK(timing.nodes[0].end == 110_us);
  CHECK(timing.nodes[0].slowed == 10_us);
  CHECK(timing.nodes[0].work == 100_us);
  CHECK(timing.nodes[1].end == 100_us);
  CHECK(timing.nodes[1].slowed == 0_us);
  // A second one from 40 to 160 us: 20 + 20/1.5 + 10/1.75 us done at 50 us, the rest at 1 / 1.25.
  program.nodes.push_back(delay(40_us));
  program.nodes.push_back(transfer(120e3, bench.resource(1), {}, {4}));
  program.nodes[5].slows = {{0, 0.25}, {1, 1}};
  timing = bench.timing(plan);
  const double done = 20 + 20 / 1.5 + 10 / 1.75;
  CHECK(timing.nodes[0].end.us() == test::approx(50 + (100 - done) * 1.25).epsilon(1e-8));
  CHECK(timing.nodes[1].end == 160_us);  // 40 alone, 60 at half the rate, as long as the flow
  // Work that starts beside a flow, and one that is over before it.
  program.nodes.push_back(compute(8_us, {4}, 1));
  timing = bench.timing(plan);
  CHECK(timing.nodes[6].start == timing.nodes[1].end);
  CHECK(timing.nodes[6].end == 168_us);
}

TEST_CASE("repeats of work and of flows slow each other repeat by repeat") {
  Bench bench;
  OperationPlan plan;
  auto& program = plan.program;
  program.num_devices = 1;
  program.streams = {{"GPU", 0}};
  // Flows of 10 us after pauses of 10 us: active from 10 to 20, 30 to 40, 50 to 60 us.
  program.nodes = {transfer(10e3, bench.resource(1)), compute(12_us, {}, 0)};
  program.nodes[0].fixed = {{"pause", 10_us, "", ""}};
  program.nodes[0].repeat = 3;
  program.nodes[0].slows = {{0, 1}};
  program.nodes[1].fixed = {{"launch", 3_us, "", ""}};
  program.nodes[1].repeat = 2;
  const auto timing = bench.timing(plan);
  // 3 to 10: 7 done, 10 to 20: 12 done; launch to 23; 7 done at 30, 12 at 40.
  CHECK(timing.nodes[1].end == 40_us);
  CHECK(timing.nodes[1].slowed == 10_us);
  CHECK(timing.nodes[1].fixed == 3_us);
  CHECK(timing.nodes[0].end == 60_us);
}

TEST_CASE("a chain alone takes what it takes through the executor") {
  Bench bench;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto loose = random_plan(bench, random, 20, 2);
    OperationPlan chain;
    const int shared = bench.resource(3);
    for (auto node : loose.program.nodes) {
      node.after.clear();
      node.stream = -1;
      for (std::uint64_t more = random.next(4); !node.flows.empty() && more > 0; --more) {
        node.flows.push_back(node.flows[0]);
        node.flows.back().bytes = 1e3 * static_cast<double>(1 + random.next(300));
        node.flows.back().crossings = {{shared, 1}};
      }
      chain.program.then(std::move(node));
    }
    const auto quick = bench.timing(chain);
    const auto expanded = bench.timing(chain, true);
    CHECK(is_near(quick.total, expanded.total, 400));
    for (std::size_t n = 0; n < quick.nodes.size(); ++n) {
      CAPTURE(n);
      CHECK(is_near(quick.nodes[n].start, expanded.nodes[n].start, 400));
      CHECK(is_near(quick.nodes[n].end, expanded.nodes[n].end, 400));
      CHECK(is_near(quick.nodes[n].transfer, expanded.nodes[n].transfer, 4));
      CHECK(quick.nodes[n].latency == expanded.nodes[n].latency);
    }
  }
}

TEST_CASE("rings beside each other on links of their own follow the ring's recurrence") {
  Bench bench;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    OperationPlan plan;
    std::vector<Duration> expected;
    for (int r = 0; r < 3; ++r) {
      Node ring;
      ring.order = RepeatOrder::neighbour;
      ring.repeat = static_cast<std::int64_t>(2 + random.next(12));
      std::vector<Duration> latencies;
      std::vector<Duration> transfers;
      for (std::uint64_t f = 2 + random.next(6); f > 0; --f) {
        const auto edge = transfer(1e3 * static_cast<double>(1 + random.next(200)), bench.resource(10),
                                   Duration{static_cast<std::int64_t>(random.next(20'000'000))});
        ring.flows.push_back(edge.flows[0]);
        latencies.push_back(edge.flows[0].latency);
        transfers.push_back(from_seconds(edge.flows[0].bytes / 10e9));
      }
      expected.push_back(engine::ring_time(latencies, transfers, ring.repeat));
      plan.program.nodes.push_back(std::move(ring));
    }
    const auto timing = bench.timing(plan);
    for (std::size_t r = 0; r < 3; ++r) CHECK(is_near(timing.nodes[r].end, expected[r], 200));
  }
}

TEST_CASE("a ring slows compute on its devices for as long as it turns") {
  Bench bench;
  OperationPlan plan;
  auto& program = plan.program;
  program.num_devices = 1;
  program.streams = {{"GPU 0", 0}};
  program.nodes = {compute(100_us, {}, 0)};
  Node ring;
  ring.order = RepeatOrder::neighbour;
  ring.repeat = 5;
  for (int f = 0; f < 3; ++f) ring.flows.push_back(transfer(10e3, bench.resource(10)).flows[0]);  // 1 us each
  ring.slows = {{0, 0.25}};
  program.nodes.push_back(ring);
  const auto timing = bench.timing(plan);
  CHECK(timing.nodes[1].end == 5_us);
  CHECK(timing.nodes[0].end == 101_us);  // 5 us at 1 / 1.25, the rest at full rate
}

TEST_CASE("a step of compute and transfers takes the same by packets and by fluid shares where nothing congests") {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: t\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
      "/topologies/roce-sn2700.yaml\nworkload:\n  benchmark: traffic\n  flows:\n"
      "    - {name: a, from: node0, to: node1, bytes: 8 MB}\n    - {name: b, from: node2, to: node3, bytes: 6 MB}\n"
      "  transport: {congestion_control: none}\n");
  models::Resources resources(loaded.topology);
  models::set_payload_shares(resources, loaded.parameters);
  models::PlanContext context{loaded.topology, loaded.scenario.software, loaded.parameters, resources};
  context.with_legs = true;
  const auto planner = models::make_planner(context, loaded.scenario.workloads[0]);
  REQUIRE(planner);
  const auto exchange = (*planner)->plan(1_MiB).program;
  OperationPlan step;
  auto& program = step.program;
  program.num_devices = 1;
  program.streams = {{"GPU compute", 0}, {"GPU network", -1}};
  for (int layer = 0; layer < 4; ++layer) {
    program.nodes.push_back(compute(500_us, {}, 0));
    const int last = program.append(exchange, {2 * layer}, 1);
    program.nodes[static_cast<std::size_t>(last)].slows = {{0, 0.2}};
  }
  const std::vector<engine::Job> jobs{{&step, {}}};
  const auto fluid = engine::run(resources, jobs)[0];
  const auto packet = engine::run_packets(loaded.parameters, resources, jobs, {&loaded.scenario.workloads[0]}, {});
  REQUIRE(packet);
  CHECK(packet->report.is_finished());
  CHECK(packet->timings[0].total.seconds() == test::approx(fluid.total.seconds()).epsilon(0.01));
  for (std::size_t n = 0; n < fluid.nodes.size(); ++n) {
    CAPTURE(n);
    CHECK(packet->timings[0].nodes[n].end.seconds() == test::approx(fluid.nodes[n].end.seconds()).epsilon(0.01));
  }
  // The network is the longer of both streams, and slows the compute.
  CHECK(fluid.total > 2_ms);
  CHECK(fluid.nodes[2].slowed > 50_us);
}

TEST_CASE("graphs start with their jobs and meet on links") {
  Bench bench;
  const int link = bench.resource(1);
  OperationPlan graph;
  graph.program.nodes = {transfer(10e3, link), delay(2_us)};
  OperationPlan late;
  late.program.then(transfer(10e3, link));
  // Alone from 0 to 5 us, together until the first has its 10 us of bytes at 15 us, the late one until 20 us.
  const auto both = engine::run(bench.resources, {{&graph, {}}, {&late, 5_us}});
  CHECK(both[0].total.us() == test::approx(15).epsilon(1e-6));
  CHECK(both[0].nodes[1].end == 2_us);
  CHECK(both[1].total.us() == test::approx(15).epsilon(1e-6));
  CHECK(both[1].nodes[0].start == 0_us);
}

TEST_CASE("the same graph gives the same times every time") {
  test::Random random(7);
  Bench bench;
  auto plan = random_plan(bench, random, 300, 6);
  const int shared = bench.resource(2);
  for (auto& node : plan.program.nodes) {
    for (auto& flow : node.flows) flow.crossings.push_back({shared, 1});
  }
  const auto first = bench.timing(plan);
  for (int i = 0; i < 5; ++i) {
    const auto again = bench.timing(plan);
    for (std::size_t n = 0; n < plan.program.nodes.size(); ++n) CHECK(again.nodes[n].end == first.nodes[n].end);
  }
}

TEST_CASE("100,000 nodes cost four times what 25,000 do, also when all end at the same moment") {
  Bench bench;
  std::vector<int> links;
  for (int l = 0; l < 16; ++l) links.push_back(bench.resource(10));
  const auto seconds = [&](int num_nodes, Duration time) {
    OperationPlan plan;
    auto& program = plan.program;
    program.num_devices = 16;
    for (int s = 0; s < 32; ++s) program.streams.push_back({"stream", s < 16 ? s : -1});
    for (int n = 0; n < num_nodes; ++n) {
      const int lane = n / 2 % 16;
      if (n % 2 == 0) {
        program.nodes.push_back(compute(time, n > 0 ? std::vector<int>{n - 1} : std::vector<int>{}, lane));
      } else {
        program.nodes.push_back(transfer(static_cast<double>(time.ps) * 1e-3, links[static_cast<std::size_t>(lane)],
                                         time, {n - 1}, 16 + lane));
        program.nodes.back().slows = {{lane, 0.1}};
      }
    }
    const auto begin = std::clock();
    const auto timing = bench.timing(plan);
    CHECK(timing.nodes.back().end == timing.total);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  for (const auto time : {Duration{1'000'000}, Duration{}}) {
    const double small = seconds(25'000, time);
    const double large = seconds(100'000, time);
    CAPTURE(small);
    CAPTURE(large);
    CHECK(large < 8 * small + 0.2);  // quadratic would be 16
  }
}
