// SPDX-License-Identifier: Apache-2.0
// One self-contained page: curves of time and bus bandwidth with the band, terms stacked by size, and the table. The
// pictures are SVG written here; there is no script and nothing to fetch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "report/fabric_tables.hpp"
#include "report/html_parts.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr double k_width = 820, k_height = 360, k_left = 78, k_right = 34, k_top = 16, k_bottom = 46;
constexpr const char* k_colours[] = {"#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280",
                                     "#b7791f", "#4a5568", "#00838f", "#9b2c2c", "#5a67d8"};

/// log2 positions of sizes, log10 or linear positions of values.
struct Axes {
  double size_low = 0, size_high = 1, low = 0, high = 1;
  bool is_log = true;

  [[nodiscard]] double x(Bytes size) const {
    const double at = std::log2(static_cast<double>(std::max<std::int64_t>(1, size.value)));
    return k_left +
           (size_high > size_low ? (at - size_low) / (size_high - size_low) : 0.5) * (k_width - k_left - k_right);
  }
  [[nodiscard]] double y(double value) const {
    const double at = is_log ? std::log10(std::max(value, 1e-12)) : value;
    return k_height - k_bottom - (high > low ? (at - low) / (high - low) : 0.5) * (k_height - k_top - k_bottom);
  }
};

std::string frame(const Axes& axes, const std::string& title, const std::function<std::string(double)>& label) {
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", k_width, k_height, escaped(title));
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", k_left, k_top,
                     k_width - k_left - k_right, k_height - k_top - k_bottom);
  const double step = std::max(1.0, std::ceil((axes.size_high - axes.size_low) / 9));
  for (double at = std::ceil(axes.size_low); at <= axes.size_high + 1e-9; at += step) {
    const Bytes size{static_cast<std::int64_t>(std::llround(std::exp2(at)))};
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" class=\"grid\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "class=\"tick\" text-anchor=\"middle\">{4}</text>\n",
        axes.x(size), k_top, k_height - k_bottom, k_height - k_bottom + 16, to_string(size));
  }
  std::vector<double> ticks;
  if (axes.is_log) {
    const double decades = std::max(1.0, std::ceil((axes.high - axes.low) / 7));
    for (double at = std::ceil(axes.low - 1e-9); at <= axes.high + 1e-9; at += decades)
      ticks.push_back(std::pow(10, at));
  } else {
    for (int i = 0; i <= 5; ++i) ticks.push_back(axes.low + (axes.high - axes.low) * i / 5);
  }
  for (const double value : ticks) {
    out += fmt::format(
        "<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" class=\"grid\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "class=\"tick\" text-anchor=\"end\">{5}</text>\n",
        axes.y(value), k_left, k_width - k_right, k_left - 6, axes.y(value) + 4, escaped(label(value)));
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" class=\"tick\" text-anchor=\"middle\">message size</text>\n",
                     (k_left + k_width - k_right) / 2, k_height - 8);
  return out;
}

Axes size_axes(const std::vector<Row>& rows) {
  Axes axes;
  axes.size_low = 1e9;
  axes.size_high = 0;
  for (const auto& row : rows) {
    const double at = std::log2(static_cast<double>(std::max<std::int64_t>(1, row.size.value)));
    axes.size_low = std::min(axes.size_low, at);
    axes.size_high = std::max(axes.size_high, at);
  }
  return axes;
}

std::string time_label(double us) { return to_string(from_seconds(us * 1e-6)); }

std::string time_picture(const std::vector<Row>& rows) {
  auto axes = size_axes(rows);
  axes.low = 1e9;
  axes.high = -1e9;
  for (const auto& row : rows) {
    axes.low = std::min(axes.low, std::floor(std::log10(std::max(1e-3, row.low_time.us()))));
    axes.high = std::max(axes.high, std::ceil(std::log10(std::max(1e-3, row.high_time.us()))));
  }
  if (axes.high <= axes.low) axes.high = axes.low + 1;
  std::string out = frame(axes, "predicted time over message size", time_label);
  std::string band;
  std::string line;
  for (const auto& row : rows) band += fmt::format("{:.1f},{:.1f} ", axes.x(row.size), axes.y(row.high_time.us()));
  for (auto it = rows.rbegin(); it != rows.rend(); ++it)
    band += fmt::format("{:.1f},{:.1f} ", axes.x(it->size), axes.y(std::max(1e-3, it->low_time.us())));
  for (const auto& row : rows) line += fmt::format("{:.1f},{:.1f} ", axes.x(row.size), axes.y(row.time.us()));
  out += fmt::format("<polygon points=\"{}\" class=\"band\"/><polyline points=\"{}\" class=\"curve\"/>\n", band, line);
  for (const auto& row : rows)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"dot\"><title>{}: {} ({} .. {})</title></circle>\n",
        axes.x(row.size), axes.y(row.time.us()), to_string(row.size), to_string(row.time), to_string(row.low_time),
        to_string(row.high_time));
  return out + "</svg>\n";
}

