// SPDX-License-Identifier: Apache-2.0
// Predicted and measured curves with the band, and the errors below them, as SVG drawn here and as one HTML file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr double k_width = 820, k_left = 96, k_right = 40, k_curve = 280, k_error = 130, k_gap = 46, k_top = 34,
                 k_notes = 62;

/// Places of one log's points; both axes of the curves are logarithmic, errors are linear.
class Panel {
 public:
  Panel(const Validation& log, double top) : log_(log), top_(top) {
    for (const auto& p : log.points) {
      const double size = std::log2(static_cast<double>(std::max<std::int64_t>(1, p.size.value)));
      size_low_ = std::min(size_low_, size);
      size_high_ = std::max(size_high_, size);
      for (const auto t : {p.low, p.high, p.measured}) {
        const double time = log_time(t);
        time_low_ = std::min(time_low_, time);
        time_high_ = std::max(time_high_, time);
      }
      error_ = std::max(error_, std::min(2.0, std::abs(p.relative_error)));
    }
    if (size_high_ <= size_low_) {  // one size stands in the middle
      size_low_ -= 0.5;
      size_high_ = size_low_ + 1;
    }
    if (time_high_ <= time_low_) time_high_ = time_low_ + 1;
  }

  [[nodiscard]] std::string svg() const {
    std::string out = fmt::format("<text x=\"{}\" y=\"{:.1f}\" class=\"legend\" font-weight=\"bold\">{}</text>\n",
                                  k_left, top_ + 16, escaped(log_.file.substr(log_.file.rfind('/') + 1)));
    out += frame(top_ + k_top, k_curve) + frame(error_top(), k_error) + grid() + band();
    std::string predicted;
    for (const auto& p : log_.points) predicted += places(x(p), y(p.predicted));
    out += fmt::format("<polyline class=\"predicted curve\" points=\"{}\"/>\n", predicted);
    for (const auto& p : log_.points) {
      out += fmt::format("<circle class=\"measured\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" style=\"fill:var(--bad)\"/>\n",
                         x(p), y(p.measured));
      const double zero = error_y(0);
      const double tip = error_y(p.relative_error);
      out += fmt::format(
          "<rect class=\"error\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"5\" height=\"{:.1f}\" style=\"fill:{}\"/>\n",
          x(p) - 2.5, std::min(zero, tip), std::max(0.5, std::abs(tip - zero)),
          p.is_inside_band ? "var(--c0)" : "var(--bad)");
    }
    return out + labels();
  }

  static double height() { return k_top + k_curve + k_gap + k_error + k_notes; }

