// SPDX-License-Identifier: Apache-2.0
// The page a planner shows: the question, the answer and how sure it is, the Pareto front, the best designs with
// reasons and bills, what each choice does, what is not feasible and why, assumptions and inputs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/inputs.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/sweep.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr std::size_t k_most_rows = 400;  ///< of the table of all designs; the rest is in the page's JSON

std::string cell(const std::string& text, bool is_name = false) {
  return fmt::format("<td{}>{}</td>", is_name ? " class=\"name\"" : "", escaped(text));
}

std::string head(const std::vector<std::string>& names) {
  std::string out = "<table><thead><tr>";
  for (const auto& name : names) out += fmt::format("<th class=\"name\">{}</th>", escaped(name));
  return out + "</tr></thead><tbody>\n";
}

class SweepPage {
 public:
  explicit SweepPage(const SweepReport& sweep) : sweep_(sweep), currency_(currency_of(sweep)) {}

  std::string make() {
    const auto& plan = sweep_.plan;
    std::string out = fmt::format("<h1>{}</h1>\n<p class=\"sub\">{}</p>\n",
                                  escaped(plan.question.empty() ? plan.name : plan.question),
                                  escaped(plan.description.empty() ? plan.name : plan.description));
    if (sweep_.is_interrupted) out += "<p><b>Interrupted: designs are missing.</b></p>\n";
    if (!sweep_.shard.empty()) out += fmt::format("<p><b>Shard {} only.</b></p>\n", escaped(sweep_.shard));
    out += answer() + figure() + best() + front() + choices() + refused() + all() + assumptions() + provenance();
    return page(plan.name, out + embedded_json(sweep_json(sweep_)));
  }

 private:
  [[nodiscard]] std::string value_text(const DesignResult& design, const Metric& metric) const {
    const auto* found = design.find(metric.text);
    return found == nullptr ? "-" : metric_text(metric, found->value, currency_);
  }
  [[nodiscard]] std::string band(const DesignResult& design, const Metric& metric) const {
    const auto* found = design.find(metric.text);
    if (found == nullptr || found->low == found->high) return "";
    return range_text(metric_text(metric, found->low, currency_), metric_text(metric, found->high, currency_));
  }

  [[nodiscard]] std::string answer() const {
    std::string out = "<h2>Answer</h2>\n";
    if (sweep_.top.empty()) {
      out += "<p><b>No design meets every constraint.</b> ";
    } else {
      const auto place = sweep_.top.front().index;
      const auto& design = sweep_.designs[place];
      out += fmt::format("<p><b>Design {}: {}</b> &mdash; ", design.index, escaped(design.name));
      for (std::size_t i = 0; i < sweep_.plan.objectives.size(); ++i)
        out += fmt::format("{}{} {}", i == 0 ? "" : ", ", escaped(sweep_.plan.objectives[i].metric.text),
                           escaped(value_text(design, sweep_.plan.objectives[i].metric)));
      if (!sweep_.plan.constraints.empty())
        out += fmt::format("; meets every constraint with probability {:.2f}", sweep_.standings[place].probability);
      out += ". ";
    }
    out += escaped(outcome_text(sweep_)) + ".</p>\n<ul>\n";
    for (const auto& bound : sweep_.plan.constraints)
      out += fmt::format("<li>constraint: {}</li>\n", escaped(constraint_text(bound, currency_)));
    for (const auto& one : sweep_.plan.objectives)
      out += fmt::format("<li>objective: {} {}</li>\n", one.is_maximised ? "maximise" : "minimise",
                         escaped(one.metric.text));
    return out + "</ul>\n";
  }

  /// Whether an interval of it is known: power and counts of a design have none, costs where prices give one.
  [[nodiscard]] bool has_band(const Metric& metric) const {
    return std::ranges::any_of(sweep_.designs, [&](const DesignResult& design) {
      const auto* found = design.find(metric.text);
      return found != nullptr && found->low < found->high;
    });
  }

