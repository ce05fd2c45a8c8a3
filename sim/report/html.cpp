// SPDX-License-Identifier: Apache-2.0
// One self-contained page: curves of time and bus bandwidth with the band, terms stacked by size, and the table. The
// pictures are SVG written here, with live plots over them; nothing is fetched.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/chart.hpp"
#include "report/fabric_tables.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/report.hpp"
#include "report/sweep.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

using Rows = std::vector<const Row*>;

/// Rows with a time: those of packets that did not get through have none.
Rows finished(const WorkloadPrediction& workload) {
  Rows rows;
  for (const auto& row : workload.rows) {
    if (is_finished(row)) rows.push_back(&row);
  }
  return rows;
}

std::string time_label(double us) { return to_string(from_seconds(us * 1e-6)); }

std::string time_picture(const Rows& rows) {
  Chart chart("predicted time over message size", "time", time_label);
  std::vector<Chart::Point> curve, low, high;
  for (const auto* row : rows) {
    chart.include(row->size, row->low_time.us());
    chart.include(row->size, row->high_time.us());
    curve.push_back({row->size, row->time.us(),
                     fmt::format("{}: {} ({})", to_string(row->size), to_string(row->time),
                                 range_text(to_string(row->low_time), to_string(row->high_time)))});
    low.push_back({row->size, row->low_time.us(), ""});
    high.push_back({row->size, row->high_time.us(), ""});
  }
  chart.add_band(low, high);
  chart.add_curve(curve, colour(0));
  return plotted("Predicted time with its 80 % band.", chart.svg(), chart.plot("us"));
}

std::string rate_picture(const Rows& rows, bool is_bus) {
  const std::string name = is_bus ? "bus bandwidth" : "bandwidth";
  // Ticks of other powers of ten would be wider than the margin.
  Chart chart("predicted " + name + " over message size", name, [](double value) {
    const bool is_short = value == 0 || (value >= 1e-3 && value < 1e6);
    return is_short ? fmt::format("{:.6g} GB/s", value) : to_string(Bandwidth{value * 1e9});
  });
  chart.start_at_zero();
  const auto rate = [&](const Row& row, Duration time) {
    const double shown = is_bus ? row.busbw.bytes_per_s : row.algbw.bytes_per_s;
    return time.ps == 0 ? 0 : shown * 1e-9 * static_cast<double>(row.time.ps) / static_cast<double>(time.ps);
  };
  std::vector<Chart::Point> curve, low, high;
  for (const auto* row : rows) {
    chart.include(row->size, rate(*row, row->time) * 1.1);  // the band may be cut off above, the curve not
    curve.push_back({row->size, rate(*row, row->time),
                     fmt::format("{}: {:.4g} GB/s", to_string(row->size), rate(*row, row->time))});
    low.push_back({row->size, rate(*row, row->high_time), ""});
    high.push_back({row->size, rate(*row, row->low_time), ""});
  }
  chart.add_band(low, high);
  chart.add_curve(curve, colour(0));
  return plotted(is_bus ? "Bus bandwidth." : "Bandwidth.", chart.svg(), chart.plot("GB/s"));
}

/// A single row, for which a curve would be one dot on an empty plane. Steps of no bytes have no rate.
std::string single_figure(const Row& row, bool is_bus, bool has_rate) {
  const double shown = is_bus ? row.busbw.bytes_per_s : row.algbw.bytes_per_s;
  const auto rate = [&](Duration time) {
    return to_string(Bandwidth{shown * static_cast<double>(row.time.ps) / std::max(1.0, static_cast<double>(time.ps))});
  };
  auto out = fmt::format("<p>Predicted time at {}: <b>{}</b>, with 80 % between {} and {}", escaped(row_name(row)),
                         to_string(row.time), to_string(row.low_time), to_string(row.high_time));
  if (has_rate && shown > 0)
    out += fmt::format("; {} <b>{}</b>, {} to {}", is_bus ? "bus bandwidth" : "bandwidth", rate(row.time),
                       rate(row.high_time), rate(row.low_time));
  return out + ".</p>\n";
}

/// Terms of one kind under one name: counts differ by size ("14 hops over nvlink", "framebuffer of 8 GB").
std::string kind_of(const Term& term) {
  const auto start = term.name.find_first_not_of("0123456789 ");
  auto name = term.name.substr(start == std::string::npos ? 0 : start);
  if (name.rfind("transfer over", 0) == 0 || name.rfind("stores over", 0) == 0) name = "transfer at the bottleneck";
  if (name.rfind("framebuffer of ", 0) == 0) name = "framebuffer";
  const auto paren = name.find(" (");
  return paren == std::string::npos ? name : name.substr(0, paren);
}

double share_of(const Row& row, const std::string& kind) {
  double share = 0;
  for (const auto& term : row.terms) {
    if (kind_of(term) == kind && row.time.ps > 0)
      share += std::max(0.0, static_cast<double>(term.time.ps) / static_cast<double>(row.time.ps));
  }
  return share;
}

