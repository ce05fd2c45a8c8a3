// SPDX-License-Identifier: Apache-2.0
// Planted parameters come back: tables are simulated with known values and noise, written as nccl-tests logs, and
// fitted from other starting values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "fabricast/calibration.hpp"
#include "fabricast/simulate.hpp"
#include "fit/band.hpp"
#include "fit/dataset.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;
using test::Folder;

namespace {

namespace fs = std::filesystem;

struct Planted {
  std::string name;
  double value;
};

// All differ from the shipped values by 20 to 40 %.
const std::vector<Planted> k_planted{{"nccl.base_time.ring.simple.hopper", 9e-6},
                                     {"nccl.hop_time.ring.simple.nvlink.hopper", 2.6e-6},
                                     {"nccl.channel_bandwidth.simple.hopper", 20e9},
                                     {"nccl.nvlink_store_share.simple.hopper", 0.75}};

std::string workload(int gpus, int channels) {
  return fmt::format(
      "{{benchmark: all_reduce_perf, gpus: {}, algorithm: ring, protocol: simple, launch: thread_per_gpu{}}}", gpus,
      channels > 0 ? fmt::format(", channels: {}", channels) : "");
}

std::string header(const std::string& topology) {
  return fmt::format("schema: fabricast/calibration/1\nname: planted\ntopology: {}\nnoise: 0.02\n", topology);
}

/// Measures the scenario with the planted values and relative normal noise, in the layout of nccl-tests.
std::string measured(const Folder& folder, int gpus, int channels, double noise, std::mt19937_64& random) {
  const auto topology = fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "h200-8gpu-vm.yaml";
  const auto loaded =
      load_scenario_text((folder.path / "x.yaml").string(),
                         fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\nworkload: {}\n",
                                     topology.string(), workload(gpus, channels)));
  REQUIRE(loaded.has_value());
  auto parameters = loaded->parameters;
  for (const auto& planted : k_planted) {
    auto parameter = parameters.at(planted.name);
    parameter.value = planted.value;
    parameters.set(parameter);
  }
  auto scenario = loaded->scenario;
  for (std::int64_t size = 8; size <= std::int64_t{1} << 30; size *= 2) scenario.workloads[0].sizes.push_back({size});
  const auto prediction = simulate(loaded->topology, scenario, parameters);
  REQUIRE(prediction.has_value());
  std::string text = "# nccl-tests version 2.13.8\n";
  std::normal_distribution<double> around(0, 1);
  for (const auto& row : prediction->workloads[0].rows) {
    const double us = row.time.us() * std::exp(noise * around(random));
    const double algbw = static_cast<double>(row.size.value) / us * 1e-3;
    const auto half = fmt::format("{:.3f} {:.2f} {:.2f} 0", us, algbw, algbw * 2 * (gpus - 1) / gpus);
    text += fmt::format("{:>12} {:>12} float sum -1 {} {}\n", row.size.value, row.size.value / 4, half, half);
  }
  return text;
}

/// Logs of 2, 4 and 8 GPUs and of one channel, and the calibration file that fits them.
CalibrationReport fit_planted(std::uint64_t seed, double noise, const std::string& further = {},
                              const CalibrateOptions& options = {}) {
  const Folder folder(fmt::format("recovery-{}", seed));
  std::mt19937_64 random(seed);
  const auto topology = fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "h200-8gpu-vm.yaml";
  std::string text = header(topology.string()) + "logs:\n";
  const std::pair<int, int> runs[] = {{2, 0}, {4, 0}, {8, 0}, {8, 1}};
  for (const auto& [gpus, channels] : runs) {
    const auto name = fmt::format("{}-{}.txt", gpus, channels);
    folder.write(name, measured(folder, gpus, channels, noise, random));
    text += fmt::format("  - {{file: {}, workload: {}}}\n", name, workload(gpus, channels));
  }
  text += "fit:\n";
  for (const auto& planted : k_planted) text += fmt::format("  {}: {{}}\n", planted.name);
  folder.write("calibration.yaml", text + further);
  const auto calibration = load_calibration((folder.path / "calibration.yaml").string());
  if (!calibration) MESSAGE(render(calibration.error()));
  REQUIRE(calibration.has_value());
  const auto report = calibrate(*calibration, options);
  if (!report) MESSAGE(render(report.error()));
  REQUIRE(report.has_value());
  return *report;
}

const FittedParameter& fitted(const CalibrationReport& report, const std::string& name) {
  const auto it = std::find_if(report.parameters.begin(), report.parameters.end(),
                               [&](const FittedParameter& p) { return p.parameter.name == name; });
  REQUIRE(it != report.parameters.end());
  return *it;
}

