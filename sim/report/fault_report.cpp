// SPDX-License-Identifier: Apache-2.0
#include "report/fault_report.hpp"
#include "report/json_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/csv_field.hpp"
#include "report/inputs.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"

namespace fabricast::report {

namespace {

constexpr std::size_t k_most_cases = 15;  ///< worst ones in text

/// Worst first.
std::vector<const FaultResult*> sorted(const FaultReport& report) {
  std::vector<const FaultResult*> out;
  for (const auto& one : report.cases) out.push_back(&one);
  std::ranges::stable_sort(out, {}, [](const FaultResult* one) { return one->goodput; });
  return out;
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::size_t hopeless(const FaultReport& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.cases, [&](const FaultResult& one) {
    return one.goodput < report.plan.target && one.drained_hosts == 0;
  }));
}

std::string summary(const FaultReport& report) {
  std::string out = fmt::format("goodput: worst {}, 10th percentile {}, median {}, mean {}; {} of the faults keep {}\n",
                                percent(report.worst), percent(report.tenth), percent(report.median),
                                percent(report.mean), percent(report.share_at_target), percent(report.plan.target));
  if (!report.cases.empty()) out += fmt::format("worst: {}\n", report.cases[report.worst_case].name);
  out += fmt::format("spare hosts for {} under every fault: {}", percent(report.plan.target), report.spares);
  if (const auto count = hopeless(report); count > 0)
    out += fmt::format("; {} faults inside the fabric stay below it, no spare host helps", count);
  out += "\n";
  const auto gaining = [](const FaultResult& one) { return one.goodput > 1 && one.note.starts_with("more than"); };
  const auto example = std::ranges::find_if(report.cases, gaining);
  if (example != report.cases.end())
    out += fmt::format("above 100 %: {} of {} cases, e.g. {}: {}\n", std::ranges::count_if(report.cases, gaining),
                       report.cases.size(), example->name, example->note);
  return out;
}

}  // namespace

std::string faults_text(const FaultReport& report) {
  std::string out = fmt::format(
      "# fabricast {}: {} {} of {}, {} without a fault\n", report.version, report.cases.size(),
      report.plan.simultaneous > 1 ? fmt::format("draws of {} simultaneous faults", report.plan.simultaneous)
                                   : std::string("single faults"),
      report.name, metric_text(report.metric, report.fault_free, ""));
  if (report.is_interrupted) out += "# interrupted: faults are missing\n";
  out += summary(report) + fmt::format("\n{:>10} {:>6} {:>6} {:>7}  fault\n", "goodput", "equal", "lost", "touched");
  const auto all = sorted(report);
  for (std::size_t i = 0; i < all.size() && i < k_most_cases; ++i)
    out += fmt::format("{:>10} {:>6} {:>6} {:>7}  {}{}\n", percent(all[i]->goodput), all[i]->count, all[i]->lost_hosts,
                       all[i]->drained_hosts, all[i]->name, all[i]->note.empty() ? "" : " (" + all[i]->note + ")");
  if (all.size() > k_most_cases) out += fmt::format("... and {} more\n", all.size() - k_most_cases);
  out += "\n# assumptions:\n";
  for (const auto& line : report.assumptions) out += "#   " + line + "\n";
  return out + "# inputs:\n" + inputs_text(report.inputs);
}

std::string faults_json(const FaultReport& report) {
  Json out{{"schema", "fabricast/faults/1"},
           {"tool", {{"name", "fabricast"}, {"version", report.version}}},
           {"design", report.name},
           {"metric", report.metric.text},
           {"fault_free", report.fault_free},
           {"simultaneous", report.plan.simultaneous},
           {"seed", report.plan.seed},
           {"target_share", report.plan.target},
           {"worst_share", report.worst},
           {"tenth_percentile_share", report.tenth},
           {"median_share", report.median},
           {"mean_share", report.mean},
           {"at_target_share", report.share_at_target},
           {"spare_hosts", report.spares},
           {"is_interrupted", report.is_interrupted},
           {"assumptions", report.assumptions}};
  out["inputs"] = inputs_json(report.inputs);
  out["faults"] = Json::array();
  for (const auto& one : report.cases)
    out["faults"].push_back({{"id", one.index},
                             {"name", one.name},
                             {"count", one.count},
                             {"goodput_share", one.goodput},
                             {"lost_hosts", one.lost_hosts},
                             {"touched_hosts", one.drained_hosts},
                             {"note", one.note}});
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string faults_csv(const FaultReport& report) {
  std::string out = "id,fault,count,goodput_share,lost_hosts,touched_hosts,note\n";
  for (const auto& one : report.cases)
    out += fmt::format("{},{},{},{:.17g},{},{},{}\n", one.index, csv_field(one.name), one.count, one.goodput,
                       one.lost_hosts, one.drained_hosts, csv_field(one.note));
  return out;
}

std::string faults_html(const FaultReport& report) {
  Plot plot;
  plot.x = {"share of all faults (%)", "number", 0, true};
  plot.y = {"goodput (%)", "number", 0, true};
  PlotSeries curve;
  curve.label = "goodput, worst fault first";
  double all = 0;
  for (const auto& one : report.cases) all += one.count;
  double passed = 0;
  for (const auto* one : sorted(report)) {
    passed += one->count;
    curve.x.push_back(100 * passed / all);
    curve.y.push_back(100 * one->goodput);
    curve.notes.push_back(fmt::format("{}: {}", one->name, percent(one->goodput)));
  }
  plot.series = {
      curve,
      {"target", "--c1", true, true, 3, {0, 100}, {100 * report.plan.target, 100 * report.plan.target}, {}, {}, {}}};
  std::string out = fmt::format("<h1>Faults of {}</h1>\n<p class=\"sub\">{} = {} without a fault.</p>\n<pre>{}</pre>\n",
                                escaped(report.name), escaped(report.metric.text),
                                escaped(metric_text(report.metric, report.fault_free, "")), escaped(summary(report)));
  if (all > 0) out += plotted("Goodput as a share of the fault-free figure.", picture_of(plot), plot);
  out += "<pre>" + escaped(faults_text(report)) + "</pre>\n<h2>Provenance</h2>\n" + inputs_html(report.inputs) +
         embedded_json(faults_json(report));
  return page("faults of " + report.name, out);
}

}  // namespace fabricast::report
