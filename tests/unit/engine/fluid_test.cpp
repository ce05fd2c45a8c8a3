// SPDX-License-Identifier: Apache-2.0
// The fluid engine against closed forms, and every shortcut against full expansion.
#include <algorithm>
#include <cmath>

#include "engine/fluid.hpp"

#include "engine/host_limits.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/engine/bench.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using engine::Job;
using models::Flow;
using models::Node;
using models::OperationPlan;
using models::Resources;
using test::Bench;

namespace {

Flow flow(double bytes, std::vector<models::Crossing> crossings, Duration latency = {}) {
  Flow one;
  one.bytes = bytes;
  one.crossings = std::move(crossings);
  one.latency = latency;
  return one;
}

OperationPlan plan_of(std::vector<Flow> flows, std::int64_t repeat = 1) {
  OperationPlan plan;
  Node node;
  node.flows = std::move(flows);
  node.repeat = repeat;
  plan.program.then(std::move(node));
  return plan;
}

/// A node that starts when those before it have ended.
Node task(Flow flow, std::vector<int> after = {}) {
  Node node;
  node.flows = {std::move(flow)};
  node.after = std::move(after);
  return node;
}

std::vector<Duration> ends_of(const Bench& bench, std::vector<Node> nodes) {
  OperationPlan plan;
  plan.program.nodes = std::move(nodes);
  std::vector<Duration> ends;
  const auto timing = engine::run(bench.resources, {{&plan, {}}})[0];
  for (const auto& node : timing.nodes) ends.push_back(node.end);
  return ends;
}

Duration time_of(const Bench& bench, const OperationPlan& plan, bool full_expansion = false) {
  return engine::run(bench.resources, {{&plan, {}}}, {.full_expansion = full_expansion})[0].total;
}

}  // namespace

TEST_CASE("on an idle path a flow takes latency plus bytes over bandwidth, exactly") {
  Bench bench;
  const int a = bench.resource(0, 10);
  const int b = bench.resource(1, 4);
  const auto plan = plan_of({flow(1e6, {{a, 1}, {b, 1}}, 3_us)});
  CHECK(time_of(bench, plan).ps == 253'000'000);        // 3 us + 1 MB / 4 GB/s
  CHECK(time_of(bench, plan, true).ps == 253'000'000);  // through SimGrid
}

TEST_CASE("flows share a link equally whatever their latency") {
  Bench bench;
  const int a = bench.resource(0, 1);
  const auto ends = ends_of(bench, {task(flow(1e6, {{a, 1}}, 1_us)), task(flow(1e6, {{a, 1}}, 10_us))});
  // Alone from 1 to 10 us (9 kB), then half each: the first ends at 10 + 2 x 991 us, the second gets the rest alone.
  CHECK(ends[0].us() == test::approx(1992).epsilon(1e-9));
  CHECK(ends[1].us() == test::approx(2001).epsilon(1e-9));
}

TEST_CASE("the parking lot gets max-min rates") {
  Bench bench;
  const int a = bench.resource(0, 1);
  const int b = bench.resource(1, 3);
  // Long flow over both, one short flow on each: a is shared 0.5/0.5, b gives the rest 2.5 to its short flow.
  const auto ends =
      ends_of(bench, {task(flow(1e6, {{a, 1}, {b, 1}})), task(flow(1e6, {{a, 1}})), task(flow(1e6, {{b, 1}}))});
  CHECK(ends[0].us() == test::approx(2000));
  CHECK(ends[1].us() == test::approx(2000));
  CHECK(ends[2].us() == test::approx(400));
}

TEST_CASE("a flow that crosses a resource k times loads it k times, and a cap holds") {
  Bench bench;
  const int a = bench.resource(0, 8);
  CHECK(time_of(bench, plan_of({flow(1e6, {{a, 4}})})).us() == test::approx(500));
  auto capped = flow(1e6, {{a, 1}});
  capped.rate_cap = 1e9;
  CHECK(time_of(bench, plan_of({capped})).us() == test::approx(1000));
  CHECK(engine::binding_crossing(bench.resources, capped) == -1);
  CHECK(engine::binding_crossing(bench.resources, flow(1, {{a, 1}})) == 0);
}