const ValidationSummary& error_class_of(const CalibrationReport& report, const std::string& name) {
  const auto it =
      std::find_if(report.errors.begin(), report.errors.end(), [&](const ErrorClass& one) { return one.name == name; });
  REQUIRE(it != report.errors.end());
  return it->summary;
}

}  // namespace

TEST_CASE("parameters planted without noise come back to 0.2 %") {
  const auto report = fit_planted(1, 0);
  for (const auto& planted : k_planted) {
    CAPTURE(planted.name);
    CHECK(fitted(report, planted.name).parameter.value == test::approx(planted.value).epsilon(0.002));
  }
  CHECK(report.errors.front().summary.max_abs_error < 0.005);
}

TEST_CASE("planted parameters lie inside their 80 % intervals about eight times in ten") {
  int inside = 0;
  int all = 0;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    const auto report = fit_planted(seed, 0.02);
    for (const auto& planted : k_planted) {
      const auto& found = fitted(report, planted.name);
      CAPTURE(planted.name);
      CHECK(std::abs(std::log(found.parameter.value / planted.value)) < 4 * found.deviation + 0.002);
      inside += found.parameter.low <= planted.value && planted.value <= found.parameter.high ? 1 : 0;
      ++all;
    }
  }
  CHECK(inside >= 0.65 * all);
  CHECK(inside <= 0.97 * all);
}

TEST_CASE("the band of a fit holds 75 to 90 % of points measured again, which did not set it") {
  double inside = 0;
  int points = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto report = fit_planted(seed, 0.03, "hold_out: {every: 2}\n");
    const auto& held_out = error_class_of(report, "held-out sizes");
    inside += held_out.interval_coverage * held_out.num_points;
    points += held_out.num_points;
    CHECK(held_out.median_abs_error < 0.04);
    // Set on the fitted half alone: two left-out forecasts of each.
    CHECK(report.num_band_points == 2 * error_class_of(report, "in sample").num_points);
  }
  CHECK(inside >= 0.75 * points);
  CHECK(inside <= 0.90 * points);
}

TEST_CASE("forecasts beyond the fitted counts are marked, have a wider band, and it holds most of them") {
  double inside = 0;
  int points = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto report = fit_planted(seed, 0.03, "hold_out: {ranks: [8]}\n");
    const auto& held_out = error_class_of(report, "held-out logs");
    inside += held_out.interval_coverage * held_out.num_points;
    points += held_out.num_points;
    const auto width = [](const CalibrationPoint& p) { return (p.high - p.low).seconds() / p.predicted.seconds(); };
    double fitted_width = 0;
    for (const auto& p : report.points) {
      CHECK(p.is_extrapolated == !p.is_fitted);
      // The same size among 4 GPUs comes before that among 8.
      if (p.size.value == 1 << 20 && p.log == 1) fitted_width = width(p);
      if (p.size.value == 1 << 20 && p.log == 2) CHECK(width(p) > fitted_width);
    }
  }
  CHECK(inside >= 0.75 * points);
}

TEST_CASE("a band is as wide as 80 % of left-out points need, on top of what parameters give") {
  // Predicted 100 us; measured 90, 95, 98, 110, 120 us: distances 0.10, 0.05, 0.02, 0.10, 0.20 of the prediction.
  std::vector<fit::Forecast> forecasts;
  for (const double measured : {90e-6, 95e-6, 98e-6, 110e-6, 120e-6}) {
    fit::Forecast one;
    one.point.measured = from_seconds(measured);
    one.point.predicted = from_seconds(100e-6);
    one.point.relative_error = 100e-6 / measured - 1;
    one.below = 0.06;
    one.above = 0.06;
    forecasts.push_back(one);
  }
  // Needed: sqrt(0.10^2 - 0.06^2) = 0.08, 0, 0, 0.08, sqrt(0.20^2 - 0.06^2) = 0.1908; position 0.8 x 4 = 3.2 of the
  // sorted 0, 0, 0.08, 0.08, 0.1908 = 0.08 + 0.2 x 0.1108 = 0.10216.
  CHECK(fit::model_error_of(forecasts, 0) == test::approx(0.10216).epsilon(1e-4));
  CHECK(fit::model_error_of(forecasts, 0.15) == test::approx(0.15));
  CHECK(fit::extrapolation_error_of(forecasts, 0) == -1);
  for (auto& one : forecasts) one.doublings = 2;
  CHECK(fit::extrapolation_error_of(forecasts, 0) == test::approx(0.10216 / 2).epsilon(1e-4));
  // Half width sqrt(0.06^2 + 0.08^2) = 0.1.
  const auto point = fit::with_band(forecasts[0], {0.08, 0});
  CHECK(point.low.us() == test::approx(90));
  CHECK(point.high.us() == test::approx(110));
}