  /// The two figures of the plot: the first two objectives, or the objective over the number of GPUs; one with a band
  /// is drawn upward.
  [[nodiscard]] std::pair<Metric, Metric> axes() const {
    const auto& objectives = sweep_.plan.objectives;
    std::string fault;
    std::pair both{*metric_from("gpus", fault), objectives[0].metric};
    if (objectives.size() > 1) both = {objectives[0].metric, objectives[1].metric};
    if (has_band(both.first) && !has_band(both.second)) std::swap(both.first, both.second);
    return both;
  }

  [[nodiscard]] PlotAxis axis_of(const Metric& metric) const {
    const auto* unit = metric.dimension == Dimension::time        ? "s"
                       : metric.dimension == Dimension::bandwidth ? "B/s"
                       : metric.name == "power"                   ? "W"
                                                                  : "number";
    return {metric.text, metric.is_money ? currency_ : unit, 0, false};
  }

  [[nodiscard]] std::string figure() const {
    const auto [x, y] = axes();
    Plot plot;
    plot.x = axis_of(x);
    plot.y = axis_of(y);
    const auto* front_name = has_band(y) ? "Pareto front, with 80 % band" : "Pareto front";
    plot.series = {{"misses a constraint", "--soft", false, true, 5, {}, {}, {}, {}, {}},
                   {"meets every constraint", "--c0", false, true, 6, {}, {}, {}, {}, {}},
                   {front_name, "--c1", true, false, 8, {}, {}, {}, {}, {}}};
    for (std::size_t i = 0; i < sweep_.designs.size(); ++i) {
      if (!sweep_.standings[i].is_on_front) add_point(plot.series[sweep_.standings[i].meets_all ? 1 : 0], i, x, y);
    }
    auto front = sweep_.front;
    std::ranges::stable_sort(front, {}, [&, &x = x](std::size_t i) {
      const auto* found = sweep_.designs[i].find(x.text);
      return found == nullptr ? 0.0 : found->value;
    });
    for (const auto i : front) add_point(plot.series[2], i, x, y);
    std::erase_if(plot.series, [](const PlotSeries& one) { return one.x.empty(); });
    if (plot.series.empty()) return "";
    return plotted(fmt::format("{} over {}, one point per design.", y.text, x.text), picture_of(plot), plot);
  }

  void add_point(PlotSeries& series, std::size_t i, const Metric& x, const Metric& y) const {
    const auto& design = sweep_.designs[i];
    const auto* across = design.find(x.text);
    const auto* upward = design.find(y.text);
    if (design.status != DesignStatus::feasible || across == nullptr || upward == nullptr) return;
    series.x.push_back(across->value);
    series.y.push_back(upward->value);
    if (series.is_line) {
      series.low.push_back(upward->low);
      series.high.push_back(upward->high);
    }
    series.notes.push_back(fmt::format("design {}: {}: {} {}, {} {}", design.index, design.name, x.text,
                                       value_text(design, x), y.text, value_text(design, y)));
  }

  [[nodiscard]] std::string best() const {
    if (sweep_.top.empty()) return "";
    std::string out = "<h2>Best designs</h2>\n";
    for (const auto& one : sweep_.top) {
      const auto& design = sweep_.designs[one.index];
      out += fmt::format("<h3>{}. Design {}: {}</h3>\n<ul>\n", sweep_.standings[one.index].rank, design.index,
                         escaped(design.name));
      for (const auto& reason : one.reasons) out += fmt::format("<li>{}</li>\n", escaped(reason));
      out += "</ul>\n" + figures_of(design) + split_of(design) + bill_of(design);
    }
    return out;
  }

  [[nodiscard]] std::string figures_of(const DesignResult& design) const {
    std::string out = "<div class=\"wide\">" + head({"figure", "value", "80 % band"});
    for (const auto& metric : columns_of(sweep_))
      out += fmt::format("<tr data-design=\"{}\" data-metric=\"{}\">{}{}{}</tr>\n", design.index, escaped(metric.text),
                         cell(metric.text, true), cell(value_text(design, metric)), cell(band(design, metric)));
    return out + "</tbody></table></div>\n";
  }

