// SPDX-License-Identifier: Apache-2.0
// What `run` prints, `validate` reads back: a forecast's own table is compared with the forecast without error, up to
// the digits of the table.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fabricast/measurement.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/validation.hpp"
#include "report/report.hpp"

using namespace fabricast;

namespace {

constexpr double k_digits = 0.01;  ///< two decimals of half a microsecond and more

void check_own_table(const LoadedScenario& loaded, std::size_t fewest_rows) {
  SimulateOptions options;
  options.with_terms = false;
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  REQUIRE_MESSAGE(prediction, (prediction ? "" : render(prediction.error())));
  const report::Provenance provenance{"0", loaded.inputs, {}, {}};
  const auto text = report::text({*prediction, loaded.scenario, provenance});
  CAPTURE(text);
  const auto tables = read_logs_text(text, "own.txt");
  REQUIRE_MESSAGE(tables, (tables ? "" : render(tables.error())));
  const auto table = table_for(*tables, loaded.scenario);
  REQUIRE(table);
  CHECK_MESSAGE(table->refusal.empty(), table->refusal);
  CHECK_MESSAGE(table->warnings.empty(), render(table->warnings));
  const auto validation = validate(prediction->workloads.front(), *table);
  CHECK(validation.points.size() >= fewest_rows);
  CHECK(summarize(std::span(&validation, 1)).max_abs_error < k_digits);
}

LoadedScenario scenario_of(const std::string& topology, const std::string& workload) {
  auto loaded = load_scenario_text("s.yaml", fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: "
                                                         "\"{}/topologies/{}.yaml\"\nworkload: {{{}}}\n",
                                                         FABRICAST_SOURCE_DIR, topology, workload));
  REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
  return std::move(*loaded);
}

}  // namespace

TEST_CASE("tables of every benchmark of nccl-tests, OSU and perftest are read back as they were printed") {
  const std::string sizes = "sizes: [8 B, 4 KiB, 1 MiB, 64 MiB]";
  for (const std::string name : {"osu_latency", "osu_bw", "osu_bibw", "ib_write_lat", "ib_write_bw", "ib_send_lat",
                                 "ib_send_bw", "ib_read_lat", "ib_read_bw"}) {
    CAPTURE(name);
    check_own_table(scenario_of("cx6-hdr-pair", fmt::format("benchmark: {}, {}", name, sizes)), 4);
  }
  for (const std::string name : {"osu_allreduce", "osu_allgather", "osu_reduce_scatter", "osu_bcast", "osu_reduce",
                                 "osu_alltoall", "osu_gather", "osu_scatter"}) {
    CAPTURE(name);
    check_own_table(scenario_of("cx6-hdr-pair", fmt::format("benchmark: {}, ranks: 4, {}", name, sizes)), 4);
  }
  for (const std::string name : {"osu_multi_lat", "osu_mbw_mr"}) {
    CAPTURE(name);
    check_own_table(scenario_of("cx6-hdr-pair", fmt::format("benchmark: {}, pairs: 2, {}", name, sizes)), 4);
  }
  check_own_table(scenario_of("cx6-hdr-pair", "benchmark: osu_barrier, ranks: 4"), 1);
  for (const std::string name : {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf",
                                 "reduce_perf", "alltoall_perf", "sendrecv_perf", "gather_perf", "scatter_perf"}) {
    CAPTURE(name);
    check_own_table(scenario_of("hgx-a100-4gpu", fmt::format("benchmark: {}, sizes: [4 KiB, 1 MiB, 64 MiB]", name)), 3);
  }
  check_own_table(
      scenario_of("dgx-a100-pair", "benchmark: osu_latency, buffers: [device, device], sizes: [8 B, 1 MiB]"), 2);
}

TEST_CASE("tables of training steps are read back as they were printed") {
  for (const std::string file : {"training-horovod-16p100", "training-qwen3-30b-16"}) {
    CAPTURE(file);
    const auto loaded = load_scenario(fmt::format("{}/scenarios/{}.yaml", FABRICAST_SOURCE_DIR, file));
    REQUIRE(loaded);
    check_own_table(*loaded, 1);
  }
}