TEST_CASE("a fit that is stopped answers with its best values and says so") {
  int asked = 0;
  std::atomic<bool> stop{false};
  CalibrateOptions options;
  options.stop = &stop;
  options.progress = [&](double) { stop = ++asked > 12; };
  const auto report = fit_planted(9, 0.02, "", options);
  CHECK(report.is_interrupted);
  CHECK(report.num_band_points == 0);
  CHECK(parameters_yaml(report).find("interrupted before the minimum") != std::string::npos);
  CHECK(asked < 40);
  CHECK(report.errors.front().name == "in sample");
  // Some steps towards the planted value were made.
  const auto& base = fitted(report, k_planted[0].name);
  CHECK(base.parameter.value != base.start);
}

TEST_CASE("a start of the calibration's own goes along though the data cannot improve it") {
  const auto report =
      fit_planted(5, 0.02, "  nccl.first_chunk.simple.hopper: {start: 0.21, low: 0.2, high: 0.22, prior: 0.01}\n");
  REQUIRE(fitted(report, "nccl.first_chunk.simple.hopper").determination == Determination::undetermined);
  const auto* kept = report.fitted.find("nccl.first_chunk.simple.hopper");
  REQUIRE(kept != nullptr);
  CHECK(kept->value == 0.21);
}

TEST_CASE("what all protocols share is fitted for one of them on one generation of GPUs") {
  const auto report = fit_planted(5, 0.02, "  nccl.channel_skew.ll.hopper: {start: 0.04 us}\n");
  CHECK(fitted(report, "nccl.channel_skew.ll.hopper").start == test::approx(0.04e-6));
}

TEST_CASE("a run with the fitted parameters has the band and the marks that the fit reported") {
  const auto report = fit_planted(10, 0.02, "hold_out: {ranks: [8]}\n");
  const Folder folder("chain");
  folder.write("p.yaml", parameters_yaml(report));
  const auto topology = fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "h200-8gpu-vm.yaml";
  for (std::size_t log = 0; log < 3; ++log) {
    const int gpus = report.logs[log].num_ranks;
    auto loaded = load_scenario_text((folder.path / "s.yaml").string(),
                                     fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\nworkload: {}\n",
                                                 topology.string(), workload(gpus, 0)),
                                     {(folder.path / "p.yaml").string()});
    if (!loaded) MESSAGE(render(loaded.error()));
    REQUIRE(loaded.has_value());
    std::vector<const CalibrationPoint*> points;
    for (const auto& p : report.points) {
      if (p.log != log) continue;
      points.push_back(&p);
      loaded->scenario.workloads[0].sizes.push_back(p.size);
    }
    const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
    REQUIRE(prediction.has_value());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& row = prediction->workloads[0].rows[i];
      CAPTURE(gpus);
      CAPTURE(row.size.value);
      CHECK(row.time.us() == test::approx(points[i]->predicted.us()).epsilon(1e-4));
      CHECK(row.low_time.us() == test::approx(points[i]->low.us()).epsilon(1e-3));
      CHECK(row.high_time.us() == test::approx(points[i]->high.us()).epsilon(1e-3));
      CHECK(row.is_extrapolated == (gpus == 8));
    }
  }
}

TEST_CASE("a parameter that no log depends on is named and kept") {
  const auto report = fit_planted(4, 0.02, "  nccl.hop_time.tree.ll.nvlink: {}\n");
  const auto& idle = fitted(report, "nccl.hop_time.tree.ll.nvlink");
  CHECK(idle.determination == Determination::unused);
  CHECK(idle.parameter.value == idle.start);
  CHECK(report.fitted.find("nccl.hop_time.tree.ll.nvlink") == nullptr);
}

TEST_CASE("a parameter that the data hardly constrain is named and kept at its prior") {
  // What is left of the first chunk is a tenth of a per cent of these times once its bounds are this narrow.
  const auto report =
      fit_planted(5, 0.02, "  nccl.first_chunk.simple.hopper: {start: 0.2, low: 0.19, high: 0.21, prior: 0.01}\n");
  const auto& weak = fitted(report, "nccl.first_chunk.simple.hopper");
  CHECK(weak.determination == Determination::undetermined);
  CHECK(weak.parameter.value == weak.start);
}

TEST_CASE("leaving out the largest count still forecasts it when the parameters belong to devices") {
  const auto report = fit_planted(6, 0.01);
  const auto left_out = std::find_if(report.errors.begin(), report.errors.end(),
                                     [](const ErrorClass& one) { return one.name == "leave out 8 ranks"; });
  REQUIRE(left_out != report.errors.end());
  CHECK(left_out->summary.num_points > 30);
  CHECK(left_out->summary.median_abs_error < 0.06);
  // Fits without some of the logs begin at the minimum of all, with its derivatives.
  CHECK(report.evaluations <= 210);
}

