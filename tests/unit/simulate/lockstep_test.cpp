// SPDX-License-Identifier: Apache-2.0
// A linear all-to-all as one flow against the same with a flow per message, on networks that share much and little.
#include "models/mpi/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/fluid.hpp"
#include "fabricast/models/planner.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Both {
  double each = 0;  ///< us, a flow per message
  double one = 0;   ///< us, all in lockstep
};

Both times(const std::string& topology, const std::string& ranks, int count, const std::string& size) {
  const auto scenario =
      test::scenario(fmt::format("schema: fabricast/scenario/1\nname: linear\ntopology: {}/topologies/{}\nsoftware: "
                                 "{{mpi: open-mpi-ucx}}\nworkload: "
                                 "{{benchmark: osu_alltoall, ranks: {}, {}, algorithm: linear, sizes: [{}]}}\n",
                                 FABRICAST_SOURCE_DIR, topology, count, ranks, size));
  models::Resources resources(scenario.topology);
  const models::PlanContext context{
      scenario.topology, scenario.scenario.software, scenario.parameters, resources, 1, true, false};
  const auto planner = models::make_planner(context, scenario.scenario.workloads[0]);
  REQUIRE(planner);
  const auto each = (*planner)->plan(scenario.scenario.workloads[0].sizes[0]);
  REQUIRE(each.program.nodes.size() == 1);
  REQUIRE(each.program.nodes[0].flows.size() == static_cast<std::size_t>(count * (count - 1)));
  auto one = each;
  models::mpi::RoundFlows folded(true);
  for (const auto& flow : each.program.nodes[0].flows) folded.add(flow);
  one.program.nodes[0].flows = folded.take();
  return {engine::run(resources, {{&each, {}}})[0].total.us(), engine::run(resources, {{&one, {}}})[0].total.us()};
}

}  // namespace

TEST_CASE("a linear exchange as one flow ends when the one with a flow per message does") {
  for (const auto* topology : {"torus-4x4x4.yaml", "fat-tree-1024.yaml", "leaf-spine-sn3700.yaml"}) {
    for (const auto* size : {"16 B", "2 KiB", "64 KiB", "1 MiB"}) {
      const auto [each, one] = times(topology, "ranks_per_host: 1, buffers: [host, host]", 16, size);
      CAPTURE(topology);
      CAPTURE(size);
      CHECK(one == test::approx(each).epsilon(0.10));
    }
  }
}

TEST_CASE("with several GPUs per host it is two flows, one inside hosts and one between them") {
  for (const auto* topology : {"dgx-a100-16.yaml", "abci-v100.yaml"}) {
    for (const auto* size : {"16 B", "2 KiB", "64 KiB", "1 MiB"}) {
      const auto [each, one] = times(topology, "ranks_per_host: 4, buffers: [device, device]", 16, size);
      CAPTURE(topology);
      CAPTURE(size);
      CHECK(one == test::approx(each).epsilon(0.12));
    }
  }
}

TEST_CASE("above a thousand messages a round is one flow, with as many bytes on every resource") {
  const auto flows = [](int ranks) {
    const auto scenario = test::scenario(
        fmt::format("schema: fabricast/scenario/1\nname: linear\ntopology: {}/topologies/torus-4x4x4.yaml\nworkload: "
                    "{{benchmark: osu_alltoall, ranks: {}, ranks_per_host: 1, algorithm: linear, sizes: [64 KiB]}}\n",
                    FABRICAST_SOURCE_DIR, ranks));
    models::Resources resources(scenario.topology);
    const models::PlanContext context{
        scenario.topology, scenario.scenario.software, scenario.parameters, resources, 1, true, false};
    const auto planner = models::make_planner(context, scenario.scenario.workloads[0]);
    REQUIRE(planner);
    return (*planner)->plan(Bytes{64 << 10}).program.nodes[0].flows;
  };
  CHECK(flows(32).size() == 32 * 31);
  const auto merged = flows(33);
  REQUIRE(merged.size() == 1);
  int most = 0;
  for (const auto& crossing : merged[0].crossings) most = std::max(most, crossing.times);
  CHECK(most >= 32);  // each rank's port takes one message to every other
}

TEST_CASE("messages keep their own terms where equal lists are kept once") {
  models::mpi::SharedTerms shared;
  std::vector<std::vector<Term>> each;
  for (int m = 0; m < 200; ++m) {
    const std::vector<Term> terms{{"launch", Duration{m % 3}, "a", "b"}, {"wire", Duration{m % 40}, "a", "b"}};
    each.push_back(terms);
    auto given = terms;
    shared.put(given);
    CHECK(given.empty());
  }
  for (std::size_t m = 0; m < each.size(); ++m) {
    REQUIRE(shared.of(m).size() == 2);
    CHECK(shared.of(m)[0].time == each[m][0].time);
    CHECK(shared.of(m)[1].time == each[m][1].time);
  }
}
