// SPDX-License-Identifier: Apache-2.0
// The narrow band of a fit is for what is like its logs; what is not keeps the band of no fit. A fit is never worse on
// its own points than its start, and its band never narrower than the noise it is told.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <set>

#include "fabricast/calibration.hpp"
#include "fabricast/simulate.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;
using test::Folder;

namespace {

std::string topology_file(const std::string& name) {
  return (std::filesystem::path(FABRICAST_SOURCE_DIR) / "topologies" / (name + ".yaml")).string();
}

LoadedScenario scenario_of(const std::string& topology, const std::string& workload, const std::string& software = {}) {
  const auto loaded =
      load_scenario_text("x.yaml", fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\n{}workload: {}\n",
                                               topology_file(topology), software, workload));
  if (!loaded) MESSAGE(render(loaded.error()));
  REQUIRE(loaded.has_value());
  return *loaded;
}

WorkloadPrediction forecast_of(const LoadedScenario& loaded, const ParameterSet& fitted = {}) {
  auto parameters = loaded.parameters;
  parameters.merge(fitted);
  const auto prediction = simulate(loaded.topology, loaded.scenario, parameters);
  REQUIRE(prediction.has_value());
  return prediction->workloads[0];
}

/// Our forecast as a log of nccl-tests, every time multiplied by `factor` of the row's number.
std::string log_of(const LoadedScenario& loaded, const std::function<double(std::size_t)>& factor) {
  std::string text = "# nccl-tests version 2.13.8\n";
  const auto forecast = forecast_of(loaded);
  for (std::size_t i = 0; i < forecast.rows.size(); ++i) {
    const auto& row = forecast.rows[i];
    const double us = row.time.us() * factor(i);
    const double algbw = static_cast<double>(row.size.value) / us * 1e-3;
    const auto half =
        fmt::format("{:.3f} {:.2f} {:.2f} 0", us, algbw, algbw * 2 * (forecast.num_ranks - 1) / forecast.num_ranks);
    text += fmt::format("{:>12} {:>12} float sum -1 {} {}\n", row.size.value, row.size.value / 4, half, half);
  }
  return text;
}

struct LogOf {
  std::string workload;
  std::function<double(std::size_t)> factor;
};

CalibrationReport fit_of(const std::string& topology, const std::vector<LogOf>& logs, const std::string& parameters,
                         double noise, bool with_leave_out = true) {
  const Folder folder("acquaintance");
  std::string text = fmt::format("schema: fabricast/calibration/1\nname: x\ntopology: {}\nnoise: {}\nlogs:\n",
                                 topology_file(topology), noise);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const auto name = fmt::format("{}.txt", i);
    folder.write(name, log_of(scenario_of(topology, logs[i].workload), logs[i].factor));
    text += fmt::format("  - {{file: {}, workload: {}}}\n", name, logs[i].workload);
  }
  folder.write("c.yaml", text + "fit:\n" + parameters);
  const auto calibration = load_calibration((folder.path / "c.yaml").string());
  if (!calibration) MESSAGE(render(calibration.error()));
  REQUIRE(calibration.has_value());
  CalibrateOptions options;
  options.with_leave_out = with_leave_out;
  const auto report = calibrate(*calibration, options);
  if (!report) MESSAGE(render(report.error()));
  REQUIRE(report.has_value());
  return *report;
}

std::function<double(std::size_t)> noisy(std::uint64_t seed, double noise) {
  auto random = std::make_shared<std::mt19937_64>(seed);
  return [random, noise](std::size_t) { return std::exp(noise * std::normal_distribution<double>(0, 1)(*random)); };
}

const std::string k_all_reduce = "{benchmark: all_reduce_perf, gpus: 16}";
const std::string k_values =
    "  nccl.hop_time.tree.ll.network_staged: {}\n  nccl.hop_time.tree.ll.nvlink: {}\n"
    "  nccl.nvlink_store_share.nvls_tree: {}\n  nccl.hop_time.nvls.simple.network: {}\n";

double width(const Row& row) { return (row.high_time - row.low_time).seconds() / row.time.seconds(); }

double mean_width(const WorkloadPrediction& table) {
  double sum = 0;
  for (const auto& row : table.rows) sum += width(row);
  return sum / static_cast<double>(table.rows.size());
}

}  // namespace

TEST_CASE("a fit narrows the band of what its logs were of, and of nothing else") {
  const auto report = fit_of(
      "hgx-h100-ndr", {{k_all_reduce, noisy(1, 0.02)}, {"{benchmark: all_reduce_perf, gpus: 32}", noisy(2, 0.02)}},
      k_values, 0.02);
  const auto like = scenario_of("hgx-h100-ndr", k_all_reduce);
  CHECK(mean_width(forecast_of(like, report.fitted)) < 0.5 * mean_width(forecast_of(like)));
  CHECK_FALSE(forecast_of(like, report.fitted).rows[5].is_extrapolated);
  struct Other {
    const char *topology, *workload, *software;
  };
  for (const auto& other :
       {Other{"hgx-h100-ndr", "{benchmark: all_reduce_perf, gpus: 16}", "software: {transport: tcp}\n"},
        Other{"hgx-h100-ndr", "{benchmark: all_reduce_perf, gpus: 8}", ""},
        Other{"hgx-h100-ndr", "{benchmark: broadcast_perf, gpus: 16}", ""},
        Other{"hgx-h100-ndr", "{benchmark: all_reduce_perf, gpus: 16, algorithm: tree, protocol: simple}", ""},
        Other{"hgx-h100-ndr", "{benchmark: osu_latency}", ""},
        Other{"dgx-1-v100-pair", "{benchmark: all_reduce_perf, gpus: 16}", ""},
        Other{"hgx-a100-roce-pair", "{benchmark: all_reduce_perf, gpus: 16}", ""},
        Other{"mi300x-pair", "{benchmark: all_reduce_perf, gpus: 16}", ""}}) {
    CAPTURE(other.topology);
    CAPTURE(other.workload);
    const auto loaded = scenario_of(other.topology, other.workload, other.software);
    const auto without = forecast_of(loaded);
    const auto with = forecast_of(loaded, report.fitted);
    CHECK(mean_width(with) >= 0.97 * mean_width(without));
    CHECK(mean_width(with) <= 1.2 * mean_width(without));
    for (const auto& row : with.rows) CHECK(row.is_extrapolated);
    CHECK(std::ranges::any_of(with.assumptions, [](const auto& line) { return line.find("fit") != line.npos; }));
  }
}