TEST_CASE("patterns match names with any characters for a star") {
  CHECK(fit::matches_pattern("nccl.*.nvlink", "nccl.hop_time.ring.ll.nvlink"));
  CHECK(fit::matches_pattern("*", ""));
  CHECK_FALSE(fit::matches_pattern("nccl.*.nvlink", "nccl.hop_time.ring.ll.nvlink.hopper"));
}

TEST_CASE("a misspelt parameter is a fault with the nearest name") {
  const Folder folder("misspelt");
  std::mt19937_64 random(1);
  const auto topology = fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "h200-8gpu-vm.yaml";
  folder.write("a.txt", measured(folder, 2, 0, 0, random));
  folder.write("c.yaml", header(topology.string()) + fmt::format("logs:\n  - {{file: a.txt, workload: {}}}\nfit:\n"
                                                                 "  nccl.base_tyme.ring.simple: {{}}\n",
                                                                 workload(2, 0)));
  const auto calibration = load_calibration((folder.path / "c.yaml").string());
  REQUIRE(calibration.has_value());
  const auto report = calibrate(*calibration);
  REQUIRE_FALSE(report.has_value());
  CHECK(render(report.error()).find("did you mean 'nccl.base_time.ring.simple'?") != std::string::npos);
  CHECK(report.error()[0].location.line == 8);
}

TEST_CASE("fitted parameters, written and read again, are the same to six digits") {
  const auto report = fit_planted(7, 0.02);
  const Folder folder("written");
  folder.write("p.yaml", parameters_yaml(report));
  const auto read = load_parameters((folder.path / "p.yaml").string());
  if (!read) MESSAGE(render(read.error()));
  REQUIRE(read.has_value());
  for (const auto& row : report.fitted.all()) {
    const auto& [name, parameter] = row;
    CAPTURE(row.first);
    CHECK(read->parameters.at(name).value == test::approx(parameter.value).epsilon(1e-5));
    CHECK(read->parameters.at(name).low <= read->parameters.at(name).value);
  }
}

TEST_CASE("a forecast for more ranks than were fitted says so and has a wider band") {
  const auto report = fit_planted(8, 0.02);
  const auto topology = fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "h200-8gpu-vm.yaml";
  const auto loaded = load_scenario_text("x.yaml", fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\n"
                                                               "workload: {}\n",
                                                               topology.string(), workload(8, 0)));
  REQUIRE(loaded.has_value());
  const auto relative_width = [&](double fitted_ranks, bool expected) {
    auto parameters = loaded->parameters;
    parameters.merge(report.fitted);
    auto ranks = parameters.at("model.fitted_ranks.all_reduce_perf.h200-sxm.none.none.one");
    ranks.value = fitted_ranks;
    parameters.set(ranks);
    const auto prediction = simulate(loaded->topology, loaded->scenario, parameters);
    REQUIRE(prediction.has_value());
    const auto& row = prediction->workloads[0].rows[10];
    CHECK(row.is_extrapolated == expected);
    return (row.high_time.seconds() - row.low_time.seconds()) / row.time.seconds();
  };
  CHECK(relative_width(4, true) > 1.01 * relative_width(8, false));
  CHECK(relative_width(2, true) > 1.01 * relative_width(4, true));
}

TEST_CASE("a calibration says what its logs were of and what it set, and leaves the scatter between systems alone") {
  const auto report = fit_planted(9, 0.02);  // NCCL in one host
  const std::string kind = "all_reduce_perf.h200-sxm.none.none.one";
  CHECK(report.fitted.at("model.fitted_ranks." + kind).value == 8);
  CHECK(report.fitted.at("model.fitted_hosts." + kind).value == 1);
  CHECK(report.fitted.at("model.fitted_size_low." + kind + ".ring-simple").value == 8);
  CHECK(report.fitted.at("model.fitted_size_high." + kind + ".ring-simple").value == std::pow(2, 30));
  CHECK(report.fitted.at("model.fitted_share." + kind + ".nccl.nvlink_store_share.simple.hopper").value > 0.5);
  CHECK(report.fitted.at("model.fitted_error").value == report.model_error);
  for (const auto& planted : k_planted) {
    const auto& found = fitted(report, planted.name);
    const auto& before = report.fitted.at("model.fitted_value." + planted.name);
    CHECK(before.value * found.parameter.value == test::approx(found.start));
    CHECK(before.low <= before.value);
  }
  for (const auto* name : {"model.relative_error", "model.between_systems.nccl_host", "model.fitted_ranks"})
    CHECK(report.fitted.find(name) == nullptr);
}
