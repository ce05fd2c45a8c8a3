// SPDX-License-Identifier: Apache-2.0
// One parameter at a time. Variances of logarithms add up: the share of a parameter is (ln(at_high / at_low) / 2)^2 of
// their sum; what the forecast's own band holds beyond that sum is the scatter between systems that nobody measured.
#include "fabricast/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "engine/interval.hpp"
#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"
#include "sweep/cost.hpp"
#include "sweep/figures.hpp"
#include "sweep/short_names.hpp"

namespace fabricast {

namespace {

using namespace sweep;

constexpr double k_least_effect = 1e-6;  ///< of the figure, below which a parameter does not matter

/// The benchmark that measures a parameter, by its owner.
std::string benchmark_for(const std::string& name) {
  static const std::vector<std::pair<const char*, const char*>> by_prefix = {
      {"training.", "the training step itself on one GPU (profile), then on one host"},
      {"nccl.", "nccl-tests all_reduce_perf, 8 B to 8 GiB, on one and on two hosts"},
      {"mpi.", "osu_latency and osu_bw between two hosts"},
      {"verbs.", "ib_write_lat and ib_write_bw between two hosts"},
      {"tcp.", "iperf3 and sockperf between two hosts"},
      {"virtualization.", "the same benchmark in a VM and on bare metal"},
      {"sharing.", "gpu_sharing clients on one GPU"},
      {"cuda.", "nccl-tests all_reduce_perf, 8 B to 8 GiB, on one and on two hosts"},
      {"pcie.", "bandwidthTest and p2pBandwidthLatencyTest on one host"}};
  for (const auto& [prefix, benchmark] : by_prefix) {
    if (name.starts_with(prefix)) return benchmark;
  }
  const auto field = name.substr(name.find('.') + 1);
  if (field.find("tflops") != std::string::npos || field.find("memory") != std::string::npos ||
      field.find("efficiency") != std::string::npos)
    return "the training step itself on one GPU (profile), then on one host";
  if (field.find("nvlink") != std::string::npos)
    return "nccl-tests all_reduce_perf, 8 B to 8 GiB, on one and on two hosts";
  if (field.find("p2p") != std::string::npos || field.find("copy") != std::string::npos ||
      field.find("pcie") != std::string::npos)
    return "bandwidthTest and p2pBandwidthLatencyTest on one host";
  return "ib_write_lat and ib_write_bw between two hosts";
}

struct Range {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string source;
};

class Analyst {
 public:
  Analyst(LoadedScenario loaded, std::vector<Metric> metrics)
      : loaded_(std::move(loaded)), metrics_(std::move(metrics)) {
    keep_rows(loaded_.scenario, metrics_);
    collect();
  }

  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

  /// Every figure at one end of one parameter, as a text of numbers; 2 i: low, 2 i + 1: high.
  [[nodiscard]] std::string figures_at(std::size_t end) const {
    const auto& range = ranges_[end / 2];
    auto parameters = loaded_.parameters;
    auto changed = parameters.at(range.name);
    changed.value = end % 2 == 0 ? range.low : range.high;
    changed.low = changed.high = changed.value;
    parameters.set(std::move(changed));
    std::string out;
    const auto topology = build_topology(loaded_.topology.spec(), parameters, loaded_.device_types);
    const auto prediction = topology ? simulate(*topology, loaded_.scenario, parameters)
                                     : Result<Prediction>(tl::unexpected(topology.error()));
    for (const auto& metric : metrics_) {
      std::string why;
      const auto found = prediction ? figure_of(metric, loaded_.scenario, *prediction, why) : std::nullopt;
      out += fmt::format("{:.17g} ", found ? found->value : std::nan(""));
    }
    return out;
  }

 private:
  /// Parameters that the graph or the simulation reads and whose value is uncertain.
  void collect() {
    std::set<std::string, std::less<>> names;
    auto parameters = loaded_.parameters;
    parameters.collect_reads(&names);
    const auto topology = build_topology(loaded_.topology.spec(), parameters, loaded_.device_types);
    if (topology) static_cast<void>(simulate(*topology, loaded_.scenario, parameters));
    parameters.collect_reads(nullptr);
    for (const auto& name : names) {
      if (name.starts_with("model.")) continue;  // of the band, not of the value
      const auto& one = loaded_.parameters.at(name);
      if (one.value == 0) continue;
      const double half = one.has_interval() ? 0 : engine::relative_half_width(one.confidence) * std::abs(one.value);
      ranges_.push_back({name, one.value, one.has_interval() ? one.low : one.value - half,
                         one.has_interval() ? one.high : one.value + half, one.source});
    }
  }

