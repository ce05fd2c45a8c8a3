// SPDX-License-Identifier: Apache-2.0
// Goodput under faults. Dead cables: the same job on the topology without them. Where no route is left, or a host is
// broken, the job starts again on the hosts that remain, and its figure counts for as many GPUs as it still has. A slow
// GPU slows the compute of every step, because all wait for it.
#include "fabricast/fault_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/training.hpp"
#include "sweep/fault_cases.hpp"
#include "sweep/figures.hpp"
#include "sweep/short_names.hpp"

namespace fabricast {

namespace {

using namespace sweep;

constexpr std::array k_kinds = {"link", "hca", "leaf", "switch", "host", "slow-gpu"};
constexpr double k_tenth = 0.1;
constexpr double k_gain = 1.001;  ///< shares above it are said to be, and why

/// What a simulation of one fault answers, as numbers in a text.
std::string answer_text(double goodput, int lost, const std::string& note) {
  return fmt::format("{:.17g} {} {}", goodput, lost, note);
}

class FaultSimulator {
 public:
  FaultSimulator(LoadedScenario loaded, Metric metric) : loaded_(std::move(loaded)), metric_(std::move(metric)) {
    keep_rows(loaded_.scenario, {metric_});
  }

  /// The figure without a fault.
  std::optional<double> fault_free(Diagnostics& faults) {
    const auto value = figure(loaded_.topology, loaded_.scenario, loaded_.parameters, faults, &base_row_, &job_);
    if (value) base_ = *value;
    return value;
  }

  /// Known once the figure without a fault is.
  [[nodiscard]] const JobPlace& job() const { return job_; }

  [[nodiscard]] std::string answer(const Fault& fault) const {
    if (!fault.broken.empty()) return after_restart(fault.broken, fault);
    Diagnostics faults;
    auto scenario = loaded_.scenario;
    const auto parameters = slowed(fault.slower, scenario);
    if (fault.links.empty()) {
      const auto value = figure(loaded_.topology, scenario, parameters, faults);
      return value ? answer_text(share(*value), 0, "") : answer_text(0, 0, faults.front().message);
    }
    Row row;
    const auto value = figure(loaded_.topology.without_links(fault.links), scenario, parameters, faults, &row);
    if (value) return answer_text(share(*value), 0, share(*value) > k_gain ? why_faster(row) : "");
    return after_restart(fault.hosts, fault);
  }

  [[nodiscard]] const LoadedScenario& loaded() const { return loaded_; }

 private:
  [[nodiscard]] double share(double value) const { return metric_.is_less_better ? base_ / value : value / base_; }

  std::optional<double> figure(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                               Diagnostics& faults, Row* row = nullptr, JobPlace* job = nullptr) const {
    const auto prediction = simulate(topology, scenario, parameters);
    if (!prediction) {
      faults.insert(faults.end(), prediction.error().begin(), prediction.error().end());
      return std::nullopt;
    }
    if (job != nullptr) *job = place_of(prediction->workloads.back());
    const auto& rows = prediction->workloads.back().rows;
    if (row != nullptr && !rows.empty()) *row = rows.back();
    std::string why;
    const auto found = figure_of(metric_, scenario, *prediction, why);
    if (found && found->value > 0) return found->value;
    faults.push_back(make_error(why.empty() ? fmt::format("'{}' is 0", metric_.text) : why));
    return std::nullopt;
  }

  /// Why a fabric with less does more.
  [[nodiscard]] std::string why_faster(const Row& row) const {
    const auto way = [](const Row& one) {
      return one.protocol.empty() ? one.algorithm : one.algorithm + " " + one.protocol;
    };
    if (way(row) != way(base_row_))
      return fmt::format("more than without a fault: {} instead of {}, which the library's rules prefer there",
                         way(row), way(base_row_));
    if (row.channels != base_row_.channels)
      return fmt::format("more than without a fault: {} channels instead of {}", row.channels, base_row_.channels);
    return fmt::format("more than without a fault, where routes meet on {}", base_row_.bottleneck);
  }

  /// GPUs of the type compute less; measured profiles take longer.
  ParameterSet slowed(double slower, Scenario& scenario) const {
    auto parameters = loaded_.parameters;
    if (slower <= 0) return parameters;
    std::set<std::string> types;
    for (const auto gpu : loaded_.topology.devices(DeviceKind::gpu)) types.insert(loaded_.topology.device(gpu).type);
    for (const auto& entry : loaded_.parameters.all()) {
      const auto dot = entry.first.find('.');
      const auto field = dot == std::string::npos ? "" : entry.first.substr(dot + 1);
      const bool is_rate = field.ends_with("tflops") || field == "memory_bandwidth";
      if (!is_rate || !types.contains(entry.first.substr(0, dot))) continue;
      auto changed = entry.second;
      for (double* value : {&changed.value, &changed.low, &changed.high}) *value *= 1 - slower;
      parameters.set(std::move(changed));
    }
    for (auto& workload : scenario.workloads) slow_profile(workload, slower);
    return parameters;
  }

