// SPDX-License-Identifier: Apache-2.0
// Pictures of a packet run for the HTML page: completion of flows, pauses per port, queues and rates over time. SVG
// written here, no script.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "report/fabric_tables.hpp"
#include "report/html_parts.hpp"

namespace fabricast::report {

namespace {

constexpr double k_width = 820, k_left = 190, k_right = 60, k_line = 18, k_plot = 240, k_plot_left = 78;
constexpr std::size_t k_most_lines = 32;    ///< bars and tracks of one picture
constexpr std::size_t k_most_curves = 8;    ///< as many as there are colours
constexpr std::size_t k_most_points = 240;  ///< of one curve: means of what lies between
constexpr const char* k_colours[] = {"#2b6cb0", "#c05621", "#2f855a", "#6b46c1",
                                     "#b83280", "#b7791f", "#4a5568", "#00838f"};

std::string shortened(const std::string& name) { return name.size() > 28 ? name.substr(0, 27) + "…" : name; }

std::string open_svg(double height, const std::string& title) {
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", k_width, height,
                     escaped(title));
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

/// Ticks of a time axis from 0 to `end` below a picture.
std::string time_axis(double end_us, double left, double y) {
  std::string out;
  for (int i = 0; i <= 5; ++i) {
    const double x = left + (k_width - left - k_right) * i / 5;
    out += text_at(x, y, "middle", fmt::format("{:.4g} us", end_us * i / 5));
  }
  return out;
}

/// A bar per flow from start to end; a thin line marks when it would have ended alone.
std::string flow_picture(const Row& row) {
  double end_us = row.time.us();
  for (const auto& flow : row.flows) end_us = std::max(end_us, flow.end.us());
  if (row.flows.empty() || end_us <= 0) return "";
  const auto shown = std::min(row.flows.size(), k_most_lines);
  const double height = k_line * static_cast<double>(shown);
  std::string out =
      "<p class=\"sub\">Flows, and where each would have ended alone.</p>\n" + open_svg(height + 24, "flows over time");
  const auto x = [&](double us) { return k_left + (k_width - k_left - k_right) * us / end_us; };
  for (std::size_t f = 0; f < shown; ++f) {
    const auto& flow = row.flows[f];
    const double y = k_line * static_cast<double>(f);
    const bool is_done = flow.end.ps >= 0;
    const double until = is_done ? flow.end.us() : end_us;
    out += text_at(k_left - 6, y + 13, "end", shortened(flow.name));
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {}</title></rect>\n",
        x(flow.start.us()), y + 3, std::max(0.5, x(until) - x(flow.start.us())), k_line - 6,
        is_done ? "#2b6cb0" : "#cbd5e0", escaped(flow.name),
        is_done ? to_string(flow.completion()) : std::string("not finished"));
    const double alone = x((flow.start + flow.alone).us());
    out += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#1a202c\"/>\n",
                       alone, y + 1, y + k_line - 1);
  }
  return out + time_axis(end_us, k_left, height + 16) + "</svg>\n";
}

/// A track per stopped port, a mark per pause.
std::string pause_picture(const Row& row) {
  std::map<std::string, std::vector<const PauseSpan*>> tracks;
  double end_us = row.time.us();
  for (const auto& span : row.fabric->pause_spans) {
    tracks[fmt::format("{} ({})", span.link, span.priority)].push_back(&span);
    end_us = std::max(end_us, span.end.us());
  }
  if (tracks.empty() || end_us <= 0) return "";
  const double height = k_line * static_cast<double>(std::min(tracks.size(), k_most_lines));
  std::string out = "<p class=\"sub\">When ports (priority) were stopped by PAUSE or missing credits.</p>\n" +
                    open_svg(height + 24, "pauses over time");
  const double scale = (k_width - k_left - k_right) / end_us;
  double y = 0;
  for (const auto& [name, spans] : tracks) {
    if (y >= height) break;
    out += text_at(k_left - 6, y + 13, "end", shortened(name));
    // Pauses nearer than half a pixel are drawn as one.
    std::string path;
    double drawn = -1;
    for (const auto* span : spans) {
      const double from = k_left + scale * span->begin.us();
      const double to = std::max(from + 0.5, k_left + scale * span->end.us());
      if (to <= drawn + 0.5) continue;
      path += fmt::format("M{:.1f} {:.1f}h{:.1f}", std::max(from, drawn), y + k_line / 2, to - std::max(from, drawn));
      drawn = to;
    }
    out += fmt::format("<path d=\"{}\" stroke=\"#c05621\" stroke-width=\"{}\"/>\n", path, k_line - 8);
    y += k_line;
  }
  return out + time_axis(end_us, k_left, height + 16) + "</svg>\n";
}

