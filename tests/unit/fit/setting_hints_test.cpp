// SPDX-License-Identifier: Apache-2.0
// A log measured under another setting than the scenario says is recognised: settings are planted into forecasts with
// 3 % of noise, and the planted one is named first; logs without a plant get no hint.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "fabricast/setting_hints.hpp"
#include "report/report.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;
using test::Folder;

namespace {

std::string scenario_of(const std::string& topology, const std::string& rest) {
  return fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}/topologies/{}.yaml\n{}\n",
                     FABRICAST_SOURCE_DIR, topology, rest);
}

/// The table as a log, with relative normal noise.
MeasuredLog measured(const WorkloadPrediction& prediction, std::uint64_t seed, double noise = 0.03) {
  MeasuredLog log;
  log.file = "planted.txt";
  log.benchmark = prediction.benchmark;
  log.format = prediction.benchmark == Benchmark::osu_bw ? LogFormat::osu : LogFormat::nccl_tests;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> around(0, 1);
  for (const auto& row : prediction.rows) {
    MeasuredRow one;
    one.size = row.size;
    one.time = from_seconds(row.time.seconds() * std::exp(noise * around(random)));
    log.rows.push_back(std::move(one));
  }
  return log;
}

double mean_change(const WorkloadPrediction& a, const WorkloadPrediction& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rows.size(); ++i)
    sum += std::abs(std::log(a.rows[i].time.seconds() / b.rows[i].time.seconds()));
  return sum / static_cast<double>(a.rows.size());
}

struct Bench {
  WorkloadPrediction present;
  std::vector<ChangedForecast> changed;
};

Bench bench_of(const Folder& folder, const std::string& text, const std::vector<Setting>& settings = {}) {
  const auto file = folder.write("s.yaml", text);
  const auto loaded = load_scenario(file, {}, settings);
  if (!loaded) MESSAGE(render(loaded.error()));
  REQUIRE(loaded.has_value());
  std::vector<Bytes> sizes;
  for (std::int64_t size = 64; size <= std::int64_t{1} << 30; size *= 4) sizes.push_back({size});
  auto scenario = loaded->scenario;
  scenario.workloads[0].sizes = sizes;
  auto prediction = simulate(loaded->topology, scenario, loaded->parameters);
  REQUIRE(prediction.has_value());
  SimulateOptions options;
  options.with_terms = false;
  return {prediction->workloads[0], forecast_changes(file, {}, settings, sizes, options)};
}

}  // namespace

TEST_CASE("a planted setting is named first nine times in ten, and a log without a plant gets no hint") {
  const Folder folder("plants");
  const std::vector<std::string> scenarios{
      scenario_of("hgx-h100-ndr", "workload: {benchmark: all_reduce_perf, gpus: 16}"),
      scenario_of("hgx-a100", "workload: {benchmark: all_reduce_perf, gpus: 8}"),
      scenario_of("abci-v100", "software: {nccl: {version: \"2.8\"}}\nworkload: {benchmark: all_reduce_perf, gpus: 8}"),
      scenario_of("fdr-kepler-pair", "workload: {benchmark: osu_bw, buffers: [device, device]}")};
  int planted = 0;
  int first = 0;
  for (const auto& text : scenarios) {
    const auto bench = bench_of(folder, text);
    REQUIRE(bench.changed.size() > 10);
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      CHECK(explaining_settings(bench.present, bench.changed, {measured(bench.present, seed)}).empty());
    for (std::size_t i = 0; i < bench.changed.size(); ++i) {
      const auto& plant = bench.changed[i];
      const auto log = measured(plant.prediction, 100 + i);
      // Plants that a band of this width cannot show are none.
      if (mean_change(bench.present, plant.prediction) < 0.15) continue;
      if (validate(bench.present, log).summary.interval_coverage > 0.7) continue;
      const auto named = explaining_settings(bench.present, bench.changed, {log});
      ++planted;
      CAPTURE(plant.setting);
      if (named.empty()) {
        MESSAGE("not named: " << plant.setting);
        continue;
      }
      const auto same = std::find_if(bench.changed.begin(), bench.changed.end(),
                                     [&](const ChangedForecast& one) { return one.setting == named[0].setting; });
      // Two settings may be one thing: TCP is what remains without the other paths.
      const bool is_right = mean_change(same->prediction, plant.prediction) < 0.02;
      first += is_right ? 1 : 0;
      if (!is_right) MESSAGE(plant.setting << " was taken for " << named[0].setting);
      CHECK(named[0].mean_after < 0.05);
      CHECK(std::is_sorted(named.begin(), named.end(),
                           [](const auto& a, const auto& b) { return a.mean_after < b.mean_after; }));
    }
  }
  MESSAGE(first << " of " << planted << " plants are named first");
  CHECK(planted > 30);
  CHECK(first * 10 >= planted * 9);
}