/// The kinds that take most, all rows together.
std::vector<std::string> main_kinds(const Rows& rows) {
  std::map<std::string, double> weight;
  for (const auto* row : rows) {
    for (const auto& term : row->terms) weight.try_emplace(kind_of(term), 0);
    for (auto& [kind, sum] : weight) sum += share_of(*row, kind);
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [kind, sum] : weight) {
    if (sum > 0) order.emplace_back(-sum, kind);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> kinds;
  for (std::size_t k = 0; k < order.size() && k + 1 < k_num_colours; ++k) kinds.push_back(order[k].second);
  return kinds;
}

constexpr double k_plot_width = k_chart_width - k_chart_left - k_chart_right;
constexpr double k_column_top = 10, k_column_bottom = 290, k_legend_line = 22, k_widest_step = 140;

/// One column of shares.
std::string term_column(const Row& row, const std::vector<std::string>& kinds, double x, double width) {
  std::string out;
  double at = k_column_bottom;
  double rest = 1;
  const auto draw = [&](double share, const std::string& fill, const std::string& name) {
    const double height = share * (k_column_bottom - k_column_top);
    at -= height;
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.2f}\" style=\"fill:{}\"><title>{}: {:.1f}% of {} "
        "at {}</title></rect>\n",
        x, at, width, height, fill, escaped(name), 100 * share, to_string(row.time), escaped(row_name(row)));
  };
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const double share = std::min(share_of(row, kinds[k]), rest);
    rest -= share;
    if (share > 0.001) draw(share, colour(k), kinds[k]);
  }
  if (rest > 0.001) draw(rest, "var(--rest)", "other");
  return out;
}

/// Where the time goes, as shares, one column per size; small terms are gathered.
std::string term_picture(const Rows& rows) {
  const auto kinds = main_kinds(rows);
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"share of each term\">\n", k_chart_width,
                  k_column_bottom + 44 + k_legend_line * static_cast<double>(kinds.size()));
  const double step = std::min(k_widest_step, k_plot_width / static_cast<double>(rows.size()));
  std::vector<Tick> ticks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double x = k_chart_left + step * static_cast<double>(i);
    out += term_column(*rows[i], kinds, x, step * 0.9);
    ticks.push_back({x + step * 0.45, row_name(*rows[i])});
  }
  const auto text = [&](double x, double y, const char* css, const char* anchor, const std::string& words) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, css, anchor,
                       escaped(words));
  };
  for (const auto& tick : without_collisions(
           ticks, [](const Tick& t) { return label_width(t.label); }, 8))
    text(tick.at, k_column_bottom + 19, "tick", "middle", tick.label);
  for (int percent = 0; percent <= 100; percent += 25)
    text(k_chart_left - 6, k_column_bottom - (k_column_bottom - k_column_top) * percent / 100 + 4, "tick", "end",
         fmt::format("{} %", percent));
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const double y = k_column_bottom + 48 + k_legend_line * static_cast<double>(k);
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" style=\"fill:{}\"/>", k_chart_left, y - 11,
                       colour(k));
    text(k_chart_left + 18, y, "legend", "start", kinds[k]);
  }
  return boxed("Where the time goes.", out + "</svg>\n");
}

double own_figure(const Row& row, std::string_view key) {
  const auto it = std::ranges::find(row.figures, key, &Figure::key);
  return it == row.figures.end() ? 0 : it->value;
}

/// Throughput over the number of GPUs, with its band.
std::string scaling_picture(const Rows& rows) {
  Plot plot;
  plot.x = {"GPUs", "number", 0, true};
  plot.y = {"throughput (1/s)", "number", 0, true};
  PlotSeries curve;
  curve.label = "throughput";
  PlotSeries ideal;
  ideal.label = "as many times that of the first row";
  ideal.colour = "--soft";
  for (const auto* row : rows) {
    const double rate = own_figure(*row, "throughput_per_s");
    const double gpus = own_figure(*row, "gpus");
    curve.x.push_back(gpus);
    curve.y.push_back(rate);
    curve.low.push_back(rate * row->time.seconds() / std::max(1e-12, row->high_time.seconds()));
    curve.high.push_back(rate * row->time.seconds() / std::max(1e-12, row->low_time.seconds()));
    curve.notes.push_back(fmt::format("{}: {:.4g}/s, a step takes {}", row->label, rate, to_string(row->time)));
    ideal.x.push_back(gpus);
    ideal.y.push_back(gpus * own_figure(*rows.front(), "throughput_per_s") /
                      std::max(1.0, own_figure(*rows.front(), "gpus")));
  }
  plot.series = {ideal, curve};
  return plotted("Throughput over GPUs, with its 80 % band.", picture_of(plot), plot);
}

