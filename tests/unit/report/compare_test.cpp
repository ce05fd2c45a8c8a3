// SPDX-License-Identifier: Apache-2.0
// What stands beside what in a comparison: workloads by name, rows by label or size, settings per workload, bands.
#include <doctest/doctest.h>

#include "report/compare_tables.hpp"
#include "report/report.hpp"

using namespace fabricast;

namespace {

Row row(std::int64_t size, double us, const std::string& label = "") {
  Row out;
  out.size = Bytes{size};
  out.label = label;
  out.time = from_seconds(us * 1e-6);
  out.low_time = from_seconds(us * 0.8e-6);
  out.high_time = from_seconds(us * 1.3e-6);
  out.terms = {{"transfer over x", out.time, "x", ""}};
  return out;
}

Row step(std::int64_t exchanged, double us, int gpus) {
  auto out = row(exchanged, us, std::to_string(gpus) + " GPUs");
  out.figures = {{"throughput_per_s", 1e6 * gpus / us}};
  return out;
}

WorkloadPrediction workload(const std::string& name, std::vector<Row> rows, const std::string& algorithm = "ring",
                            Benchmark benchmark = Benchmark::all_reduce_perf) {
  WorkloadPrediction out;
  out.name = name;
  out.benchmark = benchmark;
  out.rows = std::move(rows);
  out.settings = {{"algorithm", "auto", algorithm, ""}};
  return out;
}

Prediction prediction(std::vector<WorkloadPrediction> workloads) { return {"s", "t", std::move(workloads), false}; }

/// Both forecasts side by side.
struct Pair {
  Pair(Prediction first, Prediction second) : one(std::move(first)), two(std::move(second)) {}
  Prediction one, two;
  Scenario scenario;
  report::Provenance provenance;
  ParameterSet parameters;
  std::vector<report::Compared> all{{"a.yaml", &one, &scenario, &provenance, &parameters},
                                    {"b.yaml", &two, &scenario, &provenance, &parameters}};
  report::Comparison compared = report::comparison(all);
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("jobs are compared with those of their name, wherever they stand, and who has none is named") {
  const Pair pair(prediction({workload("a", {row(8, 10)}), workload("b", {row(8, 20)})}),
                  prediction({workload("b", {row(8, 20)}), workload("c", {row(8, 7)}), workload("a", {row(8, 10)})}));
  REQUIRE(pair.compared.tables.size() == 2);
  for (const auto& table : pair.compared.tables) CHECK(report::time_ratio(*table.rows[0][1], *table.rows[0][0]) == 1);
  CHECK(pair.compared.left_out == std::vector<std::string>{"c of B"});
  CHECK(has(report::compare_text(pair.all), "left out: c of B"));
  CHECK(has(report::compare_html(pair.all), "left out: c of B"));
  CHECK(has(report::compare_json(pair.all), "c of B"));
}

TEST_CASE("another benchmark is compared with the one at its place, under both names") {
  const Pair pair(prediction({workload("all_reduce_perf", {row(8, 10)})}),
                  prediction({workload("all_gather_perf", {row(8, 5)})}));
  REQUIRE(pair.compared.tables.size() == 1);
  CHECK(pair.compared.tables[0].workload == "all_reduce_perf / all_gather_perf");
}

TEST_CASE("steps are compared by their GPUs, whatever these exchange, and else on all that each takes") {
  const auto steps = [](std::vector<Row> rows) {
    return prediction({workload("training", std::move(rows), "ddp", Benchmark::training)});
  };
  const Pair split(steps({step(100, 10, 8), step(100, 12, 16)}), steps({step(50, 9, 8), step(50, 6, 16)}));
  REQUIRE(split.compared.tables[0].rows.size() == 2);
  CHECK(report::time_ratio(*split.compared.tables[0].rows[1][1], *split.compared.tables[0].rows[1][0]) == 0.5);
  const Pair larger(steps({step(100, 10, 8)}), steps({step(100, 5, 16)}));
  REQUIRE(larger.compared.tables[0].rows.size() == 1);
  CHECK(report::row_name(larger.compared.tables[0], 0) == "8 GPUs / 16 GPUs");
  CHECK(larger.compared.tables[0].num_left_out == 0);
  CHECK(has(report::compare_text(larger.all), "throughput (/s)"));
  CHECK(has(report::compare_html(larger.all), "<th>B (/s)</th>"));
  CHECK(has(report::compare_json(larger.all), "\"throughput_per_s\""));
}

TEST_CASE("every workload's settings are compared, not those of the last one alone") {
  const Pair pair(prediction({workload("a", {row(8, 10)}, "ring"), workload("b", {row(8, 20)})}),
                  prediction({workload("a", {row(8, 9)}, "tree"), workload("b", {row(8, 20)})}));
  const auto changes = report::changed_settings(pair.all, pair.compared);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].setting == "a: algorithm");
  CHECK(has(report::compare_text(pair.all), "b.yaml: a: algorithm: ring -> tree\n"));
}