TEST_CASE("a scenario that says what the log was not measured under is set right: what can be planted can be undone") {
  const Folder folder("undone");
  int undone = 0;
  for (const auto& text : {scenario_of("hgx-h100-ndr", "workload: {benchmark: all_reduce_perf, gpus: 16}"),
                           scenario_of("h200-8gpu-vm", "workload: {benchmark: all_reduce_perf, gpus: 2}")}) {
    const auto loaded = load_scenario(folder.write("right.yaml", text));
    REQUIRE(loaded.has_value());
    const auto right = bench_of(folder, text);
    for (const auto& change : settings_to_try(loaded->scenario, loaded->topology.spec())) {
      // No value says "as many as the library takes", nor which release or launch it was by default.
      if (change.name.find("channels") != std::string::npos || change.name.find("remove") != std::string::npos)
        continue;
      const auto planted = std::ranges::find(right.changed, change.name, &ChangedForecast::setting);
      if (planted == right.changed.end() || mean_change(right.present, planted->prediction) < 0.15) continue;
      const auto wrong = bench_of(folder, text, change.settings);
      const auto log = measured(right.present, 7);
      if (validate(wrong.present, log).summary.interval_coverage > 0.7) continue;
      const auto named = explaining_settings(wrong.present, wrong.changed, {log});
      CAPTURE(change.name);
      CHECK_FALSE(named.empty());
      if (named.empty()) continue;
      ++undone;
      const auto taken = std::ranges::find(wrong.changed, named[0].setting, &ChangedForecast::setting);
      CAPTURE(named[0].setting);
      CHECK(mean_change(taken->prediction, right.present) < 0.05);
    }
  }
  CHECK(undone > 15);
}

TEST_CASE("a setting is named only when it clearly beats the present one and the band") {
  WorkloadPrediction present;
  present.benchmark = Benchmark::osu_latency;
  for (std::int64_t size = 1; size <= 512; size *= 2) {
    Row row;
    row.size = Bytes{size};
    row.time = from_seconds(100e-6);
    row.low_time = from_seconds(90e-6);
    row.high_time = from_seconds(110e-6);
    present.rows.push_back(row);
  }
  const auto scaled = [&](double factor) {
    auto out = present;
    for (auto& row : out.rows) {
      row.time = from_seconds(row.time.seconds() * factor);
      row.low_time = from_seconds(row.low_time.seconds() * factor);
      row.high_time = from_seconds(row.high_time.seconds() * factor);
    }
    return out;
  };
  const auto named = [&](double measured_factor, double changed_factor) {
    auto log = measured(scaled(measured_factor), 1, 0);
    log.format = LogFormat::osu;
    return explaining_settings(present, {{"a=b", scaled(changed_factor)}}, {log}).size();
  };
  CHECK(named(1.5, 1.5) == 1);
  CHECK(named(1.5, 1.3) == 0);    // ln(1.5 / 1.3) = 0.143 of 0.405 is left, but no point comes into the band
  CHECK(named(1.5, 1.37) == 1);   // ln(1.5 / 1.37) = 0.09, inside its band of 10 %
  CHECK(named(1.09, 1.09) == 0);  // the present band holds the log
  CHECK(named(1.12, 1.12) == 1);
  CHECK(named(1.16, 1.055) == 0);   // inside its band, a gain of 0.053, but 0.64 of the error is left
  CHECK(named(1.105, 1.052) == 1);  // half is left: a gain of 0.051
  CHECK(named(1.102, 1.05) == 0);   // half is left: a gain of 0.049
  // Too few points to say anything.
  auto two = measured(scaled(1.5), 1, 0);
  two.rows.resize(2);
  CHECK(explaining_settings(present, {{"a=b", scaled(1.5)}}, {two}).empty());
}

TEST_CASE("text and JSON name the settings with the error before and after, or say that none stands out") {
  const SettingEffect effect{"software.nccl.nvls=on", 0.4, 0.03, 0.5, 0.02, 0.2, 0.9};
  const WorkloadPrediction workload;
  const report::Provenance provenance;
  const report::Validated found{{}, {}, "s", &workload, &provenance, {effect}, 12};
  CHECK(report::validation_text(found).find(
            "# settings: 12 tried; measured under one of these, most likely the first?\n"
            "#   software.nccl.nvls=on: median |error| 40.0% -> 3.0%, in band 20% -> 90%\n") != std::string::npos);
  const auto json = report::validation_json(found);
  CHECK(json.find("\"setting\": \"software.nccl.nvls=on\"") != std::string::npos);
  CHECK(json.find("\"median_abs_error_before\": 0.4") != std::string::npos);
  CHECK(json.find("\"num_settings_tried\": 12") != std::string::npos);
  CHECK(report::validation_html(found).find("software.nccl.nvls=on") != std::string::npos);
  const report::Validated none{{}, {}, "s", &workload, &provenance, {}, 12};
  CHECK(report::validation_text(none).find("# settings: 12 tried, none stands out") != std::string::npos);
  const report::Validated untried{{}, {}, "s", &workload, &provenance, {}, 0};
  CHECK(report::validation_text(untried).find("settings") == std::string::npos);
}