  /// One bar: where the time of a step or message goes.
  [[nodiscard]] static std::string split_of(const DesignResult& design) {
    if (design.split.empty()) return "";
    std::string bar;
    std::string legend;
    double at = 0;
    for (std::size_t i = 0; i < design.split.size(); ++i) {
      const auto& part = design.split[i];
      bar += fmt::format(
          "<rect x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"24\" style=\"fill:{}\"><title>{}: {:.1f} %"
          "</title></rect>",
          at * 820, std::max(0.0, std::min(part.share, 1 - at)) * 820, colour(i), escaped(part.what), 100 * part.share);
      at += part.share;
      legend += fmt::format("<span style=\"color:{}\">&#9632;</span> {} {:.1f} %&ensp;", colour(i), escaped(part.what),
                            100 * part.share);
    }
    return fmt::format(
        "<figure><figcaption>Where the time goes.</figcaption><svg viewBox=\"0 0 820 24\" role=\"img\" "
        "aria-label=\"time split\" style=\"min-width:0\">{}</svg><p class=\"note\">{}</p></figure>\n",
        bar, legend);
  }

  [[nodiscard]] std::string bill_of(const DesignResult& design) const {
    if (design.bill.empty()) return "";
    const auto money = [&](double value) { return value == 0 ? std::string() : fmt::format("{:.0f}", value); };
    std::string out = fmt::format("<details><summary>Bill in {}</summary><div class=\"wide\">", escaped(currency_)) +
                      head({"what", "count", "once", "a year", "source"});
    for (const auto& line : design.bill)
      out += fmt::format(
          "<tr>{}{}{}{}{}</tr>\n", cell(line.what, true), cell(fmt::format("{:.6g}", line.count)),
          cell(money(line.once)), cell(money(line.per_year)),
          cell(line.is_assumed && line.source.find("assumed") == std::string::npos ? "assumed: " + line.source
                                                                                   : line.source,
               true));
    return out + "</tbody></table></div></details>\n";
  }

  [[nodiscard]] std::string row_of(std::size_t i, const std::vector<Metric>& columns) const {
    const auto& design = sweep_.designs[i];
    const auto& standing = sweep_.standings[i];
    const auto why = !design.reasons.empty()   ? design.reasons.front()
                     : standing.misses.empty() ? ""
                                               : standing.misses.front();
    std::string out = fmt::format("<tr>{}{}", cell(std::to_string(design.index)),
                                  cell(standing.rank > 0 ? std::to_string(standing.rank) : ""));
    for (const auto& metric : columns) out += cell(value_text(design, metric));
    return out + cell(design.status == DesignStatus::feasible ? fmt::format("{:.2f}", standing.probability) : "") +
           cell(design.name, true) + cell(why.empty() ? "" : std::string(to_string(design.status)) + ": " + why, true) +
           "</tr>\n";
  }

  [[nodiscard]] std::string table_of(const std::vector<std::size_t>& places) const {
    const auto columns = columns_of(sweep_);
    std::vector<std::string> names{"#", "rank"};
    for (const auto& metric : columns) names.push_back(metric.text);
    names.insert(names.end(), {"probability", "design", "why not"});
    std::string out = "<div class=\"wide\">" + head(names);
    for (const auto i : places) out += row_of(i, columns);
    return out + "</tbody></table></div>\n";
  }

  [[nodiscard]] std::string front() const {
    if (sweep_.front.empty()) return "";
    return "<h2>Pareto front</h2>\n<p>No other design is as good in every objective and better in one.</p>\n" +
           table_of(sweep_.front);
  }

