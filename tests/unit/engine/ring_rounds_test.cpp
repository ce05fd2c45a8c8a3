// SPDX-License-Identifier: Apache-2.0
// Rings whose repeats wait for neighbours only: the recurrence against closed forms and against the ring as tasks.
#include <cmath>

#include "engine/ring_rounds.hpp"

#include "engine/fluid.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/engine/bench.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using engine::RingProgress;
using models::Flow;
using models::Node;
using models::OperationPlan;
using models::RepeatOrder;
using test::Bench;

namespace {

Flow edge(double bytes, int resource, Duration latency) {
  Flow flow;
  flow.bytes = bytes;
  flow.crossings = {{resource, 1}};
  flow.latency = latency;
  flow.latency_terms = {{"wire", latency, "", ""}};
  return flow;
}

OperationPlan ring(std::vector<Flow> flows, std::int64_t repeat, Duration fixed = {}) {
  OperationPlan plan;
  Node node;
  node.flows = std::move(flows);
  node.repeat = repeat;
  node.order = RepeatOrder::neighbour;
  if (fixed.ps > 0) node.fixed.push_back({"work", fixed, "", ""});
  plan.program.then(std::move(node));
  return plan;
}

}  // namespace

TEST_CASE("a ring of equal edges takes latency and transfer per repeat") {
  for (const std::int64_t repeats : {1, 2, 14, 1000}) {
    CHECK(engine::ring_time(std::vector<Duration>(8, 2_us), std::vector<Duration>(8, 3_us), repeats) == repeats * 5_us);
  }
}

TEST_CASE("a ring with far and near edges takes the mean of what they take, a slow edge its own transfers") {
  // Edges of 1 and 5 us in turn: a chunk goes round over all of them.
  std::vector<Duration> latencies;
  for (int f = 0; f < 8; ++f) latencies.push_back(f % 2 == 0 ? 1_us : 5_us);
  const std::vector<Duration> transfers(8, 10_us);
  CHECK(engine::ring_time(latencies, transfers, 800) == 800 * 13_us);
  CHECK(engine::ring_time(latencies, transfers, 801) == 800 * 13_us + 15_us);
  // One edge of 30 us sends without a pause, behind one latency; what feeds it is ahead.
  auto slow = transfers;
  slow[3] = 30_us;
  CHECK(engine::ring_time(std::vector<Duration>(8, 1_us), slow, 800) == 800 * 30_us + 1_us + 7 * 0_us);
}

TEST_CASE("the recurrence is the ring as tasks, step by step, for random rings that share nothing") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    Bench bench;
    std::vector<Flow> flows;
    const auto n = 2 + random.next(7);
    for (std::uint64_t f = 0; f < n; ++f) {
      flows.push_back(edge(random.next(4) == 0 ? 1 : 1e3 * static_cast<double>(1 + random.next(2000)),
                           bench.resource(static_cast<int>(f), static_cast<double>(1 + random.next(20))),
                           Duration{static_cast<std::int64_t>(random.next(40)) * 1'000'000}));
    }
    const auto plan = ring(flows, static_cast<std::int64_t>(1 + random.next(20)),
                           Duration{static_cast<std::int64_t>(random.next(3)) * 700'000});
    const auto quick = bench.timing(plan).total;
    const auto expanded = bench.timing(plan, true).total;
    CHECK(std::abs(quick.ps - expanded.ps) <= 40 + expanded.ps / 1'000'000);
    // Never slower than with barriers, never faster than the mean edge, or than the slowest one's transfers.
    auto barrier = plan;
    barrier.program.nodes[0].order = RepeatOrder::barrier;
    CHECK(quick <= bench.timing(barrier).total + Duration{1000});
    double mean = 0;
    for (const auto& flow : flows)
      mean += (flow.latency.seconds() + flow.bytes / bench.resources.capacity(flow.crossings[0].resource)) /
              static_cast<double>(n);
    CHECK(quick.seconds() >= (mean + models::sum(plan.program.nodes[0].fixed).seconds()) *
                                 static_cast<double>(plan.program.nodes[0].repeat) * (1 - 1e-6));
  }
}

TEST_CASE("edges of a ring that share a link take what the ring as tasks takes, within 3 %") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    Bench bench;
    const int trunk = bench.resource(100, 8);
    std::vector<Flow> flows;
    const auto n = 4 + random.next(5);
    for (std::uint64_t f = 0; f < n; ++f) {
      flows.push_back(edge(1e6, bench.resource(static_cast<int>(f), 10), 2_us));
      if (random.next(2) == 0) flows.back().crossings.push_back({trunk, 1});
    }
    const auto plan = ring(flows, static_cast<std::int64_t>(4 * n));
    CHECK(bench.timing(plan).total.seconds() == test::approx(bench.timing(plan, true).total.seconds()).epsilon(0.03));
  }
}