TEST_CASE(
    "which of two is faster is said to stay open where the band of their ratio holds 1, not where equal or alike") {
  const auto other = [](std::int64_t size, double us) {
    auto out = row(size, us);
    out.terms[0].name = "transfer over y";
    return out;
  };
  const Pair pair(prediction({workload("a", {row(1, 10), row(2, 10), row(4, 10), row(8, 10), row(16, 10)})}),
                  prediction({workload("a", {other(1, 10), other(2, 11), other(4, 9), other(8, 30), row(16, 11)})}));
  CHECK(report::undecided(pair.compared.tables[0], 1) == "2 B .. 4 B");
  CHECK(has(report::compare_text(pair.all), "is faster stays open at 2 B .. 4 B:"));
  CHECK(has(report::compare_html(pair.all), "is faster stays open at 2 B .. 4 B:"));
  for (const auto* key : {"\"low_time_ps\"", "\"low_ratio\"", "\"high_ratio\""})
    CHECK(has(report::compare_json(pair.all), key));
  CHECK(has(report::compare_csv(pair.all), "low_ratio,high_ratio\r\n"));
}

TEST_CASE("assumptions of one alone, ways that changed and settings are told in every form") {
  auto here = workload("a", {row(8, 10)}, "ring");
  auto there = workload("a", {row(8, 30)}, "tree");
  here.rows[0].algorithm = there.rows[0].algorithm = "linear";
  here.rows[0].protocol = "eager gdr";
  there.rows[0].protocol = "staged";
  here.assumptions = {"both assume", "GPUs do nothing else"};
  there.assumptions = {"both assume", "the guest sees no tree"};
  const Pair pair(prediction({here}), prediction({there}));
  const auto changes = report::changed_assumptions(pair.all, pair.compared);
  REQUIRE(changes.size() == 2);
  CHECK(!changes[0].is_new);
  CHECK(changes[1].is_new);
  const auto text = report::compare_text(pair.all);
  CHECK(has(text, "linear eager gdr -> linear staged, bottleneck"));
  CHECK(has(text,
            "# assumptions that differ:\n#   A, not B: GPUs do nothing else\n#   B, not A: the guest sees no tree"));
  CHECK(!has(text, "both assume"));
  const auto html = report::compare_html(pair.all);
  CHECK(has(html, ", linear eager gdr to linear staged"));
  CHECK(has(html, "<li>B, not A: the guest sees no tree</li>"));
  const auto json = report::compare_json(pair.all);
  for (const auto* part : {"\"changed_settings\"", "\"changed_assumptions\"", "\"is_new\": true"})
    CHECK(has(json, part));
}

TEST_CASE("rows that not all have are counted") {
  const Pair pair(prediction({workload("a", {row(1, 10), row(2, 10), row(4, 10)})}),
                  prediction({workload("a", {row(2, 11), row(8, 9)})}));
  CHECK(pair.compared.tables[0].num_left_out == 3);
  CHECK(has(report::compare_text(pair.all), "left out: 3\n"));
}
