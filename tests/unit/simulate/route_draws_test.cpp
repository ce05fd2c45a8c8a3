// SPDX-License-Identifier: Apache-2.0
// Routes that Ethernet draws among equal ones: the band of a forecast holds the forecasts of other draws, and a flow's
// draw is its own.
#include <algorithm>
#include <map>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

LoadedScenario all_reduce(const std::string& type, const std::string& fabric, int hosts, const std::string& size) {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
      "  hosts: [{name: n, count: " +
      std::to_string(hosts) + ", type: " + type + "}]\n  fabric: {" + fabric +
      "}\nworkload: {benchmark: all_reduce_perf, sizes: [" + size + "]}\n");
}

Row with_seed(const LoadedScenario& loaded, std::uint64_t seed) {
  SimulateOptions options;
  options.seed = seed;
  return test::run(loaded, options).workloads[0].rows.at(0);
}

bool assumes_draws(const LoadedScenario& loaded, std::uint64_t seed) {
  SimulateOptions options;
  options.seed = seed;
  const auto all = test::run(loaded, options).workloads[0].assumptions;
  const auto words =
      "routes of equal cost are drawn by a hash that switches do not tell (--seed " + std::to_string(seed) + ")";
  return std::ranges::any_of(all, [&](const auto& one) { return one.starts_with(words); });
}

/// Completion of each flow by its name.
std::map<std::string, std::int64_t> ends(const std::string& flows) {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "count: 16, type: server-1v100-cx4-100g}]\n  fabric: {leaf_spine: {switch: sn2700, leaf_ports: 8}}\nworkload: "
      "{benchmark: traffic, sizes: [8 MB], flows: [" +
      flows + "]}\n");
  std::map<std::string, std::int64_t> out;
  const auto prediction = test::run(loaded);
  for (const auto& flow : prediction.workloads[0].rows.at(0).flows) out[flow.name] = flow.end.ps;
  return out;
}

}  // namespace

TEST_CASE("the 80 % band of a forecast over Ethernet holds what other draws of the routes give") {
  constexpr std::uint64_t k_draws = 12;
  for (const auto& loaded : {all_reduce("mi300x-8", "leaf_spine: {switch: ethernet-400g-leaf}", 8, "1 GiB"),
                             all_reduce("server-2s-emeraldrapids-8h200nvl",
                                        "fat_tree: {switch: ethernet-400g-leaf, leaf_ports: 8}", 6, "256 MiB")}) {
    std::vector<Row> rows;
    for (std::uint64_t seed = 1; seed <= k_draws; ++seed) rows.push_back(with_seed(loaded, seed));
    int inside = 0;
    for (const auto& band : rows) {
      CHECK(band.low_time <= band.time);
      CHECK(band.high_time >= band.time);
      for (const auto& row : rows) inside += band.low_time <= row.time && row.time <= band.high_time ? 1 : 0;
    }
    CHECK(inside >= 0.8 * k_draws * k_draws);
    CHECK(assumes_draws(loaded, 1));
    CHECK(assumes_draws(loaded, 7));
  }
}

TEST_CASE("nothing is said of draws where there are none") {
  CHECK_FALSE(assumes_draws(all_reduce("hgx-h100-8", "leaf_spine: {switch: qm9700}", 8, "64 MiB"), 1));
  CHECK_FALSE(assumes_draws(all_reduce("mi300x-8", "single_switch: {switch: ethernet-400g-leaf}", 2, "64 MiB"), 1));
}

TEST_CASE("a flow's route does not depend on where it is listed, nor on flows between others") {
  const std::vector<std::string> flows{"{from: n0, to: n5}", "{from: n1, to: n6}", "{from: n2, to: n9}",
                                       "{from: n3, to: n13}", "{from: n8, to: n14}"};
  const auto list = [](const std::vector<std::string>& all) {
    std::string out;
    for (const auto& one : all) out += one + ", ";
    return out;
  };
  const auto before = ends(list(flows));
  auto reversed = flows;
  std::ranges::reverse(reversed);
  CHECK(ends(list(reversed)) == before);
  // A flow inside one leaf meets none of them.
  auto more = flows;
  more.insert(more.begin(), "{from: n10, to: n11}");
  auto after = ends(list(more));
  after.erase("n10 -> n11");
  CHECK(after == before);
}

TEST_CASE("every benchmark runs over drawn routes, a training step by its numbers of GPUs too") {
  for (const auto* workload :
       {"{benchmark: training, network: vgg-16, batch_per_gpu: 32, gpus: [8, 32], parallel: {data: ddp}}",
        "{benchmark: training, network: gpt-345m, batch_per_gpu: 2, parallel: {data: fsdp, tensor: 2}}",
        "{benchmark: gpu_step, compute: 10 ms, sizes: [64 MiB]}", "{benchmark: alltoall_perf, sizes: [64 MiB]}",
        "{benchmark: osu_allreduce, buffers: host, ranks_per_host: 2, sizes: [1 MiB]}",
        "{benchmark: osu_latency, sizes: [1 MiB]}", "{benchmark: traffic, pattern: permutation, sizes: [1 MB]}"}) {
    CAPTURE(workload);
    const auto loaded = test::scenario(
        std::string("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                    "  hosts: [{name: n, count: 8, type: hgx-a100-4-hdr, processor: epyc-rome}]\n") +
        "  fabric: {leaf_spine: {switch: sn2700, leaf_ports: 8}}\nworkload: " + workload + "\n");
    const auto row = test::run(loaded).workloads[0].rows.at(0);
    CHECK(row.low_time <= row.time);
    CHECK(row.high_time >= row.time);
  }
}
