// SPDX-License-Identifier: Apache-2.0
// Which resources inside hosts become stages of packets, and whom they are charged to.
#include "engine/host_paths.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using engine::LegStages;
using models::Flow;
using models::Limit;
using models::OperationPlan;

namespace {

/// Hosts with two adapters of 100 Gb/s each on one switch.
struct Bench {
  LoadedTopology loaded;
  models::Resources resources;

  explicit Bench(int hosts = 4)
      : loaded(test::topology(fmt::format(
            "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: node\n    count: {}\n    host:\n"
            "      processor: epyc-rome\n      devices:\n"
            "        - {{name: hca0, type: connectx-4-100g, below: socket0, pcie: gen3 x16}}\n"
            "        - {{name: hca1, type: connectx-4-100g, below: socket0, pcie: gen3 x16}}\n"
            "fabric:\n  {}\n",
            hosts,
            hosts < 16 ? "single_switch: {switch: ethernet-400g-leaf}" : "fat_tree: {switch: qm9700, tiers: 3}"))),
        resources(loaded.topology) {}

  [[nodiscard]] DeviceId hca(int host, int number = 0) const {
    return loaded.topology.device_in_host(host, DeviceKind::hca, number);
  }
  /// A limit of a host, GB/s.
  int limit(int host, double gb_per_s, Limit kind = Limit::peer_read) {
    return resources.extra(kind, hca(host), gb_per_s * 1e9, "test");
  }
  [[nodiscard]] engine::HostPaths paths(const std::vector<Flow>& flows) const {
    OperationPlan plan;
    plan.program.then({});
    plan.program.nodes[0].flows = flows;
    return engine::make_host_paths(loaded.parameters, resources, {{&plan, {}}});
  }
};

Flow flow(std::vector<models::Crossing> crossings, std::vector<models::Leg> legs) {
  Flow one;
  one.bytes = 1e6;
  one.crossings = std::move(crossings);
  one.legs = std::move(legs);
  return one;
}

const LegStages& stages(const engine::HostPaths& paths, std::size_t flow, std::size_t leg = 0) {
  return paths.paths[paths.path(0, 0, flow, leg)];
}

}  // namespace

TEST_CASE("a limit below what the port carries is a stage of the side it is on, one above it is none") {
  Bench bench;
  const int slow_out = bench.limit(0, 5);
  const int slow_in = bench.limit(1, 4, Limit::peer_write);
  const int fast = bench.limit(1, 12.5);
  const auto paths =
      bench.paths({flow({{slow_out, 1}, {slow_in, 2}, {fast, 1}}, {{bench.hca(0), bench.hca(1), 0, 1, false}})});
  REQUIRE(paths.capacities.size() == 2);
  REQUIRE(stages(paths, 0).send.size() == 1);
  REQUIRE(stages(paths, 0).receive.size() == 1);
  CHECK(paths.slowest(stages(paths, 0).send) == test::approx(1 / 5e9));
  CHECK(paths.slowest(stages(paths, 0).receive) == test::approx(2 / 4e9));
  CHECK(paths.is_shared == std::vector<char>{0, 0});
  const auto none = bench.paths({flow({{fast, 1}}, {{bench.hca(0), bench.hca(1), 0, 1, false}})});
  CHECK(none.capacities.empty());
  CHECK(none.path(0, 0, 0, 0) == 0);
}

TEST_CASE("what several flows cross is one stage, if their ports can fill it") {
  Bench bench;
  const int both = bench.limit(0, 20);
  const int twice = bench.limit(1, 26);
  const auto from = [&](int hca, int to) {
    return std::vector<models::Leg>{{bench.hca(0, hca), bench.hca(to), 0, 1, false}};
  };
  // Two ports of 12.3 GB/s can fill 20 GB/s; however many flows leave one port, it cannot.
  const auto paths = bench.paths({flow({{both, 1}}, from(0, 1)), flow({{both, 1}}, from(1, 2))});
  REQUIRE(paths.capacities.size() == 1);
  CHECK(paths.is_shared[0] == 1);
  CHECK(stages(paths, 0).send == stages(paths, 1).send);
  CHECK(bench.paths({flow({{both, 1}}, from(0, 1)), flow({{both, 1}}, from(0, 2))}).capacities.empty());
  CHECK(bench.paths({flow({{both, 2}}, from(0, 1)), flow({{both, 2}}, from(0, 2))}).capacities.size() == 1);
  CHECK(bench.paths({flow({{twice, 1}}, from(0, 1)), flow({{twice, 1}}, from(1, 1))}).capacities.empty());
}