std::string rate_picture(const std::vector<Row>& rows, bool is_bus) {
  auto axes = size_axes(rows);
  axes.is_log = false;
  axes.low = axes.high = 0;
  const auto rate = [&](const Row& row, Duration time) {
    const double shown = is_bus ? row.busbw.bytes_per_s : row.algbw.bytes_per_s;
    return time.ps == 0 ? 0 : shown * 1e-9 * static_cast<double>(row.time.ps) / static_cast<double>(time.ps);
  };
  for (const auto& row : rows) axes.high = std::max(axes.high, rate(row, row.time) * 1.1);
  if (axes.high <= 0) axes.high = 1;
  // Five steps of 1, 2, 2.5 or 5 times a power of ten.
  const double power = std::pow(10, std::floor(std::log10(axes.high / 5)));
  for (const double step : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (5 * step * power < axes.high) continue;
    axes.high = 5 * step * power;
    break;
  }
  std::string out = frame(axes, "predicted bandwidth over message size",
                          [](double value) { return fmt::format("{:.3g} GB/s", value); });
  std::string line;
  std::string band;
  for (const auto& row : rows)
    band += fmt::format("{:.1f},{:.1f} ", axes.x(row.size), std::max(k_top, axes.y(rate(row, row.low_time))));
  for (auto it = rows.rbegin(); it != rows.rend(); ++it)
    band += fmt::format("{:.1f},{:.1f} ", axes.x(it->size), axes.y(rate(*it, it->high_time)));
  for (const auto& row : rows) line += fmt::format("{:.1f},{:.1f} ", axes.x(row.size), axes.y(rate(row, row.time)));
  out += fmt::format("<polygon points=\"{}\" class=\"band\"/><polyline points=\"{}\" class=\"curve\"/>\n", band, line);
  return out + "</svg>\n";
}

/// Where the time goes, as shares, one column per size; small terms are gathered.
std::string term_picture(const std::vector<Row>& rows) {
  std::map<std::string, double> weight;
  const auto group = [](const Term& term) {
    // Counts differ by size ("14 hops over nvlink"): leave leading numbers out.
    const auto start = term.name.find_first_not_of("0123456789 ");
    auto name = term.name.substr(start == std::string::npos ? 0 : start);
    if (name.rfind("transfer over", 0) == 0 || name.rfind("stores over", 0) == 0) name = "transfer at the bottleneck";
    const auto paren = name.find(" (");
    return paren == std::string::npos ? name : name.substr(0, paren);
  };
  for (const auto& row : rows) {
    for (const auto& term : row.terms)
      weight[group(term)] +=
          row.time.ps > 0 ? std::max(0.0, static_cast<double>(term.time.ps) / static_cast<double>(row.time.ps)) : 0;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, share] : weight) order.emplace_back(-share, name);
  std::sort(order.begin(), order.end());
  if (order.size() > 9) order.resize(9);
  const double height = k_height - 60;
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"share of each term over message size\">\n",
                  k_width, k_height + 20.0 * static_cast<double>(order.size()));
  const double step = (k_width - k_left - k_right) / static_cast<double>(std::max<std::size_t>(1, rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double at = height;
    double rest = 1;
    const auto draw = [&](double share, const char* colour, const std::string& name) {
      at -= share * (height - k_top);
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.2f}\" fill=\"{}\"><title>{}: {:.1f}% of {} at "
          "{}</title></rect>\n",
          k_left + step * static_cast<double>(i), at, step * 0.9, share * (height - k_top), colour, escaped(name),
          100 * share, to_string(rows[i].time), escaped(row_name(rows[i])));
    };
    for (std::size_t k = 0; k < order.size(); ++k) {
      double share = 0;
      for (const auto& term : rows[i].terms)
        share += group(term) == order[k].second && rows[i].time.ps > 0
                     ? std::max(0.0, static_cast<double>(term.time.ps) / static_cast<double>(rows[i].time.ps))
                     : 0;
      share = std::min(share, rest);
      rest -= share;
      if (share > 0.001) draw(share, k_colours[k], order[k].second);
    }
    if (rest > 0.001) draw(rest, "#cbd5e0", "other");
    if (i % std::max<std::size_t>(1, rows.size() / 9) == 0)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"tick\" text-anchor=\"middle\">{}</text>\n",
                         k_left + step * (static_cast<double>(i) + 0.45), height + 16, escaped(row_name(rows[i])));
  }
  for (int percent = 0; percent <= 100; percent += 25)
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" class=\"tick\" text-anchor=\"end\">{} %</text>\n", k_left - 6,
                       height - (height - k_top) * percent / 100 + 4, percent);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double y = height + 40 + 20 * static_cast<double>(k);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\" "
        "class=\"legend\">{}</text>\n",
        k_left, y - 10, k_colours[k], k_left + 18, y, escaped(order[k].second));
  }
  return out + "</svg>\n";
}