  /// Each value of each axis: how many designs with it do, and the best of them.
  [[nodiscard]] std::string choices() const {
    std::string out;
    const auto& objective = sweep_.plan.objectives.front();
    for (const auto& axis : sweep_.plan.axes) {
      if (axis.is_range()) continue;
      out += "<div class=\"wide\">" +
             head({axis.name, "designs", "feasible", "meet all", "best " + objective.metric.text});
      for (const auto& choice : axis.choices) out += choice_row(axis.name, choice.label, objective.metric);
      out += "</tbody></table></div>\n";
    }
    return out.empty() ? out : "<h2>What each choice does</h2>\n" + out;
  }

  [[nodiscard]] std::string choice_row(const std::string& axis, const std::string& label, const Metric& metric) const {
    std::size_t count = 0;
    std::size_t feasible = 0;
    std::size_t meeting = 0;
    const DesignResult* best = nullptr;
    int best_rank = 0;
    for (std::size_t i = 0; i < sweep_.designs.size(); ++i) {
      const auto& design = sweep_.designs[i];
      const bool has_it = std::ranges::any_of(
          design.values, [&](const auto& value) { return value.first == axis && value.second == label; });
      if (!has_it) continue;
      ++count;
      feasible += design.status == DesignStatus::feasible ? 1 : 0;
      const auto& standing = sweep_.standings[i];
      if (!standing.meets_all) continue;
      ++meeting;
      if (best != nullptr && standing.rank > best_rank) continue;
      best = &design;
      best_rank = standing.rank;
    }
    const auto shown = best == nullptr ? "-" : fmt::format("{} (design {})", value_text(*best, metric), best->index);
    return fmt::format("<tr>{}{}{}{}{}</tr>\n", cell(label, true), cell(std::to_string(count)),
                       cell(std::to_string(feasible)), cell(std::to_string(meeting)), cell(shown));
  }

  [[nodiscard]] std::string refused() const {
    const auto kinds = refusals_of(sweep_);
    if (kinds.empty()) return "";
    std::string out =
        "<h2>Not feasible</h2>\n<p>Reasons that differ only in numbers are counted together.</p>\n<div "
        "class=\"wide\">" +
        head({"designs", "", "first reason of the first of them"});
    for (const auto& one : kinds)
      out += fmt::format("<tr>{}{}<td class=\"name\" style=\"white-space:normal\">{} (design {})</td></tr>\n",
                         cell(std::to_string(one.count)), cell(std::string(to_string(one.status)), true),
                         escaped(one.example), one.first);
    return out + "</tbody></table></div>\n";
  }

  [[nodiscard]] std::string all() const {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sweep_.designs.size() && i < k_most_rows; ++i) places.push_back(i);
    const auto rest = sweep_.designs.size() - places.size();
    return fmt::format(
        "<h2>All designs</h2>\n<details><summary>{} designs{}</summary>\n{}</details>\n", sweep_.designs.size(),
        rest == 0 ? "" : fmt::format(", {} of them only in the JSON of this page", rest), table_of(places));
  }

  [[nodiscard]] std::string assumptions() const {
    std::set<std::string> lines;
    for (const auto& one : sweep_.top) {
      const auto& design = sweep_.designs[one.index];
      lines.insert(design.assumptions.begin(), design.assumptions.end());
      for (const auto& line : design.bill) {
        if (line.is_assumed) lines.insert("assumed price: " + line.what);
      }
    }
    if (lines.empty()) return "";
    std::string out = "<h2>Assumptions of the best designs</h2>\n<ul>\n";
    for (const auto& line : lines) out += fmt::format("<li>{}</li>\n", escaped(line));
    return out + "</ul>\n";
  }

  [[nodiscard]] std::string provenance() const {
    return fmt::format("<h2>Provenance</h2>\n<p>fabricast {}, plan {}</p>\n", escaped(sweep_.version),
                       escaped(sweep_.plan.name)) +
           inputs_html(inputs_of(sweep_));
  }

  const SweepReport& sweep_;
  std::string currency_;
};

}  // namespace

std::string sweep_html(const SweepReport& sweep) { return SweepPage(sweep).make(); }

}  // namespace fabricast::report