  static void slow_profile(Workload& workload, double slower) {
    if (!workload.training || !workload.training->profile) return;
    auto spec = *workload.training;
    const auto longer = [&](Duration& time) { time = from_seconds(time.seconds() / (1 - slower)); };
    auto& profile = *spec.profile;
    for (auto* time : {&profile.step, &profile.forward, &profile.backward, &profile.optimizer}) longer(*time);
    for (auto& tensor : profile.tensors) longer(tensor.ready);
    workload.training = std::make_shared<const TrainingSpec>(std::move(spec));
  }

  /// Ranks lie on GPUs in host order unless devices are named.
  [[nodiscard]] JobPlace place_of(const WorkloadPrediction& forecast) const {
    JobPlace out;
    const auto& topology = loaded_.topology;
    for (const auto& name : loaded_.scenario.workloads.front().devices) {
      if (const auto vm = host_called(topology, name)) out.hosts.insert(*vm);
      if (const auto device = topology.find_device(name)) out.hosts.insert(topology.host_of(*device));
    }
    const int first_idle = out.hosts.empty() ? std::max(1, forecast.num_hosts) : 0;
    for (int host = 0; host < first_idle; ++host) out.hosts.insert(host);
    out.ranks = forecast.num_ranks;
    return out;
  }

  /// Idle hosts take the place of lost ones; where they do not suffice, on the hosts that remain, a split model on as
  /// many GPUs as its splits divide.
  [[nodiscard]] std::string after_restart(const std::vector<int>& gone, const Fault& fault) const {
    const auto& topology = loaded_.topology;
    const int in_use = static_cast<int>(job_.hosts.size());
    const auto lost =
        static_cast<int>(std::ranges::count_if(gone, [&](int host) { return job_.hosts.contains(host); }));
    const int idle = topology.num_hosts() - in_use - (static_cast<int>(gone.size()) - lost);
    const int missing = std::max(0, lost - idle);
    auto scenario = loaded_.scenario;
    auto& workload = scenario.workloads.front();
    const int remaining = remaining_ranks(workload, in_use, missing);
    if (missing > 0 && (remaining < 1 || !is_any_count(workload))) return answer_text(0, lost, "the job cannot go on");
    if (missing > 0) set_ranks(workload, remaining);
    Diagnostics faults;
    const auto parameters = slowed(fault.slower, scenario);
    const auto value = figure(topology, scenario, parameters, faults);
    if (!value) return answer_text(0, lost, "the job cannot go on: " + faults.front().message);
    const bool counts_work = metric_.name.find("per_second") != std::string::npos || metric_.name == "throughput";
    const double scale = counts_work ? 1 : static_cast<double>(remaining) / job_.ranks;
    const bool is_on_gpus = workload.training || family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
    const auto note = missing > 0 ? fmt::format("starts again on {} {}", remaining, is_on_gpus ? "GPUs" : "ranks")
                      : lost > 0  ? fmt::format("starts again with {} idle host{}", lost, lost == 1 ? "" : "s")
                                  : std::string();
    return answer_text(share(*value) * scale, lost, note);
  }

  [[nodiscard]] int remaining_ranks(const Workload& workload, int in_use, int missing) const {
    if (missing == 0) return job_.ranks;
    const int per_host = std::max(1, (job_.ranks + in_use - 1) / in_use);
    const int remaining = std::min(job_.ranks, (in_use - missing) * per_host);
    if (!workload.training) return remaining;
    const auto& p = workload.training->parallel;
    return remaining - remaining % std::max(1, p.tensor * p.pipeline * p.context);
  }

  /// Tests between two ends, traffic by pattern and jobs on named devices run as they are or not at all.
  static bool is_any_count(const Workload& workload) {
    return workload.devices.empty() && (workload.training || is_collective(workload.benchmark));
  }

  static void set_ranks(Workload& workload, int ranks) {
    if (workload.training) {
      auto spec = *workload.training;
      spec.gpu_counts = {ranks};
      workload.training = std::make_shared<const TrainingSpec>(std::move(spec));
    } else {
      (workload.ranks ? workload.ranks : workload.gpus) = ranks;
    }
  }

  LoadedScenario loaded_;
  Metric metric_;
  JobPlace job_;
  double base_ = 1;
  Row base_row_;  ///< of `base_`
};

FaultResult result_from(std::size_t index, const Fault& fault, const std::string& answer) {
  FaultResult out;
  out.index = index;
  out.name = fault.name;
  out.count = fault.count;
  out.drained_hosts = static_cast<int>(fault.hosts.size());
  int at = 0;
  if (std::sscanf(answer.c_str(), "%lf %d %n", &out.goodput, &out.lost_hosts, &at) >= 2)
    out.note = answer.substr(std::min(answer.size(), static_cast<std::size_t>(at)));
  return out;
}

/// Distribution, every fault as often as it occurs.
void summarise(FaultReport& report) {
  std::vector<std::pair<double, std::size_t>> sorted;
  double all = 0;
  double sum = 0;
  double kept = 0;
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const auto& one = report.cases[i];
    sorted.emplace_back(one.goodput, i);
    all += one.count;
    sum += one.goodput * one.count;
    const bool keeps = one.goodput >= report.plan.target;
    if (keeps) kept += one.count;
    if (!keeps) report.spares = std::max(report.spares, one.drained_hosts);
  }
  if (sorted.empty()) return;
  std::ranges::stable_sort(sorted, {}, &std::pair<double, std::size_t>::first);
  const auto quantile = [&](double share) {
    double passed = 0;
    for (const auto& entry : sorted) {
      passed += report.cases[entry.second].count;
      if (passed >= share * all) return entry.first;
    }
    return sorted.back().first;
  };
  report.worst = sorted.front().first;
  report.worst_case = sorted.front().second;
  report.tenth = quantile(k_tenth);
  report.median = quantile(0.5);
  report.mean = sum / all;
  report.share_at_target = kept / all;
}

}  // namespace

