// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/csv_field.hpp"
#include "report/fault_report.hpp"
#include "report/inputs.hpp"
#include "report/json_parts.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr std::size_t k_most_influences = 12;
constexpr std::size_t k_most_settled = 4;

std::string settled_text(const NextBenchmark& one) {
  std::string out;
  for (std::size_t i = 0; i < one.settles.size() && i < k_most_settled; ++i)
    out += (i == 0 ? "" : ", ") + one.settles[i];
  if (one.settles.size() > k_most_settled) out += fmt::format(" and {} more", one.settles.size() - k_most_settled);
  return out;
}

std::string figure_text(const SensitivityReport::Figure& figure, const std::string& currency) {
  const auto value = metric_text(figure.metric, figure.estimate.value, currency);
  const auto band = range_text(metric_text(figure.metric, figure.estimate.low, currency),
                               metric_text(figure.metric, figure.estimate.high, currency));
  auto out = fmt::format("{} = {}{}", figure.metric.text, value, band == value ? "" : " (" + band + ")");
  if (figure.at_least || figure.at_most)
    out += fmt::format(", within its bounds with probability {:.2f}", figure.probability);
  return out;
}

/// What would change the answer, in a sentence and a line for each end that does.
std::vector<std::string> change_lines(const SensitivityReport& report) {
  if (!report.is_best)
    return {fmt::format("design {} is not the best of its plan: ask for the best one", report.design)};
  if (report.num_contenders == 0) return {"no other design to choose: nothing can change the choice"};
  if (report.changes.empty())
    return {fmt::format("nothing: at either end of each interval none of the {} designs nearest to it does better",
                        report.num_contenders)};
  std::vector<std::string> out;
  for (const auto& one : report.changes) {
    const auto what = one.kind == "scatter"
                          ? fmt::format("{}: {} end of the band", one.what, one.is_high ? "high" : "low")
                          : fmt::format("{} = {:.4g} ({} end)", one.what, one.value, one.is_high ? "high" : "low");
    out.push_back(one.design ? fmt::format("{}: design {} ({}) is the best; {}", what, *one.design, one.name, one.why)
                             : fmt::format("{}: none of the {} designs looked at meets every constraint; {}", what,
                                           report.num_contenders + 1, one.why));
  }
  return out;
}

Json changes_json(const SensitivityReport& report) {
  Json out = Json::array();
  for (const auto& one : report.changes)
    out.push_back({{"what", one.what},
                   {"kind", one.kind},
                   {"end", one.is_high ? "high" : "low"},
                   {"value", one.value},
                   {"best_design", one.design ? Json(*one.design) : Json()},
                   {"best_name", one.name},
                   {"why", one.why}});
  return out;
}

Json bound_json(const std::optional<double>& bound) { return bound ? Json(*bound) : Json(); }

}  // namespace

std::string sensitivity_text(const SensitivityReport& report) {
  std::string out =
      fmt::format("# fabricast {}: what moves design {} ({})\n", report.version, report.design, report.name);
  out += "\nwhat would change the answer:\n";
  for (const auto& line : change_lines(report)) out += "  " + line + "\n";
  for (const auto& figure : report.figures) {
    out += "\n" + figure_text(figure, report.currency) + "\n";
    out += fmt::format("{:>9} {:>14} {:>14} {:>7}  {}\n", "variance", "at low end", "at high end", "limit", "what");
    for (std::size_t i = 0; i < figure.influences.size() && i < k_most_influences; ++i) {
      const auto& one = figure.influences[i];
      out += fmt::format("{:>7.1f} % {:>14} {:>14} {:>7}  {}\n", 100 * one.share,
                         metric_text(figure.metric, one.at_low, report.currency),
                         metric_text(figure.metric, one.at_high, report.currency), one.crosses_limit ? "crosses" : "",
                         one.what);
    }
    if (figure.influences.size() > k_most_influences)
      out += fmt::format("... and {} more\n", figure.influences.size() - k_most_influences);
    if (!figure.next.empty()) out += "measure next, in order of worth:\n";
    for (const auto& one : figure.next)
      out += fmt::format("{:>7.1f} %  {} (settles {}){}\n", 100 * one.share, one.benchmark, settled_text(one),
                         one.can_change_answer ? "; can change the answer" : "");
  }
  return out + "# inputs:\n" + inputs_text(report.inputs);
}

