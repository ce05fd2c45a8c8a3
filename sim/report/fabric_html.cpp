// SPDX-License-Identifier: Apache-2.0
// Pictures of a packet run for the HTML page: completion of flows, pauses per port, queues and rates over time. SVG
// written here, no script.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "report/chart.hpp"
#include "report/fabric_tables.hpp"
#include "report/page.hpp"

namespace fabricast::report {

namespace {

constexpr double k_width = 820, k_left = 224, k_right = 60, k_line = 20, k_plot = 240, k_plot_left = 96;
constexpr std::size_t k_most_lines = 32;  ///< bars and tracks of one picture
constexpr std::size_t k_most_curves = 8;
constexpr std::size_t k_most_points = 240;  ///< of one curve: means of what lies between
std::string shortened(const std::string& name) { return name.size() > 28 ? name.substr(0, 27) + "…" : name; }

std::string open_svg(double height, const std::string& title) {
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", k_width, height,
                     escaped(title));
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

/// Ticks of a time axis from 0 to `end` below a picture, at round times.
std::string time_axis(double end_us, double left, double y) {
  std::vector<Tick> ticks;
  const double step = round_step(end_us, 5);
  for (int i = 0; i * step <= end_us * (1 + 1e-9); ++i)
    ticks.push_back({left + (k_width - left - k_right) * i * step / end_us, fmt::format("{:.6g} us", i * step)});
  std::string out;
  for (const auto& tick : without_collisions(
           ticks, [](const Tick& t) { return label_width(t.label); }, 8))
    out += text_at(tick.at, y, "middle", tick.label);
  return out;
}

/// A bar per flow from start to end; a thin line marks when it would have ended alone.
std::string flow_picture(const Row& row) {
  double end_us = row.time.us();
  for (const auto& flow : row.flows) end_us = std::max(end_us, flow.end.us());
  if (row.flows.empty() || end_us <= 0) return "";
  const auto shown = std::min(row.flows.size(), k_most_lines);
  const double height = k_line * static_cast<double>(shown);
  std::string out = open_svg(height + 24, "flows over time");
  const auto x = [&](double us) { return k_left + (k_width - k_left - k_right) * us / end_us; };
  for (std::size_t f = 0; f < shown; ++f) {
    const auto& flow = row.flows[f];
    const double y = k_line * static_cast<double>(f);
    const bool is_done = flow.end.ps >= 0;
    const double until = is_done ? flow.end.us() : end_us;
    out += text_at(k_left - 6, y + 13, "end", shortened(flow.name));
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" style=\"fill:{}\"><title>{}: "
        "{}</title></rect>\n",
        x(flow.start.us()), y + 3, std::max(0.5, x(until) - x(flow.start.us())), k_line - 6,
        is_done ? colour(0) : "var(--rest)", escaped(flow.name),
        is_done ? to_string(flow.completion()) : std::string("not finished"));
    const double alone = x((flow.start + flow.alone).us());
    out +=
        fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" style=\"stroke:var(--ink)\"/>\n",
                    alone, y + 1, y + k_line - 1);
  }
  const auto more = shown < row.flows.size() ? fmt::format(" The first {} of {}.", shown, row.flows.size()) : "";
  return boxed("Flows, and where each would have ended alone." + more,
               out + time_axis(end_us, k_left, height + 16) + "</svg>\n");
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
  std::string out = open_svg(height + 24, "pauses over time");
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
    out += fmt::format("<path d=\"{}\" style=\"stroke:{}\" stroke-width=\"{}\"/>\n", path, colour(1), k_line - 8);
    y += k_line;
  }
  const auto more =
      tracks.size() > k_most_lines ? fmt::format(" The first {} of {}.", k_most_lines, tracks.size()) : "";
  return boxed("When ports (priority) were stopped by PAUSE or missing credits." + more,
               out + time_axis(end_us, k_left, height + 16) + "</svg>\n");
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
  const double step = round_step(-order.front().first, 4);
  const double most = step * std::ceil(-order.front().first / step - 1e-9);
  double end_us = 0;
  for (const auto& [key, name] : order) end_us = std::max(end_us, curves[name].points.back().first);
  const double plot_width = k_width - k_plot_left - k_right;
  std::string out = open_svg(k_plot + 36 + k_line * static_cast<double>(order.size()), title);
  out += fmt::format("<rect x=\"{}\" y=\"4\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", k_plot_left, plot_width,
                     k_plot - 4);
  const auto y = [&](double value) { return k_plot - (k_plot - 10) * value / most; };
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i)
    out += text_at(k_plot_left - 6, y(i * step) + 4, "end", label(i * step));
  for (std::size_t c = 0; c < order.size(); ++c) {
    const auto& points = curves[order[c].second].points;
    const std::size_t stride = points.size() / k_most_points + 1;
    std::string line;
    for (std::size_t first = 0; first < points.size(); first += stride) {
      const auto last = std::min(first + stride, points.size());
      double mean = 0;
      for (std::size_t p = first; p < last; ++p) mean += points[p].second / static_cast<double>(last - first);
      line += fmt::format("{:.1f},{:.1f} ", k_plot_left + plot_width * points[last - 1].first / end_us, y(mean));
    }
    out += fmt::format("<polyline points=\"{}\" class=\"curve\" style=\"stroke:{}\"/>\n", line, colour(c));
    const double below = k_plot + 42 + k_line * static_cast<double>(c);
    out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"12\" style=\"fill:{}\"/>", k_plot_left,
                       below - 11, colour(c));
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" class=\"legend\">{}</text>\n", k_plot_left + 18, below,
                       escaped(order[c].second));
  }
  return boxed(title, out + time_axis(end_us, k_plot_left, k_plot + 19) + "</svg>\n");
}

std::string queue_picture(const FabricReport& fabric) {
  std::map<std::string, Curve> curves;
  for (const auto& point : fabric.queues) {
    auto& curve = curves[fmt::format("{} priority {}", point.link, point.priority)];
    curve.points.emplace_back(point.time.us(), static_cast<double>(point.queue.value));
    curve.most = std::max(curve.most, static_cast<double>(point.queue.value));
  }
  return curve_picture("Deepest queues.", std::move(curves),
                       [](double bytes) { return fmt::format("{:.6g} kB", bytes * 1e-3); });
}

std::string rate_picture(const FabricReport& fabric) {
  std::map<std::string, Curve> curves;
  for (const auto& point : fabric.rates) {
    auto& curve = curves[point.flow];
    curve.points.emplace_back(point.time.us(), point.goodput.bytes_per_s * 8e-9);
    curve.most = std::max(curve.most, point.goodput.bytes_per_s * 8e-9);
  }
  return curve_picture("Goodput of the fastest flows.", std::move(curves),
                       [](double rate) { return fmt::format("{:.6g} Gb/s", rate); });
}

}  // namespace

std::string fabric_pictures(const WorkloadPrediction& workload) {
  const auto* row = eventful_row(workload);
  if (row == nullptr) return "";
  return fmt::format("<h2>The fabric at {} B</h2>\n", row->size.value) + flow_picture(*row) + pause_picture(*row) +
         queue_picture(*row->fabric) + rate_picture(*row->fabric);
}

}  // namespace fabricast::report
