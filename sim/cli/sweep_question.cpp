// SPDX-License-Identifier: Apache-2.0
// fabricast sweep --sensitivity and --fail: one question about one design, of a plan or of a scenario.
#include <fmt/format.h>

#include <algorithm>

#include "cli/sweep_parts.hpp"
#include "fabricast/fault_sweep.hpp"
#include "fabricast/load_plan.hpp"
#include "fabricast/sensitivity.hpp"
#include "report/fault_report.hpp"

namespace fabricast::cli {

namespace {

/// What a scenario is judged by when nobody says.
std::string usual_metric(Benchmark benchmark) {
  const auto family = family_of(benchmark);
  if (family == BenchmarkFamily::training) return "throughput";
  if (family == BenchmarkFamily::nccl_tests) return "busbw";
  return is_bandwidth_test(benchmark) ? "bandwidth" : "time";
}

Metric asked_metric(const std::string& option, const std::string& text) {
  std::string fault;
  auto metric = metric_from(text, fault);
  if (!metric) throw CLI::ValidationError(option, fault);
  return *metric;
}

/// A scenario as a plan of one design.
Result<SweepPlan> plan_of_scenario(const SweepOptions& options, const std::string& path) {
  auto loaded = load_scenario(path, options.parameter_files, parse_settings(options.settings));
  if (!loaded) return tl::unexpected(loaded.error());
  SweepPlan plan;
  plan.name = loaded->scenario.name;
  plan.file = path;
  plan.scenario_file = path;
  const auto text =
      options.metric.empty() ? usual_metric(loaded->scenario.workloads.front().benchmark) : options.metric;
  const auto metric = asked_metric("--metric", text);
  plan.objectives.push_back({metric, !metric.is_less_better});
  return plan;
}

FaultPlan fault_plan(const SweepOptions& options, const SweepPlan& plan) {
  FaultPlan out;
  std::string fault;
  out.classes = fault_classes_from(options.fail, fault);
  if (!fault.empty()) throw CLI::ValidationError("--fail", fault);
  out.simultaneous = options.simultaneous;
  out.samples = options.samples;
  out.seed = options.seed;
  out.target = parse_share("--target", options.target);
  for (const auto& one : plan.objectives) {
    if (!one.metric.is_of_hardware) out.metric = one.metric;
  }
  if (!options.metric.empty()) out.metric = asked_metric("--metric", options.metric);
  if (out.metric.name.empty() || out.metric.is_of_hardware)
    throw CLI::ValidationError("--metric", "faults need a figure of the simulation: busbw at 64 MiB, step_time ...");
  return out;
}

/// The design to look at: the one that is named, else the best; the only one of a scenario.
const DesignResult* asked_design(const SweepOptions& options, const SweepReport& judged) {
  const DesignResult* design = judged.top.empty() ? nullptr : &judged.designs[judged.top.front().index];
  for (const auto& one : judged.designs) {
    const bool is_asked = judged.designs.size() == 1 || one.index == options.design;
    if (is_asked && one.status == DesignStatus::feasible) design = &one;
  }
  return design;
}

int no_design(const SweepReport& judged) {
  std::string why;
  for (const auto& one : judged.designs) {
    if (why.empty() && !one.reasons.empty()) why = ": " + one.reasons.front();
  }
  say(fmt::format("fabricast: no feasible design to look at{}\n", why));
  return exit_input;
}

std::string text_of(const SensitivityReport& found, const std::string& format) {
  if (format == "json") return report::sensitivity_json(found);
  if (format == "csv") return report::sensitivity_csv(found);
  return format == "html" ? report::sensitivity_html(found) : report::sensitivity_text(found);
}

std::string text_of(const FaultReport& found, const std::string& format) {
  if (format == "json") return report::faults_json(found);
  if (format == "csv") return report::faults_csv(found);
  return format == "html" ? report::faults_html(found) : report::faults_text(found);
}

}  // namespace

Result<SweepPlan> load_question(const SweepOptions& options) {
  const auto& path = options.files.front();
  const auto kind = file_kind(path);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind != "scenario") return load_sweep_plan(path);
  if (options.is_sensitivity || !options.fail.empty()) return plan_of_scenario(options, path);
  auto fault = make_error("this is a scenario, a plan is swept",
                          "write a plan that names it (docs/FORMATS.md), or ask for "
                          "--fail or --sensitivity of the scenario");
  fault.location.file = path;
  return tl::unexpected(Diagnostics{std::move(fault)});
}

int answer_question(const SweepOptions& options, const std::string& format, const SweepReport& judged) {
  const auto* design = asked_design(options, judged);
  if (design == nullptr) return no_design(judged);
  Progress progress(options.is_sensitivity ? "sensitivity" : "faults", options.is_quiet);
  const auto show = [&](double share) { progress.show(share); };
  const TaskOptions tasks{options.jobs, &stop_flag()};
  const auto print = [&](auto found) {
    if (!found) return refuse_input(found.error());
    found->version = k_version;
    int code = exit_ok;
    write_output(options.output, text_of(*found, format), code);
    return code == exit_ok && was_interrupted() ? static_cast<int>(exit_interrupted) : code;
  };
  if (options.is_sensitivity) return print(sensitivity(judged, *design, tasks, show));
  return print(sweep_faults(judged.plan, *design, fault_plan(options, judged.plan), tasks, show));
}

}  // namespace fabricast::cli