TEST_CASE("leaving out dominated resources, and simulating equal rounds once, changes nothing") {
  Bench bench;
  std::vector<int> r;
  for (int i = 0; i < 6; ++i) r.push_back(bench.resource(i, 1.0 + 0.7 * i));
  std::vector<Flow> flows{flow(3e5, {{r[0], 1}, {r[1], 1}, {r[2], 1}}),
                          flow(5e5, {{r[1], 1}, {r[2], 1}, {r[3], 2}}, 2_us), flow(2e5, {{r[4], 1}, {r[5], 3}}, 1_us)};
  flows[2].rate_cap = 0.9e9;
  const auto plan = plan_of(flows, 7);
  CHECK(std::abs(time_of(bench, plan).ps - time_of(bench, plan, true).ps) <= 14);  // 2 ps per repeat
}

TEST_CASE("jobs on disjoint links do not notice each other, on a shared link each gets its share") {
  Bench bench;
  const int a = bench.resource(0, 1);
  const int b = bench.resource(1, 1);
  const auto first = plan_of({flow(1e6, {{a, 1}})});
  const auto second = plan_of({flow(1e6, {{b, 1}})});
  const auto rival = plan_of({flow(1e6, {{a, 1}})});
  const auto apart = engine::run(bench.resources, {{&first, {}}, {&second, {}}});
  CHECK(apart[0].total.us() == test::approx(1000));
  CHECK(apart[1].total.us() == test::approx(1000));
  const auto together = engine::run(bench.resources, {{&first, {}}, {&rival, {}}});
  CHECK(together[0].total.us() == test::approx(2000));
  // Started half way: alone for 500 us, shared for 1000, the late one alone for the last 500.
  const auto late = engine::run(bench.resources, {{&first, {}}, {&rival, 500_us}});
  CHECK(late[0].total.us() == test::approx(1500));
  CHECK(late[1].total.us() == test::approx(1500));
}

TEST_CASE("a coupled ring flow equals the ring expanded chunk by chunk") {
  for (const int n : {2, 3, 4, 8}) {
    CAPTURE(n);
    Bench bench;
    std::vector<int> link;
    for (int i = 0; i < n; ++i) link.push_back(bench.resource(i, 10));
    const double size = 8e6;
    // Node (step, rank): rank sends one chunk once it has received the chunk of the step before.
    std::vector<Node> tasks;
    const auto index = [n](int step, int rank) { return step * n + rank; };
    for (int step = 0; step < 2 * (n - 1); ++step) {
      for (int rank = 0; rank < n; ++rank) {
        tasks.push_back(task(flow(size / n, {{link[static_cast<std::size_t>(rank)], 1}}, 2_us)));
        if (step > 0) tasks.back().after = {index(step - 1, rank), index(step - 1, (rank + n - 1) % n)};
      }
    }
    Duration expanded;
    for (const auto end : ends_of(bench, tasks)) expanded = std::max(expanded, end);
    std::vector<models::Crossing> crossings;
    for (const int l : link) crossings.push_back({l, 1});
    const auto coupled = plan_of({flow(2.0 * (n - 1) / n * size, crossings, 2 * (n - 1) * 2_us)});
    CHECK(time_of(bench, coupled).seconds() == test::approx(expanded.seconds()).epsilon(1e-9));
  }
}

TEST_CASE("a simulation gives the same time however many ran before it") {
  Bench bench;
  const int a = bench.resource(0, 3);
  const auto plan = plan_of({flow(1e6, {{a, 1}}), flow(7e5, {{a, 1}}, 1_us)});
  const auto first = time_of(bench, plan);
  for (int i = 0; i < 200; ++i) CHECK(time_of(bench, plan) == first);
}