TEST_CASE("of resources with the same users the slowest is kept") {
  Bench bench;
  const int a = bench.limit(0, 8);
  const int b = bench.limit(0, 6, Limit::translation);
  const int c = bench.limit(0, 7, Limit::copies);
  const std::vector<models::Leg> leg{{bench.hca(0), bench.hca(1), 0, 1, false}};
  const auto alone = bench.paths({flow({{a, 1}, {b, 1}, {c, 1}}, leg)});
  CHECK(alone.capacities == std::vector<double>{6e9});
  const auto shared = bench.paths({flow({{a, 1}, {b, 1}, {c, 1}}, leg), flow({{a, 1}, {b, 1}, {c, 1}}, leg)});
  CHECK(shared.capacities == std::vector<double>{6e9});
  // Other users: stages of their own.
  const auto apart = bench.paths({flow({{a, 1}, {b, 1}}, leg), flow({{a, 1}, {c, 1}}, leg)});
  CHECK(apart.capacities.size() == 3);
}

TEST_CASE("the cap of a flow is a stage of what it sends, caps that its ports cannot reach are none") {
  Bench bench;
  auto capped = flow({}, {{bench.hca(0), bench.hca(1), 0, 1, false}});
  capped.rate_cap = 3e9;
  const auto paths = bench.paths({capped});
  CHECK(paths.capacities == std::vector<double>{3e9});
  CHECK(stages(paths, 0).send.size() == 1);
  CHECK(stages(paths, 0).receive.empty());
  capped.rate_cap = 12.5e9;
  CHECK(bench.paths({capped}).capacities.empty());
}

TEST_CASE(
    "a coupled flow's limits are charged to the legs that leave a host, in shares, where none does, to those that "
    "enter") {
  Bench bench;
  // Host 0 sends two legs, one of them doubly; host 1 sends one on; host 2 only receives.
  const int at_0 = bench.limit(0, 6);
  const int at_1 = bench.limit(1, 5);
  const int at_2 = bench.limit(2, 4);
  const auto paths =
      bench.paths({flow({{at_0, 3}, {at_1, 1}, {at_2, 1}}, {{bench.hca(0, 0), bench.hca(1, 0), 0, 2, false},
                                                            {bench.hca(0, 1), bench.hca(1, 1), 0, 1, false},
                                                            {bench.hca(1, 0), bench.hca(2, 0), 0, 1, false}})});
  // 6 GB/s crossed three times by three times the flow's bytes.
  CHECK(paths.slowest(stages(paths, 0, 0).send) == test::approx(1 / 6e9));
  CHECK(paths.slowest(stages(paths, 0, 1).send) == test::approx(1 / 6e9));
  CHECK(stages(paths, 0, 0).send[0].stage == stages(paths, 0, 1).send[0].stage);
  CHECK(stages(paths, 0, 0).receive.empty());
  CHECK(paths.slowest(stages(paths, 0, 2).send) == test::approx(1 / 5e9));
  CHECK(paths.slowest(stages(paths, 0, 2).receive) == test::approx(1 / 4e9));
}

TEST_CASE("a flow beside the fabric passes all that it crosses") {
  Bench bench;
  const int a = bench.limit(0, 50);
  const int b = bench.limit(0, 40, Limit::copies);
  const auto paths = bench.paths({flow({{a, 1}, {b, 1}}, {}), flow({{a, 1}}, {})});
  CHECK(paths.capacities == std::vector<double>{50e9, 40e9});
  CHECK(stages(paths, 0).send.size() == 2);
  CHECK(stages(paths, 1).send.size() == 1);
  CHECK(paths.is_shared == std::vector<char>{1, 0});
}

TEST_CASE("the work for stages of hosts that send and receive grows with the hosts, not with their square") {
  const auto cpu_seconds = [](int hosts) {
    Bench bench(hosts);
    std::vector<Flow> flows;
    for (int h = 0; h < hosts; ++h) {
      const int next = (h + 1) % hosts;
      const int out = bench.limit(h, 5);
      const int in = bench.limit(next, 6, Limit::peer_write);
      flows.push_back(flow({{out, 1}, {in, 1}}, {{bench.hca(h), bench.hca(next), 0, 1, false}}));
    }
    const auto before = std::clock();
    const auto paths = bench.paths(flows);
    const auto spent = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    CHECK(paths.capacities.size() == 2 * flows.size());
    return spent;
  };
  const double small = cpu_seconds(512);
  CHECK(cpu_seconds(4096) < 24 * small + 0.1);  // quadratic would be 64
}
