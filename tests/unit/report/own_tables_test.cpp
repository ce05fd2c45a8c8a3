// SPDX-License-Identifier: Apache-2.0
// What `run` prints as text, JSON and CSV, `validate` reads back: a forecast's own table is compared with the forecast
// without error, up to the digits of the table.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fabricast/measurement.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/validation.hpp"
#include "report/report.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;

namespace {

constexpr double k_digits = 0.01;  ///< two decimals of half a microsecond and more

void check_own_table(const LoadedScenario& loaded, std::size_t fewest_rows) {
  SimulateOptions options;
  options.with_terms = false;
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  REQUIRE_MESSAGE(prediction, (prediction ? "" : render(prediction.error())));
  const report::Provenance provenance{"0", loaded.inputs, {}, {}};
  const report::Document document{*prediction, loaded.scenario, provenance};
  for (const auto& text : {report::text(document), report::json(document), report::csv(document)}) {
    CAPTURE(text);
    const auto tables = read_logs_text(text, "own.txt");
    REQUIRE_MESSAGE(tables, (tables ? "" : render(tables.error())));
    const auto table = table_for(*tables, loaded.scenario);
    REQUIRE(table);
    CHECK_MESSAGE(table->refusal.empty(), table->refusal);
    const bool has_others = loaded.scenario.workloads.size() > 1;  // left aside, which is said
    CHECK_MESSAGE(table->warnings.size() <= (has_others ? 1 : 0), render(table->warnings));
    const auto validation = validate(prediction->workloads.front(), *table);
    CHECK(validation.points.size() >= fewest_rows);
    CHECK(validation.points.size() == prediction->workloads.front().rows.size());
    CHECK(summarize(std::span(&validation, 1)).max_abs_error < k_digits);
  }
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

TEST_CASE("tables of copies, steps, sockets, shared and remote GPUs, migrations and traffic are read back") {
  for (const std::string file :
       {"validation/virtual/tcp-25g", "validation/virtual/copies", "validation/virtual/inference-a100",
        "gpu-sharing-processes", "gpu-sharing-equal-share", "remote-gpu-rdma", "vgpu-migration", "pvrdma-migration",
        "traffic-incast-roce", "traffic-flows-two-classes"}) {
    CAPTURE(file);
    const auto loaded = load_scenario(fmt::format("{}/scenarios/{}.yaml", FABRICAST_SOURCE_DIR, file));
    REQUIRE(loaded);
    check_own_table(*loaded, 1);
  }
  check_own_table(scenario_of("tcp-25g-pair", "benchmark: sockperf, sizes: [64 B, 1 KiB]"), 2);
  check_own_table(scenario_of("h200-8gpu-vm", "benchmark: host_copies, gpus: 2, sizes: [4 KiB, 1 MiB, 1 GiB]"), 3);
}

TEST_CASE("of several workloads of one benchmark the first is read back, also where it is not the first printed") {
  const std::string head = fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}/topologies/{}.yaml\"\n",
                                       FABRICAST_SOURCE_DIR, "hgx-a100-4gpu");
  const std::string two = "{name: small, benchmark: all_reduce_perf, devices: [node.gpu0, node.gpu1], sizes: [1 MiB]}";
  const std::string one = "{name: large, benchmark: all_reduce_perf, gpus: 4, sizes: [1 MiB]}";
  const auto printed = load_scenario_text("s.yaml", head + "workloads: [" + one + ", " + two + "]\n");
  const auto asked = load_scenario_text("s.yaml", head + "workload: " + two + "\n");
  REQUIRE(printed);
  REQUIRE(asked);
  const auto prediction = simulate(printed->topology, printed->scenario, printed->parameters, {});
  REQUIRE(prediction);
  const report::Document document{*prediction, printed->scenario, {"0", printed->inputs, {}, {}}};
  const auto expected = prediction->workloads[1].rows.front().time;
  for (const auto& text : {report::text(document), report::json(document), report::csv(document)}) {
    CAPTURE(text);
    const auto tables = read_logs_text(text, "own.txt");
    REQUIRE(tables);
    const auto table = table_for(*tables, asked->scenario);
    REQUIRE(table);
    REQUIRE(table->rows.size() == 1);
    CHECK(table->rows.front().time.us() == test::approx(expected.us()).epsilon(k_digits));
  }
}