std::string sensitivity_json(const SensitivityReport& report) {
  Json out{{"schema", "fabricast/sensitivity/1"},
           {"tool", {{"name", "fabricast"}, {"version", report.version}}},
           {"design", report.design},
           {"name", report.name},
           {"is_best", report.is_best},
           {"contenders", report.num_contenders},
           {"changes_of_answer", changes_json(report)}};
  out["inputs"] = inputs_json(report.inputs);
  out["figures"] = Json::array();
  for (const auto& figure : report.figures) {
    Json one{{"metric", figure.metric.text},
             {"value", figure.estimate.value},
             {"low", figure.estimate.low},
             {"high", figure.estimate.high},
             {"at_least", bound_json(figure.at_least)},
             {"at_most", bound_json(figure.at_most)},
             {"probability", figure.probability}};
    one["influences"] = Json::array();
    for (const auto& influence : figure.influences)
      one["influences"].push_back({{"what", influence.what},
                                   {"kind", influence.kind},
                                   {"value", influence.value},
                                   {"low", influence.low},
                                   {"high", influence.high},
                                   {"figure_at_low", influence.at_low},
                                   {"figure_at_high", influence.at_high},
                                   {"variance_share", influence.share},
                                   {"crosses_limit", influence.crosses_limit},
                                   {"source", influence.source}});
    one["measure_next"] = Json::array();
    for (const auto& next : figure.next)
      one["measure_next"].push_back({{"benchmark", next.benchmark},
                                     {"variance_share", next.share},
                                     {"can_change_answer", next.can_change_answer},
                                     {"settles", next.settles}});
    out["figures"].push_back(std::move(one));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sensitivity_csv(const SensitivityReport& report) {
  std::string out =
      "metric,what,kind,value,low,high,figure_at_low,figure_at_high,variance_share,crosses_limit,source\n";
  for (const auto& figure : report.figures) {
    for (const auto& one : figure.influences)
      out += fmt::format("{},{},{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{},{}\n",
                         csv_field(figure.metric.text), csv_field(one.what), one.kind, one.value, one.low, one.high,
                         one.at_low, one.at_high, one.share, one.crosses_limit ? 1 : 0, csv_field(one.source));
  }
  return out;
}

std::string sensitivity_html(const SensitivityReport& report) {
  std::string out = fmt::format("<h1>What moves the answer</h1>\n<p class=\"sub\">Design {}: {}</p>\n", report.design,
                                escaped(report.name));
  out += "<h2>What would change the answer</h2>\n<ul>\n";
  for (const auto& line : change_lines(report)) out += fmt::format("<li>{}</li>\n", escaped(line));
  out += "</ul>\n";
  for (const auto& figure : report.figures) {
    out += fmt::format("<h2>{}</h2>\n", escaped(figure_text(figure, report.currency)));
    double most = 0;
    for (const auto& one : figure.influences) most = std::max(most, one.share);
    std::string bars;
    const auto shown = std::min(k_most_influences, figure.influences.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const auto& one = figure.influences[i];
      bars += fmt::format(
          "<rect x=\"0\" y=\"{}\" width=\"{:.1f}\" height=\"16\" style=\"fill:{};opacity:.4\"/><text x=\"6\" y=\"{}\" "
          "class=\"legend\">{:.1f} % {}: {}</text>\n",
          24 * i, most > 0 ? 800 * one.share / most : 0, one.crosses_limit ? "var(--c1)" : "var(--rest)", 24 * i + 13,
          100 * one.share, escaped(one.what),
          escaped(range_text(metric_text(figure.metric, one.at_low, report.currency),
                             metric_text(figure.metric, one.at_high, report.currency))));
    }
    if (shown > 0)
      out += boxed(
          "Share of the figure's variance; orange: one end crosses a limit.",
          fmt::format("<svg viewBox=\"0 0 820 {}\" role=\"img\" aria-label=\"influences\">{}</svg>", 24 * shown, bars));
    out += "<p>Measure next, in order of worth:</p>\n<ol>\n";
    for (const auto& one : figure.next)
      out += fmt::format("<li>{} &mdash; {:.1f} % of the variance; settles {}{}</li>\n", escaped(one.benchmark),
                         100 * one.share, escaped(settled_text(one)),
                         one.can_change_answer ? "; <b>can change the answer</b>" : "");
    out += "</ol>\n";
  }
  out += "<h2>Provenance</h2>\n" + inputs_html(report.inputs);
  return page("what moves the answer", out + embedded_json(sensitivity_json(report)));
}

}  // namespace fabricast::report
