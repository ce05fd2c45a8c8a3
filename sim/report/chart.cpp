// SPDX-License-Identifier: Apache-2.0
#include "report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page.hpp"

namespace fabricast::report {

namespace {

constexpr double k_plot_width = k_chart_width - k_chart_left - k_chart_right;
constexpr double k_plot_height = k_chart_height - k_chart_top - k_chart_bottom;
constexpr double k_smallest = 1e-3;  ///< of a logarithmic axis: a time of 1 ns in us
constexpr int k_most_decades = 7, k_most_sizes = 9, k_linear_steps = 5;

double log_size(Bytes size) { return std::log2(static_cast<double>(std::max<std::int64_t>(1, size.value))); }

std::string tick_text(double x, double y, const char* anchor, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, const char* css) {
  return fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, x2, y1, y2,
                     css);
}

}  // namespace

double label_width(const std::string& text) {
  // 0.6 em is the mean of digits and capitals in the usual sans serif fonts; continuation bytes are no characters.
  constexpr double k_mean_width = 0.6 * 12;
  const auto characters =
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return k_mean_width * static_cast<double>(characters);
}

std::vector<Tick> without_collisions(const std::vector<Tick>& ticks, const std::function<double(const Tick&)>& extent,
                                     double gap) {
  const auto collide = [&](const Tick& a, const Tick& b) {
    return std::abs(a.at - b.at) < (extent(a) + extent(b)) / 2 + gap;
  };
  for (std::size_t stride = 1; stride < ticks.size(); ++stride) {
    std::vector<Tick> kept;
    for (std::size_t t = 0; t < ticks.size(); t += stride) kept.push_back(ticks[t]);
    if (std::adjacent_find(kept.begin(), kept.end(), collide) == kept.end()) return kept;
  }
  return {ticks.begin(), ticks.begin() + (ticks.empty() ? 0 : 1)};
}

std::vector<Bytes> size_ticks(const std::vector<Bytes>& sizes, int most) {
  if (sizes.empty()) return {};
  const auto [least, largest] = std::minmax_element(sizes.begin(), sizes.end());
  const double low = log_size(*least);
  const double high = log_size(*largest);
  const double step = std::max(1.0, std::ceil((high - low) / most));
  std::vector<Bytes> ticks;
  for (double at = std::ceil(low - 1e-9); at <= high + 1e-9; at += step)
    ticks.push_back(Bytes{std::int64_t{1} << std::llround(at)});
  if (ticks.size() >= 2) return ticks;
  ticks = sizes;
  std::sort(ticks.begin(), ticks.end());
  ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  return ticks;
}

double round_step(double value, int steps) {
  if (!(value > 0)) return 1;
  const double least = value / steps;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 2.5, 5.0}) {
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

Chart::Chart(std::string title, std::string name, std::function<std::string(double)> label)
    : title_(std::move(title)), name_(std::move(name)), label_(std::move(label)) {}

void Chart::include(Bytes size, double value) {
  sizes_.push_back(size);
  size_.low = std::min(size_.low, log_size(size));
  size_.high = std::max(size_.high, log_size(size));
  value_.low = std::min(value_.low, value);
  value_.high = std::max(value_.high, value);
}

double Chart::position(double value) const { return is_log_ ? std::log10(std::max(value, k_smallest)) : value; }

Chart::Range Chart::value_range() const {
  if (!is_log_) {
    const double high = std::max(value_.high, 1e-9);
    const double step = round_step(high, k_linear_steps);
    return {0, step * std::ceil(high / step - 1e-9)};
  }
  Range range{std::floor(position(value_.low) + 1e-9), std::ceil(position(value_.high) - 1e-9)};
  if (range.high <= range.low) range.high = range.low + 1;
  return range;
}

double Chart::x(Bytes size) const {
  const double share = size_.high > size_.low ? (log_size(size) - size_.low) / (size_.high - size_.low) : 0.5;
  return k_chart_left + share * k_plot_width;
}

double Chart::y(double value) const {
  const auto range = value_range();
  const double share = (position(value) - range.low) / (range.high - range.low);
  return k_chart_top + (1 - std::clamp(share, 0.0, 1.0)) * k_plot_height;
}

void Chart::add_curve(const std::vector<Point>& points, const std::string& colour, const std::string& label) {
  curves_.push_back({points, colour, label});
}

Plot Chart::plot(const std::string& unit) const {
  constexpr double k_no_bytes = 0.5;  // where a logarithmic axis shows 0 B
  Plot out;
  out.x = {"size", "bytes", 2, false};
  out.y = {name_, unit, is_log_ ? 10 : 0, !is_log_};
  for (std::size_t c = 0; c < curves_.size(); ++c) {
    const auto& curve = curves_[c];
    PlotSeries series;
    series.label = curve.label.empty() ? name_ : curve.label;
    // "var(--c3)" -> "--c3"
    series.colour = curve.colour.substr(4, curve.colour.size() - 5);
    const bool has_band = c < bands_.size() && bands_[c].first.size() == curve.points.size();
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const auto& point = curve.points[i];
      if (is_log_ && point.value <= 0) continue;
      series.x.push_back(std::max(k_no_bytes, static_cast<double>(point.size.value)));
      series.y.push_back(point.value);
      series.notes.push_back(point.note);
      if (!has_band) continue;
      series.low.push_back(bands_[c].first[i].value);
      series.high.push_back(bands_[c].second[i].value);
    }
    out.series.push_back(std::move(series));
  }
  return out;
}

