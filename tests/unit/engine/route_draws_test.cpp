// SPDX-License-Identifier: Apache-2.0
// Routes of a plan that are drawn again: the same bounds as of the operation planned over that draw.
#include "engine/route_draws.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/bounds.hpp"
#include "fabricast/models/payload.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

constexpr std::uint64_t k_seed = 7;

/// Resources and a context of `loaded` whose routes `seed` draws; patterns stay those of k_seed.
struct DrawnContext {
  DrawnContext(const LoadedScenario& loaded, std::uint64_t seed)
      : resources(loaded.topology),
        context{loaded.topology, loaded.scenario.software, loaded.parameters, resources, seed} {
    models::set_payload_shares(resources, loaded.parameters);
    context.workloads = &loaded.scenario.workloads;
    context.pattern_seed = k_seed;
  }
  models::Resources resources;
  models::PlanContext context;
};

std::vector<Duration> planned_anew(const LoadedScenario& loaded, Bytes size) {
  std::vector<Duration> out;
  for (std::uint64_t d = 1; d <= engine::RouteDraws::k_num_draws; ++d) {
    DrawnContext own(loaded, k_seed + d * engine::RouteDraws::k_seed_step);
    const auto planner = models::make_planner(own.context, loaded.scenario.workloads[0]);
    REQUIRE(planner.has_value());
    out.push_back(engine::bound_of(own.resources, (*planner)->plan(size)));
  }
  return out;
}

LoadedScenario on_ethernet(const std::string& fabric, const std::string& workload, int hosts = 8) {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
      "  hosts: [{name: n, count: " +
      std::to_string(hosts) + ", type: hgx-a100-4-hdr, processor: epyc-rome}]\n  fabric: {" + fabric +
      "}\nworkload: " + workload + "\n");
}

}  // namespace

TEST_CASE("routes that are drawn again give what planning the operation over that draw gives") {
  for (const auto* fabric : {"leaf_spine: {switch: sn2700, leaf_ports: 8}", "fat_tree: {switch: sn2700, tiers: 3}",
                             "leaf_spine: {switch: sn2700, leaf_ports: 6, oversubscription: 2}"}) {
    for (const auto* workload :
         {"{benchmark: all_reduce_perf, algorithm: ring, sizes: [64 MiB]}",
          "{benchmark: all_reduce_perf, algorithm: tree, sizes: [1 MiB]}",
          "{benchmark: all_gather_perf, sizes: [8 MiB]}", "{benchmark: sendrecv_perf, sizes: [8 MiB]}",
          "{benchmark: alltoall_perf, sizes: [64 MiB]}", "{benchmark: scatter_perf, sizes: [64 MiB]}",
          "{benchmark: osu_allreduce, buffers: host, ranks_per_host: 2, sizes: [1 KiB]}",
          "{benchmark: osu_allreduce, buffers: host, ranks_per_host: 4, sizes: [4 MiB]}",
          "{benchmark: osu_alltoall, buffers: host, ranks_per_host: 8, sizes: [64 KiB]}",
          "{benchmark: osu_bcast, buffers: host, ranks_per_host: 4, sizes: [1 MiB]}",
          "{benchmark: osu_latency, sizes: [1 MiB]}", "{benchmark: osu_mbw_mr, ranks_per_host: 2, sizes: [1 MiB]}",
          "{benchmark: traffic, pattern: permutation, sizes: [1 MB]}",
          "{benchmark: training, network: gpt-345m, batch_per_gpu: 2, parallel: {data: fsdp, tensor: 2}}"}) {
      CAPTURE(std::string(fabric));
      CAPTURE(std::string(workload));
      const auto loaded = on_ethernet(fabric, workload);
      const auto& sizes = loaded.scenario.workloads[0].sizes;
      const auto size = sizes.empty() ? Bytes{32} : sizes.front();
      DrawnContext own(loaded, k_seed);
      engine::RouteDraws draws(own.context, loaded.scenario.workloads);
      CHECK(draws.bounds(0, size) == planned_anew(loaded, size));
    }
  }
}

TEST_CASE("links between switches that are unlike are drawn again with their own rates and lengths") {
  const auto loaded = on_ethernet(
      "leaf_spine: {switch: sn2700, leaf_ports: 2, switches: [{name: extra, type: sn3700}], cables: "
      "[{from: leaf0, to: extra, length: 90 m}, {from: leaf1, to: extra, length: 90 m}]}",
      "{benchmark: osu_latency, sizes: [8 B]}", 2);
  DrawnContext own(loaded, k_seed);
  engine::RouteDraws draws(own.context, loaded.scenario.workloads);
  CHECK(draws.bounds(0, 8_B) == planned_anew(loaded, 8_B));
}
