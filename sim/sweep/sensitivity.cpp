// SPDX-License-Identifier: Apache-2.0
// One parameter at a time. Variances of logarithms add up: the share of a parameter is (ln(at_high / at_low) / 2)^2 of
// their sum; what the forecast's own band holds beyond that sum is the scatter between systems that nobody measured.
#include "fabricast/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sweep/contenders.hpp"
#include "sweep/cost.hpp"

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
      {"gpu.compute_spread", "the training step itself on one GPU (profile), then on one host"},
      {"gpu.", "gpu_sharing clients on one GPU"},
      {"remote_gpu.", "the training step on a remote GPU"},
      {"migration.", "a live migration of one VM"},
      {"host.", "the same benchmark beside its neighbours on the host"},
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

/// Prices that have an interval, that of electricity too.
void add_prices(const SweepPlan& plan, const DesignResult& design, SensitivityReport::Figure& figure) {
  for (const auto& line : design.bill) {
    const auto [low, high] = price_ends(line, plan.cost ? &*plan.cost : nullptr, figure.metric.name);
    if (low == high) continue;
    const double base = figure.estimate.value;
    const double paid = line.once > 0 ? line.once : line.per_year;
    figure.influences.push_back(
        {line.what, "price", paid, paid + low, paid + high, base + low, base + high, 0, false, line.source});
  }
}

/// The design's figures that can be bounded or are asked for.
void add_figures(const SweepPlan& plan, const DesignResult& design, SensitivityReport& report) {
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
    if (metric.is_money) add_prices(plan, design, figure);
    report.figures.push_back(std::move(figure));
  }
}

/// What the ends of the design's parameters make of one simulated figure.
void add_parameters(const Contender& design, std::size_t m, SensitivityReport::Figure& figure) {
  for (const auto& range : design.analyst->ranges()) {
    const auto ends = design.ends_of(range.name, m);
    if (!ends || std::abs(ends->second - ends->first) <= k_least_effect * figure.estimate.value) continue;
    figure.influences.push_back({range.name, "parameter", range.value, range.low, range.high, ends->first, ends->second,
                                 0, false, range.source});
  }
}

/// A measurement that can change the answer comes before one that only narrows a figure.
void order_measurements(SensitivityReport& report) {
  std::set<std::string> deciding;
  for (const auto& change : report.changes) deciding.insert(change.what);
  for (auto& figure : report.figures) {
    for (auto& one : figure.next)
      one.can_change_answer =
          std::ranges::any_of(one.settles, [&](const std::string& what) { return deciding.contains(what); });
    std::ranges::stable_sort(figure.next, [](const NextBenchmark& a, const NextBenchmark& b) {
      if (a.can_change_answer != b.can_change_answer) return a.can_change_answer;
      return a.share > b.share;
    });
  }
}

}  // namespace

Result<SensitivityReport> sensitivity(const SweepReport& judged, const DesignResult& design, const TaskOptions& options,
                                      const std::function<void(double share)>& progress) {
  const auto& plan = judged.plan;
  SensitivityReport report;
  report.design = design.index;
  report.name = design.name;
  report.is_best = judged.standings[static_cast<std::size_t>(&design - judged.designs.data())].rank == 1;
  report.currency = plan.cost ? plan.cost->currency : "";
  add_figures(plan, design, report);
  std::vector<Metric> simulated;
  for (const auto& figure : report.figures) {
    if (!figure.metric.is_of_hardware) simulated.push_back(figure.metric);
  }
  auto contenders = contenders_of(judged, design, simulated);
  if (!contenders) return tl::unexpected(contenders.error());
  report.inputs = plan.inputs;
  for (const auto& input : contenders->front().inputs) report.inputs.push_back(input);
  simulate_ends(*contenders, options, progress);
  for (std::size_t m = 0; m < simulated.size(); ++m) {
    auto& figure =
        *std::ranges::find_if(report.figures, [&](const auto& one) { return one.metric.text == simulated[m].text; });
    add_parameters(contenders->front(), m, figure);
  }
  for (auto& figure : report.figures) finish(figure);
  report.num_contenders = contenders->size() - 1;
  report.changes = changes_of_answer(plan, *contenders, simulated, report.figures);
  order_measurements(report);
  return report;
}

}  // namespace fabricast