void Chart::add_band(const std::vector<Point>& low, const std::vector<Point>& high) { bands_.emplace_back(low, high); }

std::string Chart::size_axis() const {
  std::vector<Tick> ticks;
  for (const auto size : size_ticks(sizes_, k_most_sizes)) ticks.push_back({x(size), to_string(size)});
  std::string out;
  constexpr double k_bottom = k_chart_top + k_plot_height;
  for (const auto& tick : without_collisions(
           ticks, [](const Tick& t) { return label_width(t.label); }, 8))
    out +=
        line(tick.at, k_chart_top, tick.at, k_bottom, "grid") + tick_text(tick.at, k_bottom + 19, "middle", tick.label);
  return out + tick_text(k_chart_left + k_plot_width / 2, k_chart_height - 8, "middle", "message size");
}

std::string Chart::value_axis() const {
  const auto range = value_range();
  const double step = is_log_ ? std::max(1.0, std::ceil((range.high - range.low) / k_most_decades))
                              : round_step(range.high, k_linear_steps);
  std::vector<Tick> ticks;
  for (int i = 0; range.low + i * step <= range.high + 1e-9 * step; ++i) {
    const double at = range.low + i * step;
    ticks.push_back({y(is_log_ ? std::pow(10, at) : at), label_(is_log_ ? std::pow(10, at) : at)});
  }
  std::string out;
  for (const auto& tick : without_collisions(
           ticks, [](const Tick&) { return 13.0; }, 2))
    out += line(k_chart_left, tick.at, k_chart_left + k_plot_width, tick.at, "grid") +
           tick_text(k_chart_left - 6, tick.at + 4, "end", tick.label);
  if (mark_ > 0) out += line(k_chart_left, y(mark_), k_chart_left + k_plot_width, y(mark_), "axis");
  const double middle = k_chart_top + k_plot_height / 2;
  return out + fmt::format(
                   "<text transform=\"translate(14 {:.1f}) rotate(-90)\" class=\"tick\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   middle, escaped(name_));
}

std::string Chart::points_of(const std::vector<Point>& points) const {
  std::string out;
  for (const auto& point : points) out += fmt::format("{:.1f},{:.1f} ", x(point.size), y(point.value));
  return out;
}

std::string Chart::svg() const {
  if (sizes_.empty()) return "";
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", k_chart_width,
                                k_chart_height, escaped(title_));
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", k_chart_left,
                     k_chart_top, k_plot_width, k_plot_height);
  out += size_axis() + value_axis();
  for (const auto& [low, high] : bands_)
    out += fmt::format("<polygon points=\"{}{}\" class=\"band\"/>\n", points_of(high),
                       points_of({low.rbegin(), low.rend()}));
  for (const auto& curve : curves_) {
    out += fmt::format("<polyline points=\"{}\" class=\"curve\" style=\"stroke:{}\"/>\n", points_of(curve.points),
                       curve.colour);
    for (const auto& point : curve.points) {
      if (!point.note.empty() || curve.points.size() == 1)
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" style=\"fill:{}\"><title>{}</title></circle>\n",
                           x(point.size), y(point.value), curve.colour, escaped(point.note));
    }
  }
  return out + "</svg>\n";
}

}  // namespace fabricast::report