std::string_view to_string(FaultKind kind) { return k_kinds[static_cast<std::size_t>(kind)]; }

std::vector<FaultClass> fault_classes_from(const std::string& text, std::string& fault) {
  std::vector<FaultClass> out;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('|', at), text.size());
    auto word = text.substr(at, end - at);
    at = end + 1;
    FaultClass one;
    if (const auto colon = word.find(':'); colon != std::string::npos) {
      char percent = 0;
      const auto amount = word.substr(colon + 1);
      word.resize(colon);
      const bool is_read = std::sscanf(amount.c_str(), "%lf%c", &one.slower, &percent) == 2 && percent == '%';
      if (word != "slow-gpu" || !is_read || one.slower <= 0 || one.slower >= 100) {
        fault = fmt::format("'{}:{}' is no fault: only slow-gpu has an amount, from 1% to 99%", word, amount);
        return {};
      }
      one.slower /= 100;
    } else if (word == "slow-gpu") {
      fault = "'slow-gpu' needs how much slower: slow-gpu:10%";
      return {};
    }
    const auto* found = std::ranges::find(k_kinds, word);
    if (found == k_kinds.end()) {
      fault = fmt::format("unknown fault '{}': link, hca, leaf, switch, host, slow-gpu:10%, joined by |", word);
      return {};
    }
    one.kind = static_cast<FaultKind>(found - k_kinds.begin());
    out.push_back(one);
  }
  return out;
}

Result<FaultReport> sweep_faults(const SweepPlan& plan, const DesignResult& design, const FaultPlan& asked,
                                 const TaskOptions& options, const std::function<void(double share)>& progress) {
  Diagnostics faults;
  const auto settings = expanded(plan, design.settings, faults);
  if (has_errors(faults)) return tl::unexpected(faults);
  auto loaded = load_scenario(plan.scenario_file, plan.parameter_files, settings);
  if (!loaded) return tl::unexpected(loaded.error());
  const bool cuts = std::ranges::any_of(asked.classes, [](const FaultClass& one) {
    return one.kind != FaultKind::host && one.kind != FaultKind::slow_gpu;
  });
  if (cuts && !loaded->topology.can_lose_links())
    return tl::unexpected(Diagnostics{
        make_error(fmt::format("routes of topology '{}' are fixed by place and cannot go round a dead cable",
                               loaded->topology.name()),
                   "ask for host or slow-gpu faults of a torus or dragonfly")});
  FaultReport report;
  report.inputs = plan.inputs;
  for (const auto& input : loaded->inputs) report.inputs.emplace_back(input.path, input.sha256);
  report.name = design.name.empty() ? loaded->scenario.name : design.name;
  report.metric = asked.metric;
  report.plan = asked;
  FaultSimulator simulator(std::move(*loaded), asked.metric);
  const auto base = simulator.fault_free(faults);
  if (!base) return tl::unexpected(faults);
  report.fault_free = *base;
  const auto cases = faults_of(simulator.loaded().topology, simulator.job(), asked);
  std::vector<std::size_t> todo(cases.size());
  std::iota(todo.begin(), todo.end(), std::size_t{0});
  std::map<std::size_t, std::string> answers;
  const auto work = [&](std::size_t i) { return simulator.answer(cases[i]); };
  const auto done = [&](std::size_t i, const std::string& answer) {
    answers[i] = answer;
    if (progress) progress(static_cast<double>(answers.size()) / static_cast<double>(todo.size()));
  };
  const auto lost = [](std::size_t, const std::string& why) { return answer_text(0, 0, why); };
  run_tasks(todo, work, done, lost, options);
  report.is_interrupted = answers.size() < todo.size();
  for (const auto& [i, answer] : answers) report.cases.push_back(result_from(i, cases[i], answer));
  summarise(report);
  report.assumptions = {
      "a job whose hosts lose every route starts again, on idle hosts or on those left; the time to notice and to "
      "restart is not counted",
      "routes are found anew around dead cables; adapters without a cable are not used",
      "all GPUs wait for the slowest in every step",
      "spares: hosts next to a fault are replaced; a fault inside the fabric needs its cable or switch repaired"};
  return report;
}

}  // namespace fabricast
