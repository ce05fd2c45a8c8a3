// SPDX-License-Identifier: Apache-2.0
// Switches that choose the way of each packet: leaves, pods and rails.
#include <fmt/format.h>

#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

/// Microseconds of a workload between hosts with one adapter each.
double time_us(const std::string& fabric, const std::string& workload, int hosts, std::int64_t bytes) {
  const auto scenario = test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: adaptive\ntopology:\n  schema: fabricast/topology/1\n  name: adaptive\n"
      "  hosts: [{{name: n, count: {}, host: {{processor: epyc-rome, devices: [{{name: hca0, type: connectx-6-200g, "
      "below: socket0}}]}}}}]\n  fabric: {{{}}}\n"
      "workload: {{{}, ranks: {}, ranks_per_host: 1, buffers: [host, host], sizes: [{} B]}}\n",
      hosts, fabric, workload, hosts, bytes));
  return test::run(scenario).workloads[0].rows[0].time.us();
}

/// Microseconds of NCCL's all-to-all between hosts with eight adapters each.
double all_to_all_us(const std::string& fabric, int hosts) {
  const auto scenario = test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: adaptive\ntopology:\n  schema: fabricast/topology/1\n  name: "
                  "adaptive\n  hosts: [{{name: n, count: {}, type: dgx-a100}}]\n  fabric: {{{}}}\n"
                  "workload: {{benchmark: alltoall_perf, sizes: [64 MiB]}}\n",
                  hosts, fabric));
  return test::run(scenario).workloads[0].rows[0].time.us();
}

}  // namespace

TEST_CASE(
    "without oversubscription what moves many bytes takes as long over leaves that choose ways as over one switch") {
  const std::string pairwise = "benchmark: osu_alltoall, algorithm: pairwise";
  const double alone = time_us("single_switch: {switch: sn3700}", pairwise, 32, 4 << 20);
  for (const std::string kind :
       {"leaf_spine: {switch: sn3700, leaf_ports: 8", "fat_tree: {switch: sn3700, tiers: 3, leaf_ports: 8",
        "rail_optimized: {switch: sn3700, leaf_ports: 8"}) {
    CAPTURE(kind);
    CHECK(time_us(kind + ", routing: adaptive}", pairwise, 32, 4 << 20) == test::approx(alone).epsilon(0.03));
    // A hash puts several flows on one cable while others are idle.
    CHECK(time_us(kind + "}", pairwise, 32, 4 << 20) > 1.2 * alone);
  }
}

TEST_CASE("oversubscription limits leaves that choose ways, too, and no way is faster than it") {
  for (std::uint64_t seed = 0; seed < test::draws(8); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const int oversubscription = static_cast<int>(2 + random.next(3));
    const std::string tree =
        fmt::format("leaf_spine: {{switch: sn3700, leaf_ports: 12, oversubscription: {}", oversubscription);
    const auto workload = "benchmark: osu_alltoall, algorithm: " + random.pick<std::string>({"pairwise", "linear"});
    const auto hosts = static_cast<int>(16 + random.next(16));
    const std::int64_t bytes = std::int64_t{1} << (16 + random.next(6));
    CAPTURE(workload);
    CAPTURE(hosts);
    CAPTURE(bytes);
    CAPTURE(oversubscription);
    const double adaptive = time_us(tree + ", routing: adaptive}", workload, hosts, bytes);
    CHECK(adaptive <= 1.001 * time_us(tree + "}", workload, hosts, bytes));
    CHECK(adaptive >= 0.999 * time_us("single_switch: {switch: sn3700}", workload, hosts, bytes));
  }
}

TEST_CASE("links that packets are spread over carry what adapters of several ranks exchange once") {
  for (const int hosts : {4, 6, 8, 11}) {
    CAPTURE(hosts);
    const double alone = all_to_all_us("single_switch: {switch: qm9700}", hosts);
    for (const std::string kind : {"leaf_spine: {switch: qm8700", "fat_tree: {switch: qm8700, tiers: 2"}) {
      CAPTURE(kind);
      CHECK(all_to_all_us(kind + ", routing: adaptive}", hosts) == test::approx(alone).epsilon(0.03));
      CHECK(all_to_all_us(kind + ", oversubscription: 3, routing: adaptive}", hosts) <=
            1.001 * all_to_all_us(kind + ", oversubscription: 3}", hosts));
    }
  }
}
