// SPDX-License-Identifier: Apache-2.0
#include "sweep/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fabricast/training.hpp"

namespace fabricast::sweep {

namespace {

constexpr std::size_t k_most_parts = 8;

std::optional<double> own_figure(const Row& row, std::string_view key) {
  const auto it = std::ranges::find(row.figures, key, &Figure::key);
  return it == row.figures.end() ? std::nullopt : std::optional(it->value);
}

const WorkloadPrediction* workload_of(const Metric& metric, const Prediction& prediction) {
  if (prediction.workloads.empty()) return nullptr;
  if (metric.workload.empty()) return &prediction.workloads.front();
  const auto it = std::ranges::find(prediction.workloads, metric.workload, &WorkloadPrediction::name);
  return it == prediction.workloads.end() ? nullptr : &*it;
}

const Workload& asked_workload(const Metric& metric, const Scenario& scenario, const Prediction& prediction) {
  const auto* found = workload_of(metric, prediction);
  const auto place = found == nullptr ? 0 : static_cast<std::size_t>(found - prediction.workloads.data());
  return scenario.workloads[place];
}

/// A rate whose time has a band.
Estimate rate(double value, const Row& row) {
  const auto seconds = [](Duration time) { return std::max(1e-12, time.seconds()); };
  return {value, value * seconds(row.time) / seconds(row.high_time), value * seconds(row.time) / seconds(row.low_time)};
}

/// A part of the time, with the band of the whole.
Estimate part(double value, const Row& row) {
  const double whole = std::max(1e-12, row.time.seconds());
  return {value, value * row.low_time.seconds() / whole, value * row.high_time.seconds() / whole};
}

/// `images_per_second` of a network of tokens, and the like.
std::optional<double> throughput(const Metric& metric, const Row& row, const Workload& workload) {
  const auto all =
      own_figure(row, metric.name == "throughput_per_gpu" ? "throughput_per_gpu_per_s" : "throughput_per_s");
  const auto tokens = workload.training && workload.training->network ? workload.training->network->tokens : 0;
  if (all && metric.name == "samples_per_second" && tokens > 0) return *all / static_cast<double>(tokens);
  return all;
}

/// Why a workload does not have the figure; empty when it has.
std::string misplaced_in(const Metric& metric, const Workload& workload) {
  const auto belongs = [&](const char* to) {
    return fmt::format("'{}' belongs to {}, the workload is {}", metric.text, to, to_string(workload.benchmark));
  };
  const auto& name = metric.name;
  if (name == "time" || name == "latency" || name == "step_time" || metric.is_of_hardware) return {};
  if (name == "messages_per_second") return is_bandwidth_test(workload.benchmark) ? "" : belongs("bandwidth tests");
  if (metric.dimension == Dimension::bandwidth) return workload.training ? belongs("tests of messages") : "";
  if (!workload.training) return belongs("training steps");
  const auto tokens = workload.training->network ? workload.training->network->tokens : 0;
  if (name == "tokens_per_second" && tokens == 0)
    return "'tokens_per_second' of a network that does not work on tokens: write images_per_second";
  if (name == "images_per_second" && tokens > 0)
    return "'images_per_second' of a network that works on tokens: write tokens_per_second or samples_per_second";
  return {};
}

}  // namespace

void keep_rows(Scenario& scenario, const std::vector<Metric>& metrics) {
  if (scenario.workloads.size() != 1) return;  // rows of several workloads run together
  auto& workload = scenario.workloads.front();
  if (workload.benchmark == Benchmark::gpu_sharing) return;
  std::vector<Bytes> sizes;
  std::vector<int> counts;
  bool needs_last = false;
  for (const auto& metric : metrics) {
    if (metric.is_of_hardware) continue;
    if (metric.size) sizes.push_back(*metric.size);
    if (metric.gpus) counts.push_back(*metric.gpus);
    needs_last = needs_last || (!metric.size && !metric.gpus);
  }
  if (workload.training) {
    auto spec = *workload.training;
    if (needs_last && !spec.gpu_counts.empty()) counts.push_back(*std::ranges::max_element(spec.gpu_counts));
    if (needs_last && spec.gpu_counts.empty() && !counts.empty()) return;  // 'all' beside counts: see figure_of
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    spec.gpu_counts = counts;
    workload.training = std::make_shared<const TrainingSpec>(std::move(spec));
    return;
  }
  const auto own = workload.sizes.empty() ? default_sizes(workload.benchmark) : workload.sizes;
  if (needs_last && !own.empty()) sizes.push_back(own.back());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  workload.sizes = sizes;
}

const Row* row_of(const Metric& metric, const Prediction& prediction, std::string& fault) {
  const auto* workload = workload_of(metric, prediction);
  if (workload == nullptr) {
    fault = fmt::format("no workload '{}' for '{}'", metric.workload, metric.text);
    return nullptr;
  }
  for (const auto& row : workload->rows) {
    const auto gpus = own_figure(row, "gpus");
    if (metric.size && row.size == *metric.size) return &row;
    if (metric.gpus && gpus && static_cast<int>(*gpus) == *metric.gpus) return &row;
  }
  if (metric.size || metric.gpus || workload->rows.empty()) {
    fault = fmt::format("no row for '{}'", metric.text);
    return nullptr;
  }
  return &workload->rows.back();
}

std::string misplaced(const Metric& metric, const Scenario& scenario) {
  const auto& all = scenario.workloads;
  const auto it = metric.workload.empty() ? all.begin() : std::ranges::find(all, metric.workload, &Workload::name);
  return it == all.end() ? std::string() : misplaced_in(metric, *it);
}

std::optional<Estimate> figure_of(const Metric& metric, const Scenario& scenario, const Prediction& prediction,
                                  std::string& fault) {
  const auto* row = row_of(metric, prediction, fault);
  if (row == nullptr) return std::nullopt;
  if (row->bottleneck.starts_with("not finished")) {
    fault = row->bottleneck;
    return std::nullopt;
  }
  const auto& workload = asked_workload(metric, scenario, prediction);
  fault = misplaced_in(metric, workload);
  if (!fault.empty()) return std::nullopt;
  const auto& name = metric.name;
  if (name == "time" || name == "latency" || name == "step_time")
    return Estimate{row->time.seconds(), row->low_time.seconds(), row->high_time.seconds()};
  if (name == "busbw") return rate(row->busbw.bytes_per_s, *row);
  if (name == "algbw" || name == "bandwidth") return rate(row->algbw.bytes_per_s, *row);
  if (name == "messages_per_second") return rate(row->messages_per_s, *row);
  const bool is_time = name.ends_with("_time");
  const auto value = is_time                        ? own_figure(*row, name + "_ps")
                     : name == "scaling_efficiency" ? own_figure(*row, "scaling_efficiency_share")
                                                    : throughput(metric, *row, workload);
  if (!value) {
    fault = fmt::format("'{}' is no figure of this step", metric.text);
    return std::nullopt;
  }
  return is_time ? part(*value * 1e-12, *row) : rate(*value, *row);
}

std::optional<Estimate> figure_of(const Metric& metric, const Parts& parts, const Bill& bill) {
  const auto exactly = [](double value) { return Estimate{value, value, value}; };
  const auto& name = metric.name;
  if (name == "cost") return bill.total;
  if (name == "capital_cost") return bill.capital;
  if (name == "running_cost") return bill.running;
  if (name == "power") return exactly(bill.watts);
  if (name == "rack_units") return exactly(bill.rack_units);
  if (name == "gpus") return exactly(parts.num_gpus());
  if (name == "hosts") return exactly(parts.num_hosts());
  if (name == "hcas") return exactly(parts.num_hcas());
  if (name == "switches") return exactly(parts.num_switches());
  if (name == "cables") return exactly(parts.num_cables());
  return std::nullopt;
}

std::vector<TimeShare> split_of(const Row& row) {
  std::map<std::string, double> by_name;
  for (const auto& term : row.terms) {
    // Numbers that differ from row to row do not make terms different: "exposed all-reduce of gradients, bucket 17".
    auto name = term.name.substr(0, term.name.find(", "));
    name = name.substr(0, name.find(" ("));
    by_name[name] += term.time.seconds();
  }
  std::vector<TimeShare> parts;
  for (const auto& entry : by_name) {
    if (entry.second > 0) parts.push_back({entry.first, entry.second / std::max(1e-12, row.time.seconds())});
  }
  std::ranges::stable_sort(parts, std::greater{}, &TimeShare::share);
  if (parts.size() > k_most_parts) {
    double rest = 0;
    for (std::size_t i = k_most_parts - 1; i < parts.size(); ++i) rest += parts[i].share;
    parts.resize(k_most_parts - 1);
    parts.push_back({"other terms", rest});
  }
  return parts;
}

}  // namespace fabricast::sweep