 private:
  [[nodiscard]] double error_top() const { return top_ + k_top + k_curve + k_gap; }
  [[nodiscard]] double x_of(double log_size) const {
    return k_left + (log_size - size_low_) / (size_high_ - size_low_) * (k_width - k_left - k_right);
  }
  [[nodiscard]] double x(const ValidationPoint& p) const {
    return x_of(std::log2(static_cast<double>(std::max<std::int64_t>(1, p.size.value))));
  }
  [[nodiscard]] double y_of(double log_time) const {
    return top_ + k_top + (time_high_ - log_time) / (time_high_ - time_low_) * k_curve;
  }
  /// What does not fit into a duration lies on the upper edge.
  static double log_time(Duration time) {
    constexpr double shortest = 1e-12, longest = 1e7;
    return std::log10(std::clamp(time.seconds(), shortest, longest));
  }
  [[nodiscard]] double y(Duration time) const { return y_of(log_time(time)); }
  [[nodiscard]] double error_y(double error) const {
    return error_top() + (1 - std::clamp(error / error_, -1.0, 1.0)) / 2 * k_error;
  }
  static std::string frame(double top, double height) {
    return fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", k_left, top,
                       k_width - k_left - k_right, height);
  }
  /// A point of a line; a line of one point is as wide as a mark, from its left to its right, or back.
  [[nodiscard]] std::string places(double at_x, double at_y, int direction = 1) const {
    constexpr double k_half_mark = 12;
    if (log_.points.size() > 1) return fmt::format("{:.1f},{:.1f} ", at_x, at_y);
    return fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", at_x - direction * k_half_mark, at_y,
                       at_x + direction * k_half_mark, at_y);
  }
  [[nodiscard]] std::string band() const {
    std::string points;
    for (const auto& p : log_.points) points += places(x(p), y(p.low));
    for (auto p = log_.points.rbegin(); p != log_.points.rend(); ++p) points += places(x(*p), y(p->high), -1);
    return fmt::format("<polygon class=\"band\" points=\"{}\"/>\n", points);
  }
  static std::string text(double at_x, double at_y, const char* anchor, const std::string& words) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"tick\" text-anchor=\"{}\">{}</text>\n", at_x, at_y,
                       anchor, escaped(words));
  }
  static std::string line(double x1, double y1, double x2, double y2) {
    return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" class=\"grid\"/>\n", x1, y1, x2, y2);
  }
  /// Lines and labels at round sizes and times, as many as there is room for.
  [[nodiscard]] std::string grid() const {
    std::string out;
    const double bottom = top_ + k_top + k_curve;
    std::vector<Bytes> sizes;
    for (const auto& point : log_.points) sizes.push_back(point.size);
    std::vector<Tick> ticks;
    for (const auto size : size_ticks(sizes, 9))
      ticks.push_back({x_of(std::log2(static_cast<double>(std::max<std::int64_t>(1, size.value)))), to_string(size)});
    for (const auto& tick : without_collisions(
             ticks, [](const Tick& t) { return label_width(t.label); }, 8))
      out += line(tick.at, top_ + k_top, tick.at, bottom) + line(tick.at, error_top(), tick.at, error_top() + k_error) +
             text(tick.at, bottom + 19, "middle", tick.label);
    for (const auto& tick : without_collisions(
             time_ticks(), [](const Tick&) { return 13.0; }, 4))
      out += line(k_left, tick.at, k_width - k_right, tick.at) + text(k_left - 6, tick.at + 4, "end", tick.label);
    return out + line(k_left, error_y(0), k_width - k_right, error_y(0));
  }
  /// Decades, or 1, 2 and 5 of each when there are few; the ends when no round time lies between them.
  [[nodiscard]] std::vector<Tick> time_ticks() const {
    std::vector<Tick> ticks;
    const auto add = [&](double at) { ticks.push_back({y_of(at), to_string(from_seconds(std::pow(10, at)))}); };
    const bool has_decades = time_high_ - time_low_ > 1.3;
    for (int decade = static_cast<int>(std::floor(time_low_)); decade <= time_high_; ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double at = decade + std::log10(digit);
        if ((!has_decades || digit == 1) && at >= time_low_ && at <= time_high_) add(at);
      }
    }
    if (ticks.size() >= 2) return ticks;
    ticks.clear();
    add(time_low_);
    add(time_high_);
    return ticks;
  }
  static std::string axis_name(double middle, const char* words) {
    return fmt::format(
        "<text transform=\"translate(14 {:.1f}) rotate(-90)\" class=\"tick\" text-anchor=\"middle\">{}</text>\n",
        middle, words);
  }
  [[nodiscard]] std::string labels() const {
    std::string out = axis_name(top_ + k_top + k_curve / 2, "time") + axis_name(error_top() + k_error / 2, "error");
    for (const double share : {1.0, 0.0, -1.0}) {
      const auto words = share == 0 ? "0 %" : fmt::format("{:+.0f} %", 100 * share * error_);
      out += text(k_left - 6, error_y(share * error_) + 4, "end", words);
    }
    const double below = error_top() + k_error;
    return out +
           text(
               k_left, below + 20, "start",
               "line: predicted; dots: measured; shade: 80 % band; bars: error by message size, red outside the band") +
           text(k_left, below + 38, "start",
                fmt::format("median {:.1f} %, bias {:+.1f} %, in band {:.0f} %", 100 * log_.summary.median_abs_error,
                            100 * log_.summary.bias, 100 * log_.summary.interval_coverage));
  }

  const Validation& log_;
  double top_;
  double size_low_ = 1e9, size_high_ = -1e9, time_low_ = 1e9, time_high_ = -1e9, error_ = 0.05;
};

std::string panels(std::span<const Validation> logs, const std::string& style) {
  double height = 10;
  std::string out;
  for (const auto& log : logs) {
    if (log.points.empty()) continue;  // tuning lines alone
    out += Panel(log, height - 10).svg();
    height += Panel::height();
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" {2}font-family=\"sans-serif\" "
             "font-size=\"12\" role=\"img\" aria-label=\"predicted and measured time over message size\">\n",
             k_width, height, style.empty() ? "" : fmt::format("width=\"{}\" height=\"{:.0f}\" ", k_width, height)) +
         style + out + "</svg>\n";
}

}  // namespace

std::string validation_svg(const Validated& validated) {
  return panels(validated.logs, fmt::format("<style>{}</style>\n<rect width=\"100%\" height=\"100%\" "
                                            "style=\"fill:var(--paper)\"/>\n",
                                            k_colour_style));
}

std::string validation_html(const Validated& validated) {
  return page(validated.scenario,
              fmt::format("<h1>Predicted against measured: {}</h1>\n{}<pre>{}</pre>\n", escaped(validated.scenario),
                          boxed("", panels(validated.logs, "")), escaped(validation_text(validated))) +
                  (validated.provenance == nullptr ? std::string()
                                                   : "<h2>Provenance</h2>\n" + provenance_html(*validated.provenance)) +
                  embedded_json(validation_json(validated)));
}

}  // namespace fabricast::report
