// SPDX-License-Identifier: Apache-2.0
// One design: settings to a loaded scenario, what `check` says of it, its bill, its simulation, its figures.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "fabricast/check.hpp"
#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/sweep.hpp"
#include "sweep/cost.hpp"
#include "sweep/figures.hpp"
#include "sweep/short_names.hpp"

namespace fabricast {

namespace {

using namespace sweep;

/// A message as one sentence: what, and the fix.
std::string sentence(const Diagnostic& one) {
  auto text = one.message;
  for (const auto& note : one.notes) text += "; " + note.text;
  return text;
}

std::vector<std::string> sentences(const Diagnostics& all, Severity severity) {
  std::vector<std::string> out;
  for (const auto& one : all) {
    if (one.severity != severity) continue;
    auto text = sentence(one);
    if (std::ranges::find(out, text) == out.end()) out.push_back(std::move(text));
  }
  return out;
}

/// Adapters per host that a design asks for and that a topology has otherwise, e.g. because its file removes some.
std::string miscounted_adapters(const std::vector<SweepSetting>& settings, const Topology& topology) {
  for (const auto& one : settings) {
    if (one.path != "hca.count") continue;
    for (int host = 0; host < topology.num_hosts(); ++host) {
      const int count = topology.count(DeviceKind::hca, host);
      if (one.value == std::to_string(count)) continue;
      return fmt::format(
          "'hca.count' asks for {}, {} has {}: its group's `remove` list stands in the topology file; vary "
          "that list instead",
          one.value, topology.host_name(host), count);
    }
  }
  return "";
}

class Evaluator {
 public:
  Evaluator(const SweepPlan& plan, const DesignResult& design) : plan_(plan), out_(design) {}

  DesignResult evaluate() {
    Diagnostics faults;
    const auto settings = expanded(plan_, out_.settings, faults);
    if (has_errors(faults)) return refuse(DesignStatus::invalid, sentences(faults, Severity::error));
    auto loaded = load_scenario(plan_.scenario_file, plan_.parameter_files, settings);
    if (!loaded) return refuse(DesignStatus::invalid, sentences(loaded.error(), Severity::error));
    for (const auto& input : loaded->inputs) out_.inputs.emplace_back(input.path, input.sha256);
    if (auto fault = miscounted_adapters(out_.settings, loaded->topology); !fault.empty())
      return refuse(DesignStatus::invalid, {fault});
    const auto parts = parts_of(loaded->topology);
    const auto bill = bill_of(parts, plan_.cost ? &*plan_.cost : nullptr, loaded->parameters);
    if (!bill.faults.empty()) return refuse(DesignStatus::invalid, bill.faults);
    out_.bill = bill.lines;
    const auto metrics = metrics_of(plan_);
    for (const auto& metric : metrics) {
      if (const auto value = figure_of(metric, parts, bill)) out_.metrics.emplace_back(metric.text, *value);
    }
    const auto doubts = check_all(*loaded);
    out_.doubts = sentences(doubts, Severity::warning);
    if (has_errors(doubts)) return refuse(DesignStatus::infeasible, sentences(doubts, Severity::error));
    simulate_it(*loaded, metrics);
    out_.assumptions.insert(out_.assumptions.end(), bill.notes.begin(), bill.notes.end());
    return out_;
  }

 private:
  DesignResult refuse(DesignStatus status, std::vector<std::string> reasons) {
    out_.status = status;
    out_.reasons = std::move(reasons);
    return out_;
  }

  void simulate_it(LoadedScenario& loaded, const std::vector<Metric>& metrics) {
    const bool is_asked = std::ranges::any_of(metrics, [](const Metric& one) { return !one.is_of_hardware; });
    if (!is_asked) {  // only the bill is asked for: the work must be possible all the same
      const auto faults = planning_faults(loaded.topology, loaded.scenario, loaded.parameters);
      if (has_errors(faults)) refuse(DesignStatus::infeasible, sentences(faults, Severity::error));
      return;
    }
    keep_rows(loaded.scenario, metrics);
    const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    if (!prediction) {
      refuse(DesignStatus::infeasible, sentences(prediction.error(), Severity::error));
      return;
    }
    std::vector<std::pair<std::string, Estimate>> found;
    for (const auto& metric : metrics) {
      if (metric.is_of_hardware) continue;
      std::string fault;
      const auto value = figure_of(metric, loaded.scenario, *prediction, fault);
      if (!value) {
        refuse(DesignStatus::invalid, {fault});
        return;
      }
      note_row(metric, *prediction);
      found.emplace_back(metric.text, *value);
    }
    in_order(metrics, found);
    for (const auto& workload : prediction->workloads) {
      for (const auto& line : workload.assumptions) {
        if (std::ranges::find(out_.assumptions, line) == out_.assumptions.end()) out_.assumptions.push_back(line);
      }
    }
  }

  /// The first simulated figure says where the time goes.
  void note_row(const Metric& metric, const Prediction& prediction) {
    if (!out_.split.empty()) return;
    std::string fault;
    const auto* row = row_of(metric, prediction, fault);
    if (row == nullptr) return;
    out_.bottleneck = row->bottleneck;
    out_.split = split_of(*row);
  }

  /// Figures in the order in which the plan names them.
  void in_order(const std::vector<Metric>& metrics, std::vector<std::pair<std::string, Estimate>>& simulated) {
    std::vector<std::pair<std::string, Estimate>> all;
    for (const auto& metric : metrics) {
      for (const auto* list : {&out_.metrics, &simulated}) {
        const auto it = std::ranges::find(*list, metric.text, &std::pair<std::string, Estimate>::first);
        if (it != list->end()) all.push_back(*it);
      }
    }
    out_.metrics = std::move(all);
  }

  const SweepPlan& plan_;
  DesignResult out_;
};

}  // namespace

std::vector<Metric> metrics_of(const SweepPlan& plan) {
  std::vector<Metric> all;
  const auto add = [&](const Metric& metric) {
    if (std::ranges::find(all, metric.text, &Metric::text) == all.end()) all.push_back(metric);
  };
  for (const auto& one : plan.objectives) add(one.metric);
  for (const auto& one : plan.constraints) add(one.metric);
  for (const char* name : {"hosts", "gpus", "power", "cost"}) {
    std::string fault;
    const auto metric = metric_from(name, fault);
    if (metric && (plan.cost || !metric->is_money)) add(*metric);
  }
  return all;
}

DesignResult evaluate_design(const SweepPlan& plan, const DesignResult& design) try {
  return Evaluator(plan, design).evaluate();
} catch (const std::exception& error) {
  auto out = design;
  out.status = DesignStatus::failed;
  out.reasons = {fmt::format("internal error: {}", error.what())};
  return out;
}

}  // namespace fabricast
