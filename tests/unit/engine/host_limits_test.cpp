// SPDX-License-Identifier: Apache-2.0
// Max-min shares: hand-computed cases, the definition over random flows, and that thousands of hosts take no time.
#include "engine/host_limits.hpp"

#include <cmath>
#include <ctime>

#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/engine/bench.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using models::Flow;
using test::Bench;

namespace {

std::vector<double> gb_per_s(const test::Bench& bench, const std::vector<Flow>& flows) {
  auto rates = engine::host_rates(bench.resources, flows);
  for (auto& rate : rates) rate /= 1e9;
  return rates;
}

Flow flow(std::vector<models::Crossing> crossings, double cap_gb_per_s = 0) {
  Flow one;
  one.bytes = 1e6;
  one.crossings = std::move(crossings);
  if (cap_gb_per_s > 0) one.rate_cap = cap_gb_per_s * 1e9;
  return one;
}

}  // namespace

TEST_CASE("a limit has the least capacity that anybody asks for, and its parameter, in any order") {
  for (const bool is_low_first : {false, true}) {
    Bench bench;
    const auto ask = [&](double rate, const char* parameter) {
      return bench.resources.extra(models::Limit::dram, DeviceId{1}, rate, parameter);
    };
    const int first = is_low_first ? ask(3e9, "low") : ask(8e9, "high");
    CHECK((is_low_first ? ask(8e9, "high") : ask(3e9, "low")) == first);
    CHECK(bench.resources.capacity(first) == 3e9);
    CHECK(bench.resources.parameter(first) == "low");
    CHECK(bench.resources.extra(models::Limit::dram, DeviceId{1}, 8e9, "part", 1) != first);
  }
}

TEST_CASE("shares are max-min: what one flow cannot use is left to the others") {
  Bench bench;
  const int a = bench.resource(0, 12);
  const int b = bench.resource(1, 2);
  const auto rates = gb_per_s(bench, {flow({{a, 1}, {b, 1}}), flow({{a, 1}}), flow({{a, 1}}, 3), flow({{a, 2}})});
  // b holds the first at 2; 12 - 2 = 10 over weights 1 + 1 + 2 is 2.5 for the rest, below the cap of 3.
  CHECK(rates[0] == test::approx(2));
  CHECK(rates[1] == test::approx(2.5));
  CHECK(rates[2] == test::approx(2.5));
  CHECK(rates[3] == test::approx(2.5));
  CHECK(gb_per_s(bench, {flow({{a, 1}}, 3), flow({{a, 1}})}) == std::vector<double>{3, 9});
  CHECK(std::isinf(gb_per_s(bench, {flow({})})[0]));
}

TEST_CASE("rates are feasible, and each flow is held where it has the greatest share of something full") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    Bench bench;
    std::vector<int> resources;
    for (auto count = 1 + random.next(6); count > 0; --count)
      resources.push_back(bench.resource(static_cast<int>(count), static_cast<double>(1 + random.next(30))));
    std::vector<Flow> flows;
    std::vector<const Flow*> pointers;
    for (auto count = 1 + random.next(8); count > 0; --count) {
      std::vector<models::Crossing> crossings;
      for (const int resource : resources)
        if (random.next(2) == 0) crossings.push_back({resource, static_cast<int>(1 + random.next(3))});
      flows.push_back(
          flow(crossings, crossings.empty() || random.next(3) == 0 ? static_cast<double>(1 + random.next(9)) : 0));
    }
    for (const auto& one : flows) pointers.push_back(&one);
    const auto rates = engine::host_rates(bench.resources, flows);
    std::map<int, double> load;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      CHECK(rates[f] <= flows[f].rate_cap * (1 + 1e-9));
      for (const auto& crossing : flows[f].crossings) load[crossing.resource] += rates[f] * crossing.times;
    }
    for (const auto& [resource, sum] : load) CHECK(sum <= bench.resources.capacity(resource) * (1 + 1e-9));
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const int holder = engine::shared_bottlenecks(bench.resources, pointers)[f];
      if (holder < 0) {
        CHECK(rates[f] == test::approx(flows[f].rate_cap));
        continue;
      }
      CHECK(load[holder] == test::approx(bench.resources.capacity(holder)));
      for (std::size_t g = 0; g < flows.size(); ++g) {
        for (const auto& crossing : flows[g].crossings)
          if (crossing.resource == holder) CHECK(rates[g] <= rates[f] * (1 + 1e-9));
      }
    }
  }
}

TEST_CASE("of flows at other times only those half way of a transfer stand beside it") {
  Bench bench;
  const int a = bench.resource(0, 10);
  std::vector<Flow> flows(4, flow({{a, 1}}));
  for (std::size_t f = 0; f < flows.size(); ++f)
    flows[f].latency = Duration{1'000'000LL * static_cast<std::int64_t>(f)};
  // Transfers 0-4, 1-2, 2-4, 3-4 us; half way of the first: 2 us.
  const auto beside = engine::active_beside(flows, {4_us, 2_us, 4_us, 4_us}, 0);
  CHECK(beside == std::vector<const Flow*>{&flows[0], &flows[2]});
}

TEST_CASE("the work for shares inside hosts with flows that all differ grows with the hosts, not with their square") {
  const auto cpu_seconds = [](int hosts) {
    Bench bench;
    std::vector<Flow> flows;
    for (int h = 0; h < hosts; ++h) {
      const int link = bench.resource(h, 10 + h * 1e-4);
      for (int f = 0; f < 4; ++f) flows.push_back(flow({{link, 1}}, f == 0 ? 1 + h * 1e-4 : 0));
    }
    const auto before = std::clock();
    const auto rates = gb_per_s(bench, flows);
    const auto spent = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    const double last = (hosts - 1) * 1e-4;
    CHECK(rates[rates.size() - 4] == test::approx(1 + last));
    CHECK(rates[rates.size() - 3] == test::approx((10 + last - 1 - last) / 3));
    return spent;
  };
  const double small = cpu_seconds(1024);
  CHECK(cpu_seconds(8192) < 24 * small + 0.1);  // quadratic would be 64
}
