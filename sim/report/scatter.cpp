// SPDX-License-Identifier: Apache-2.0
// The still picture of a plot: points, lines and bands over two axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"

namespace fabricast::report {

namespace {

constexpr double k_inner_width = k_chart_width - k_chart_left - k_chart_right;
constexpr double k_inner_height = k_chart_height - k_chart_top - k_chart_bottom;
constexpr double k_margin = 0.05;  ///< of the range, beyond the outermost points

class Axis {
 public:
  Axis(const PlotAxis& axis, double from, double to) : axis_(axis), from_(from), to_(to) {}

  void include(double value) {
    if (axis_.log > 0 && value <= 0) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  void finish() {
    if (low_ > high_) low_ = high_ = 1;
    if (axis_.log > 0) {
      low_ = std::pow(10, std::floor(std::log10(low_) + 1e-9));
      high_ = std::pow(10, std::ceil(std::log10(high_) - 1e-9));
      if (low_ == high_) high_ *= 10;
      return;
    }
    const double range = high_ > low_ ? high_ - low_ : std::max(1e-9, std::abs(high_));
    low_ = axis_.starts_at_zero ? 0 : low_ - k_margin * range;
    high_ += k_margin * range;
  }
  [[nodiscard]] double at(double value) const {
    const double share =
        axis_.log > 0 ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }
  [[nodiscard]] bool holds(double value) const { return value >= low_ && value <= high_; }
  [[nodiscard]] std::vector<Tick> ticks() const {
    std::vector<Tick> out;
    if (axis_.log > 0) {
      for (double value = low_; value <= high_ * 1.001; value *= 10) out.push_back({at(value), label(value)});
      return out;
    }
    const double step = round_step(high_ - low_, 6);
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_; ++k)
      out.push_back({at(k * step), label(k * step)});
    return out;
  }

 private:
  [[nodiscard]] std::string label(double value) const {
    std::string prefix;
    double shown = value;
    for (const auto& [size, name] : {std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
      if (std::abs(value) < size) continue;
      shown = value / size;
      prefix = name;
      break;
    }
    const bool has_unit = axis_.unit != "number" && !axis_.unit.empty();
    return fmt::format("{:.4g}{}{}", shown, prefix.empty() && !has_unit ? "" : " " + prefix,
                       has_unit ? axis_.unit : "");
  }

  const PlotAxis& axis_;
  double from_, to_;
  double low_ = 1e300, high_ = -1e300;
};

std::string text_at(double x, double y, const char* css, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, css, anchor,
                     escaped(words));
}

/// Forth along the lower ends and back along the upper ones.
std::string band_of(const PlotSeries& series, const Axis& x, const Axis& y) {
  std::string outline;
  const auto add = [&](std::size_t i, double end) {
    if (x.holds(series.x[i]) && y.holds(end)) outline += fmt::format("{:.1f},{:.1f} ", x.at(series.x[i]), y.at(end));
  };
  for (std::size_t i = 0; i < series.low.size(); ++i) add(i, series.low[i]);
  for (std::size_t i = series.high.size(); i > 0; --i) add(i - 1, series.high[i - 1]);
  return fmt::format("<polygon points=\"{}\" style=\"fill:var({});opacity:.2\"/>\n", outline, series.colour);
}

}  // namespace

std::string picture_of(const Plot& plot) {
  Axis x(plot.x, k_chart_left, k_chart_left + k_inner_width);
  Axis y(plot.y, k_chart_top + k_inner_height, k_chart_top);
  for (const auto& series : plot.series) {
    for (const double value : series.x) x.include(value);
    for (const auto* values : {&series.y, &series.low, &series.high})
      for (const double value : *values) y.include(value);
  }
  x.finish();
  y.finish();
  const double bottom = k_chart_top + k_inner_height;
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{} over {}\">\n<rect x=\"{}\" y=\"{}\" width=\"{}\" "
      "height=\"{}\" class=\"frame\"/>\n",
      k_chart_width, k_chart_height + 22.0 * static_cast<double>(plot.series.size()), escaped(plot.y.label),
      escaped(plot.x.label), k_chart_left, k_chart_top, k_inner_width, k_inner_height);
  for (const auto& tick : without_collisions(
           x.ticks(), [](const Tick& t) { return label_width(t.label); }, 8))
    out += text_at(tick.at, bottom + 18, "tick", "middle", tick.label);
  for (const auto& tick : y.ticks()) {
    out += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n", k_chart_left,
                       k_chart_left + k_inner_width, tick.at, tick.at);
    out += text_at(k_chart_left - 6, tick.at + 4, "tick", "end", tick.label);
  }
  out += text_at(k_chart_left + k_inner_width / 2, bottom + 40, "tick", "middle",
                 plot.x.label + ", upward: " + plot.y.label);
  double legend = k_chart_height + 12;
  for (const auto& series : plot.series) {
    if (series.low.size() > 1) out += band_of(series, x, y);
    std::string line;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!y.holds(series.y[i]) || !x.holds(series.x[i])) continue;
      line += fmt::format("{:.1f},{:.1f} ", x.at(series.x[i]), y.at(series.y[i]));
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" style=\"fill:{};stroke:var({})\"/>\n",
                         x.at(series.x[i]), y.at(series.y[i]), series.size / 2,
                         series.is_faint ? "none" : "var(" + series.colour + ")", series.colour);
    }
    if (series.is_line)
      out += fmt::format("<polyline points=\"{}\" style=\"fill:none;stroke:var({});stroke-width:2\"/>\n", line,
                         series.colour);
    out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"5\" style=\"fill:{};stroke:var({})\"/>", k_chart_left + 6,
                       legend - 4, series.is_faint ? "none" : "var(" + series.colour + ")", series.colour);
    out += text_at(k_chart_left + 18, legend, "legend", "start", series.label);
    legend += 22;
  }
  return out + "</svg>\n";
}

}  // namespace fabricast::report