TEST_CASE("beyond the counts of a fit no band is wider than that of no fit") {
  const auto report = fit_of(
      "hgx-h100-ndr", {{"{benchmark: all_reduce_perf, gpus: 8}", noisy(3, 0.02)}, {k_all_reduce, noisy(4, 0.02)}},
      k_values, 0.02);
  // From one host to two is no doubling: adapters and network come in.
  CHECK(report.fitted.at("model.extrapolation_error").value == test::approx(0.08));
  CHECK(report.fitted.at("model.extrapolation_error").source.starts_with("usual value"));
  auto set = report.fitted;
  for (const double growth : {0.08, 1.0}) {
    auto further = set.at("model.extrapolation_error");
    further.value = growth;
    set.set(further);
    for (const int gpus : {32, 128}) {
      const auto loaded = scenario_of("hgx-h100-ndr", fmt::format("{{benchmark: all_reduce_perf, gpus: {}}}", gpus));
      const auto without = forecast_of(loaded);
      const auto with = forecast_of(loaded, set);
      for (std::size_t i = 0; i < with.rows.size(); ++i) {
        CHECK(with.rows[i].is_extrapolated);
        CHECK(width(with.rows[i]) <= 1.15 * width(without.rows[i]));
      }
    }
  }
}

TEST_CASE("a fit that did not forecast larger counts says so and is not surer of them") {
  const std::vector<LogOf> logs{{k_all_reduce, noisy(5, 0.02)},
                                {"{benchmark: all_reduce_perf, gpus: 32}", noisy(6, 0.02)}};
  const auto whole = fit_of("hgx-h100-ndr", logs, k_values, 0.02);
  const auto quick = fit_of("hgx-h100-ndr", logs, k_values, 0.02, false);
  CHECK(whole.fitted.at("model.extrapolation_error").source.starts_with("half width per doubling"));
  CHECK(quick.fitted.at("model.extrapolation_error").source.find("--quick") != std::string::npos);
  const auto loaded = scenario_of("hgx-h100-ndr", "{benchmark: all_reduce_perf, gpus: 64}");
  const auto narrow = forecast_of(loaded, whole.fitted);
  const auto wide = forecast_of(loaded, quick.fitted);
  for (std::size_t i = 0; i < wide.rows.size(); ++i) CHECK(width(wide.rows[i]) >= 0.97 * width(narrow.rows[i]));
}

TEST_CASE("large messages alone say nothing of small ones") {
  const std::string large = "{benchmark: all_reduce_perf, gpus: 16, sizes: [1 GiB, 2 GiB]}";
  const auto report = fit_of("hgx-h100-ndr", {{large, [](std::size_t) { return 1.15; }}},
                             "  nccl.nvlink_store_share.nvls_tree: {}\n", 0.02);
  // Two sizes: no noise can be seen, the file's own is the least band.
  CHECK(report.model_error >= 0.02);
  const auto small = scenario_of("hgx-h100-ndr", "{benchmark: all_reduce_perf, gpus: 16, sizes: [8 B]}");
  CHECK(width(forecast_of(small, report.fitted).rows[0]) ==
        test::approx(width(forecast_of(small).rows[0])).epsilon(0.05));
}

TEST_CASE("a fit is never worse on its own points than what it started from") {
  const std::string workload = "{benchmark: all_reduce_perf, gpus: 8}";
  const std::set<std::size_t> disturbed{1, 4, 5, 9, 10, 13};  // six of the ten small sizes that are fitted
  bool has_refused = false;
  for (const double noise : {0.01, 0.026, 0.05}) {
    for (const double slower : {1.0, 1.3, 1.6}) {
      CAPTURE(noise);
      CAPTURE(slower);
      const auto report =
          fit_of("hgx-h100-ndr", {{workload, [&](std::size_t i) { return disturbed.contains(i) ? slower : 1.0; }}},
                 "  nccl.hop_time.*.nvlink: {}\n  nccl.nvlink_store_share.*: {}\nhold_out: {every: 4}\n", noise);
      const auto of = [&](const char* name) {
        const auto found = std::ranges::find(report.errors, name, &ErrorClass::name);
        REQUIRE(found != report.errors.end());
        return found->summary.median_abs_error;
      };
      CHECK(of("in sample") <= std::max(of("before the fit"), noise) + 1e-9);
      for (const auto& warning : report.warnings)
        has_refused = has_refused || warning.message.starts_with("the fit is worse on its own points");
    }
  }
  CHECK(has_refused);
}