constexpr const char* k_style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem;color:#1a202c;background:#fff}"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}p.sub{color:#4a5568;margin:.2rem 0 "
    "1rem}svg{width:100%;height:auto}"
    ".frame{fill:#f7fafc;stroke:#cbd5e0}.grid{stroke:#e2e8f0}.tick{font-size:11px;fill:#4a5568}.legend{font-size:12px;"
    "fill:#1a202c}"
    ".band{fill:#2b6cb0;opacity:.18}.curve{fill:none;stroke:#2b6cb0;stroke-width:2}.dot{fill:#2b6cb0}"
    "pre{overflow-x:auto;background:#f7fafc;border:1px solid #e2e8f0;padding:.6rem;font-size:12px}li{margin:.15rem 0}";

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string html(const Document& document) {
  const auto& [prediction, scenario, provenance] = document;
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">\n";
  out += fmt::format("<title>Fabricast: {}</title>\n<style>{}</style></head><body>\n", escaped(prediction.scenario),
                     k_style);
  out += fmt::format("<h1>{}</h1>\n<p class=\"sub\">{} Topology {}.</p>\n", escaped(prediction.scenario),
                     escaped(scenario.description.empty() ? "" : scenario.description + "."),
                     escaped(prediction.topology));
  for (std::size_t w = 0; w < prediction.workloads.size(); ++w) {
    const auto& workload = prediction.workloads[w];
    out += fmt::format("<h2>{}: {} ranks on {} host{}</h2>\n", escaped(workload.name), workload.num_ranks,
                       workload.num_hosts, workload.num_hosts == 1 ? "" : "s");
    if (!workload.rows.empty()) {
      // One row of packets: its flows say more than a curve of one point.
      const bool is_traffic = family_of(workload.benchmark) == BenchmarkFamily::traffic && workload.rows.size() == 1;
      const bool is_nccl = family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
      const bool is_shared = family_of(workload.benchmark) == BenchmarkFamily::sharing;
      // Rows of clients have names, no sizes; nothing of this family has a rate or a link that limits it.
      if (workload.rows.front().label.empty() && !is_traffic)
        out += "<p class=\"sub\">Predicted time with its 80 % band.</p>\n" + time_picture(workload.rows);
      if (!is_shared && !is_traffic)
        out += fmt::format("<p class=\"sub\">{} bandwidth.</p>\n", is_nccl ? "Bus" : "Algorithm") +
               rate_picture(workload.rows, is_nccl);
      out += "<p class=\"sub\">Where the time goes.</p>\n" + term_picture(workload.rows);
      if (!is_shared)
        out += fmt::format("<p>Largest message limited by <b>{}</b>.</p>\n", escaped(workload.rows.back().bottleneck));
    }
    out += fabric_pictures(workload);
    out += fmt::format("<pre>{}</pre>\n<h2>Assumptions</h2><ul>\n",
                       escaped(workload_table(workload, scenario.workloads[w]) + extrapolation_note(workload) +
                               fabric_table(workload)));
    for (const auto& assumption : workload.assumptions) out += fmt::format("<li>{}</li>\n", escaped(assumption));
    out += "</ul>\n";
  }
  out += fmt::format("<h2>Provenance</h2><ul><li>fabricast {}, {} engine, seed {}</li>\n", provenance.version,
                     provenance.fidelity, provenance.seed);
  for (const auto& input : provenance.inputs)
    out += fmt::format("<li>{} <code>sha256 {}</code></li>\n", escaped(input.path), input.sha256.substr(0, 16));
  return out + "</ul></body></html>\n";
}

}  // namespace fabricast::report