/// Curves and terms of one workload.
std::string pictures(const WorkloadPrediction& workload) {
  const auto rows = finished(workload);
  if (rows.empty()) return "";
  const bool is_nccl = family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
  const bool is_shared = family_of(workload.benchmark) == BenchmarkFamily::sharing ||
                         family_of(workload.benchmark) == BenchmarkFamily::training;
  std::string out;
  // Rows of clients have names, no sizes; nothing of this family has a rate or a link that limits it.
  if (rows.size() == 1) {
    out += single_figure(*rows.front(), is_nccl, !is_shared);
  } else {
    if (rows.front()->label.empty()) out += time_picture(rows);
    if (!is_shared) out += rate_picture(rows, is_nccl);
  }
  if (workload.benchmark == Benchmark::training && rows.size() > 1) out += scaling_picture(rows);
  out += term_picture(rows) + timeline_picture(workload);
  if (!is_shared)
    out += fmt::format("<p>Largest message limited by <b>{}</b>.</p>\n", escaped(rows.back()->bottleneck));
  return out;
}

}  // namespace

std::string provenance_html(const Provenance& provenance) {
  std::string out = fmt::format("<li>fabricast {}, {} engine, seed {}</li>\n", escaped(provenance.version),
                                escaped(provenance.fidelity), provenance.seed);
  for (const auto& input : provenance.inputs)
    out += fmt::format("<li>{} <code>sha256 {}</code></li>\n", escaped(input.path), input.sha256);
  for (const auto& file : provenance.parameter_files) out += fmt::format("<li>parameters {}</li>\n", escaped(file));
  for (const auto& setting : provenance.settings)
    out += fmt::format("<li><code>--set {}={}</code></li>\n", escaped(setting.path), escaped(setting.value));
  return fmt::format("<ul>\n{}</ul>\n", out);
}

/// Links by the kind of their ends, names without numbers: how many, the busiest, and the mean.
std::string link_use_html(const LinkUseTable& table) {
  struct Kind {
    std::size_t busiest = 0, count = 0;
    double sum = 0;
  };
  std::vector<std::pair<std::string, Kind>> kinds;  // in the order of their busiest
  for (std::size_t i = 0; i < table.links.size(); ++i) {
    const auto& one = table.links[i];
    const auto name = fmt::format("{} to {} ({})", without_numbers(one.from), without_numbers(one.to), one.kind);
    auto known = std::ranges::find(kinds, name, &std::pair<std::string, Kind>::first);
    if (known == kinds.end()) known = kinds.insert(kinds.end(), {name, Kind{i, 0, 0}});
    ++known->second.count;
    known->second.sum += one.share;
  }
  std::string out =
      "<div class=\"wide\"><table><thead><tr><th class=\"name\">links</th><th>of them</th><th>mean "
      "use</th><th>most</th>"
      "<th class=\"name\">where</th><th>GB/s</th></tr></thead><tbody>\n";
  for (const auto& [name, kind] : kinds) {
    const auto& one = table.links[kind.busiest];
    out += fmt::format(
        "<tr data-link=\"{}\"><td class=\"name\">{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td "
        "class=\"name\">{} "
        "&rarr; {}</td><td>{:.4g}</td></tr>\n",
        kind.busiest, escaped(name), kind.count, 100 * kind.sum / static_cast<double>(kind.count), 100 * one.share,
        escaped(one.from), escaped(one.to), one.bytes_per_s * 1e-9);
  }
  const auto left_out = table.num_used - table.links.size();
  return fmt::format(
      "<h2>Use of links</h2>\n<p>Payload of the largest row over its time, as a share of what a link carries; {} links "
      "carry "
      "anything{}.</p>\n{}</tbody></table></div>\n",
      table.num_used, left_out == 0 ? "" : fmt::format(", the {} most used are counted", table.links.size()), out);
}

std::string html(const Document& document, const std::string& further) {
  const auto& prediction = document.prediction;
  const auto& scenario = document.scenario;
  const auto& provenance = document.provenance;
  std::string out = fmt::format("<h1>{}</h1>\n<p class=\"sub\">{} Topology {}.</p>\n", escaped(prediction.scenario),
                                escaped(scenario.description.empty() ? "" : scenario.description + "."),
                                escaped(prediction.topology));
  if (prediction.is_interrupted) out += "<p><b>Interrupted: sizes that did not finish are missing.</b></p>\n";
  for (std::size_t w = 0; w < prediction.workloads.size(); ++w) {
    const auto& workload = prediction.workloads[w];
    out += fmt::format("<h2>{}: {} {}{} on {} host{}</h2>\n", escaped(workload.name), workload.num_ranks,
                       workload.benchmark == Benchmark::traffic ? "flow" : "rank", workload.num_ranks == 1 ? "" : "s",
                       workload.num_hosts, workload.num_hosts == 1 ? "" : "s");
    out += pictures(workload) + fabric_pictures(workload);
    out += fmt::format("<pre>{}</pre>\n<h2>Assumptions</h2><ul>\n",
                       escaped(workload_table(workload, scenario.workloads[w], !prediction.is_interrupted) +
                               extrapolation_note(workload) + fabric_table(workload)));
    for (const auto& assumption : workload.assumptions) out += fmt::format("<li>{}</li>\n", escaped(assumption));
    out += "</ul>\n";
  }
  if (document.link_use != nullptr && !document.link_use->links.empty()) out += link_use_html(*document.link_use);
  return page(prediction.scenario,
              out + further + "<h2>Provenance</h2>" + provenance_html(provenance) + embedded_json(json(document)));
}

}  // namespace fabricast::report