TEST_CASE("a ring beside another job that does nothing takes what it takes alone, and its terms add up") {
  Bench bench;
  std::vector<Flow> flows;
  for (int f = 0; f < 6; ++f)
    flows.push_back(edge(1e5 * (1 + f % 3), bench.resource(f, 10), Duration{1'000'000LL * f}));
  const auto plan = ring(flows, 10, 3_us);
  OperationPlan idle;
  const auto both = engine::run(bench.resources, {{&plan, 5_us}, {&idle, {}}});
  const auto alone = bench.timing(plan);
  CHECK(std::abs(both[0].total.ps - alone.total.ps) <= 100);
  for (const auto& timing : {both[0], alone}) {
    const auto& round = timing.nodes[0];
    CHECK(round.fixed == 3_us);
    CHECK(round.latency.ps == 2'500'000);  // mean of 0 to 5 us
    REQUIRE(round.latency_terms.size() == 1);
    CHECK(round.latency_terms[0].time == round.latency);
    CHECK(std::abs((10 * (round.fixed + round.latency + round.transfer) - timing.total).ps) <= 10);
  }
}

TEST_CASE("a flow of a ring begins again when the one before it has ended, blocking ones when they have too") {
  RingProgress posted(3, 3, RepeatOrder::neighbour);
  CHECK(posted.end(0, {}) == std::vector<std::size_t>{1});  // 1 is fed, though its own first send goes on
  CHECK(posted.end(2, {}) == std::vector<std::size_t>{0});
  CHECK(posted.end(0, {}) == std::vector<std::size_t>{1});
  CHECK(posted.end(1, {}) == std::vector<std::size_t>{2});
  CHECK_FALSE(posted.is_done());
  RingProgress blocking(3, 3, RepeatOrder::blocking);
  CHECK(blocking.end(0, {}).empty());  // 1 still sends, 0 is not fed
  CHECK(blocking.end(2, {}) == std::vector<std::size_t>{0});
  CHECK(blocking.end(1, {}) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("every flow of a ring runs all repeats and no more, a steady ring stops early and says what it left out") {
  for (const auto order : {RepeatOrder::neighbour, RepeatOrder::blocking}) {
    RingProgress all(4, 5, order);
    std::vector<std::size_t> ready{0, 1, 2, 3};
    int ends = 0;
    while (!ready.empty()) {
      const auto f = ready.front();
      ready.erase(ready.begin());
      ++ends;
      for (const auto next : all.end(f, {})) ready.push_back(next);
    }
    CHECK(ends == 20);
    CHECK(all.is_done());
    CHECK(all.left_out() == 0);
  }
  // The first two repeats take longer; then each takes as long as the one before, or a third of the flows in turn 70 ns
  // more.
  for (const std::int64_t lag : {1, 3}) {
    CAPTURE(lag);
    RingProgress steady(3, 100, RepeatOrder::neighbour);
    steady.stop_when_steady();
    const auto end_of = [&](std::int64_t repeat, std::int64_t f) {
      return Duration{1'000'000 * repeat + (repeat > 0 ? 500'000 : 0) + (repeat > 1 ? 300'000 : 0) + f +
                      (lag == 3 ? (repeat + f) / 3 * 70'000 : 0)};
    };
    std::int64_t repeats = 0;
    for (; !steady.is_done(); ++repeats) {
      for (std::size_t f = 0; f < 3; ++f) steady.end(f, end_of(repeats, static_cast<std::int64_t>(f)));
    }
    CHECK(repeats <= 5 + 3 * lag);
    CHECK(steady.left_out() == 100 - repeats);
    CHECK(steady.left_out() % lag == 0);
    CHECK(end_of(repeats - 1, 0) + steady.left_out_time() == end_of(99, 0));
  }
}

TEST_CASE("flows that run far ahead of the others end as often as they") {
  RingProgress ring(1000, 600, RepeatOrder::neighbour);
  ring.stop_when_steady();
  std::vector<std::size_t> ready(1000);
  for (std::size_t f = 0; f < ready.size(); ++f) ready[f] = f;
  std::int64_t ends = 0;
  while (!ready.empty()) {
    const auto f = ready.back();
    ready.pop_back();
    ++ends;
    for (const auto next : ring.end(f, Duration{ends})) ready.push_back(next);
  }
  CHECK(ring.is_done());
  CHECK(ends == 1000 * (600 - ring.left_out()));
}