struct Curve {
  std::vector<std::pair<double, double>> points;  ///< us, value
  double most = 0;
};

/// The curves with the highest maxima.
std::string curve_picture(const std::string& title, std::map<std::string, Curve> curves,
                          const std::function<std::string(double)>& label) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, curve] : curves) {
    if (curve.most > 0) order.emplace_back(-curve.most, name);
  }
  if (order.empty()) return "";
  std::sort(order.begin(), order.end());
  if (order.size() > k_most_curves) order.resize(k_most_curves);
  const double most = -order.front().first;
  double end_us = 0;
  for (const auto& [key, name] : order) end_us = std::max(end_us, curves[name].points.back().first);
  const double plot_width = k_width - k_plot_left - k_right;
  std::string out = fmt::format("<p class=\"sub\">{}</p>\n", escaped(title)) +
                    open_svg(k_plot + 30 + k_line * static_cast<double>(order.size()), title);
  out += fmt::format("<rect x=\"{}\" y=\"4\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", k_plot_left, plot_width,
                     k_plot - 4);
  const auto y = [&](double value) { return k_plot - (k_plot - 10) * value / most; };
  for (int i = 0; i <= 4; ++i) out += text_at(k_plot_left - 6, y(most * i / 4) + 4, "end", label(most * i / 4));
  for (std::size_t c = 0; c < order.size(); ++c) {
    const auto& points = curves[order[c].second].points;
    const std::size_t step = points.size() / k_most_points + 1;
    std::string line;
    for (std::size_t first = 0; first < points.size(); first += step) {
      const auto last = std::min(first + step, points.size());
      double mean = 0;
      for (std::size_t p = first; p < last; ++p) mean += points[p].second / static_cast<double>(last - first);
      line += fmt::format("{:.1f},{:.1f} ", k_plot_left + plot_width * points[last - 1].first / end_us, y(mean));
    }
    out +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"/>\n", line, k_colours[c]);
    const double below = k_plot + 34 + k_line * static_cast<double>(c);
    out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>", k_plot_left, below - 10,
                       k_colours[c]);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" class=\"legend\">{}</text>\n", k_plot_left + 18, below,
                       escaped(order[c].second));
  }
  return out + time_axis(end_us, k_plot_left, k_plot + 16) + "</svg>\n";
}

std::string queue_picture(const FabricReport& fabric) {
  std::map<std::string, Curve> curves;
  for (const auto& point : fabric.queues) {
    auto& curve = curves[fmt::format("{} priority {}", point.link, point.priority)];
    curve.points.emplace_back(point.time.us(), static_cast<double>(point.queue.value));
    curve.most = std::max(curve.most, static_cast<double>(point.queue.value));
  }
  return curve_picture("Deepest queues.", std::move(curves),
                       [](double bytes) { return to_string(Bytes{std::llround(bytes)}); });
}

std::string rate_picture(const FabricReport& fabric) {
  std::map<std::string, Curve> curves;
  for (const auto& point : fabric.rates) {
    auto& curve = curves[point.flow];
    curve.points.emplace_back(point.time.us(), point.goodput.bytes_per_s * 8e-9);
    curve.most = std::max(curve.most, point.goodput.bytes_per_s * 8e-9);
  }
  return curve_picture("Goodput of the fastest flows.", std::move(curves),
                       [](double rate) { return fmt::format("{:.3g} Gb/s", rate); });
}

}  // namespace

std::string fabric_pictures(const WorkloadPrediction& workload) {
  const auto* row = eventful_row(workload);
  if (row == nullptr) return "";
  return fmt::format("<h2>The fabric at {} B</h2>\n", row->size.value) + flow_picture(*row) + pause_picture(*row) +
         queue_picture(*row->fabric) + rate_picture(*row->fabric);
}

}  // namespace fabricast::report