  LoadedScenario loaded_;
  std::vector<Metric> metrics_;
  std::vector<Range> ranges_;
};

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> out;
  double value = 0;
  int length = 0;
  for (const char* at = text.c_str(); std::sscanf(at, "%lf%n", &value, &length) == 1; at += length)
    out.push_back(value);
  return out;
}

double log_width(double low, double high) { return low > 0 && high > 0 ? std::log(high / low) / 2 : 0; }

bool is_within(double value, const SensitivityReport::Figure& figure) {
  return (!figure.at_least || value >= *figure.at_least) && (!figure.at_most || value <= *figure.at_most);
}

/// Shares, order, and what to measure next.
void finish(SensitivityReport::Figure& figure) {
  double explained = 0;
  for (auto& one : figure.influences) {
    one.share = std::pow(log_width(one.at_low, one.at_high), 2);
    explained += one.share;
    one.crosses_limit = is_within(one.at_low, figure) != is_within(figure.estimate.value, figure) ||
                        is_within(one.at_high, figure) != is_within(figure.estimate.value, figure);
  }
  const double whole = std::pow(log_width(figure.estimate.low, figure.estimate.high), 2);
  if (whole > explained && !figure.metric.is_of_hardware) {
    Influence scatter;
    scatter.what = "systems of this kind differ (nobody has calibrated this one)";
    scatter.kind = "scatter";
    scatter.share = whole - explained;
    scatter.value = figure.estimate.value;
    scatter.at_low = figure.estimate.low;
    scatter.at_high = figure.estimate.high;
    scatter.crosses_limit = is_within(scatter.at_low, figure) != is_within(scatter.at_high, figure);
    scatter.source = "points of systems left out of every fit";
    figure.influences.push_back(std::move(scatter));
  }
  const double all = std::max(whole, explained);
  for (auto& one : figure.influences) one.share = all > 0 ? one.share / all : 0;
  std::ranges::stable_sort(figure.influences, std::greater{}, &Influence::share);
  std::map<std::string, NextBenchmark> next;
  for (const auto& one : figure.influences) {
    const auto name =
        one.kind == "price" ? std::string("an offer with a fixed price")
        : one.kind == "scatter"
            ? std::string("this scenario's own benchmark on two hosts of the kind, then `fabricast calibrate`")
            : benchmark_for(one.what);
    auto& entry = next[name];
    entry.benchmark = name;
    entry.share += one.share;
    entry.settles.push_back(one.what);
  }
  for (auto& entry : next) figure.next.push_back(entry.second);
  std::ranges::stable_sort(figure.next, std::greater{}, &NextBenchmark::share);
}

/// Prices that have an interval.
void add_prices(const DesignResult& design, SensitivityReport::Figure& figure) {
  for (const auto& line : design.bill) {
    if (line.low == line.high) continue;
    const double base = figure.estimate.value;
    figure.influences.push_back({line.what, "price", line.once, line.low, line.high, base - line.once + line.low,
                                 base - line.once + line.high, 0, false, line.source});
  }
}

}  // namespace

Result<SensitivityReport> sensitivity(const SweepPlan& plan, const DesignResult& design, const TaskOptions& options,
                                      const std::function<void(double share)>& progress) {
  Diagnostics faults;
  const auto settings = expanded(plan, design.settings, faults);
  if (has_errors(faults)) return tl::unexpected(faults);
  auto loaded = load_scenario(plan.scenario_file, plan.parameter_files, settings);
  if (!loaded) return tl::unexpected(loaded.error());
  SensitivityReport report;
  report.design = design.index;
  report.name = design.name;
  report.currency = plan.cost ? plan.cost->currency : "";
  for (const auto& input : loaded->inputs) report.inputs.emplace_back(input.path, input.sha256);
  std::vector<Metric> simulated;
  for (const auto& metric : metrics_of(plan)) {
    const auto* found = design.find(metric.text);
    const bool is_asked = !metric.is_of_hardware || metric.is_money;
    if (found == nullptr || !is_asked) continue;
    SensitivityReport::Figure figure;
    figure.metric = metric;
    figure.estimate = *found;
    for (const auto& bound : plan.constraints) {
      if (bound.metric.text != metric.text) continue;
      figure.at_least = bound.at_least;
      figure.at_most = bound.at_most;
    }
    figure.probability = probability_within(*found, figure.at_least, figure.at_most);
    if (metric.is_money) add_prices(design, figure);
    if (!metric.is_of_hardware) simulated.push_back(metric);
    report.figures.push_back(std::move(figure));
  }
  const Analyst analyst(std::move(*loaded), simulated);
  std::vector<std::size_t> todo(simulated.empty() ? 0 : 2 * analyst.ranges().size());
  for (std::size_t i = 0; i < todo.size(); ++i) todo[i] = i;
  std::map<std::size_t, std::vector<double>> ends;
  run_tasks(
      todo, [&](std::size_t i) { return analyst.figures_at(i); },
      [&](std::size_t i, const std::string& text) {
        ends[i] = numbers_of(text);
        if (progress) progress(static_cast<double>(ends.size()) / static_cast<double>(todo.size()));
      },
      [](std::size_t, const std::string&) { return std::string(); }, options);
  for (std::size_t m = 0; m < simulated.size(); ++m) {
    auto& figure =
        *std::ranges::find_if(report.figures, [&](const auto& one) { return one.metric.text == simulated[m].text; });
    for (std::size_t i = 0; i < analyst.ranges().size(); ++i) {
      const auto& low = ends[2 * i];
      const auto& high = ends[2 * i + 1];
      if (low.size() <= m || high.size() <= m || std::isnan(low[m]) || std::isnan(high[m])) continue;
      if (std::abs(high[m] - low[m]) <= k_least_effect * figure.estimate.value) continue;
      const auto& range = analyst.ranges()[i];
      figure.influences.push_back(
          {range.name, "parameter", range.value, range.low, range.high, low[m], high[m], 0, false, range.source});
    }
  }
  for (auto& figure : report.figures) finish(figure);
  return report;
}

}  // namespace fabricast
