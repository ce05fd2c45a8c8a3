// SPDX-License-Identifier: Apache-2.0
// Predicted and measured curves with the band, and the errors below them, as SVG drawn here and as one HTML file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/report.hpp"

namespace fabricast::report {

namespace {

constexpr double k_width = 760, k_left = 80, k_right = 20, k_curve = 260, k_error = 130, k_gap = 46, k_top = 34;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

/// Places of one log's points; both axes of the curves are logarithmic, errors are linear.
class Panel {
 public:
  Panel(const Validation& log, double top) : log_(log), top_(top) {
    for (const auto& p : log.points) {
      const double size = std::log2(static_cast<double>(std::max<std::int64_t>(1, p.size.value)));
      size_low_ = std::min(size_low_, size);
      size_high_ = std::max(size_high_, size);
      for (const auto t : {p.low, p.high, p.measured}) {
        const double time = std::log10(std::max(1e-12, t.seconds()));
        time_low_ = std::min(time_low_, time);
        time_high_ = std::max(time_high_, time);
      }
      error_ = std::max(error_, std::min(2.0, std::abs(p.relative_error)));
    }
    if (size_high_ <= size_low_) size_high_ = size_low_ + 1;
    if (time_high_ <= time_low_) time_high_ = time_low_ + 1;
  }

  [[nodiscard]] std::string svg() const {
    std::string out = fmt::format("<text x=\"{}\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>\n", k_left, top_ + 16,
                                  escaped(log_.file.substr(log_.file.rfind('/') + 1)));
    out += grid() + frame(top_ + k_top, k_curve) + frame(error_top(), k_error) + band();
    std::string predicted;
    for (const auto& p : log_.points) predicted += fmt::format("{:.1f},{:.1f} ", x(p), y(p.predicted));
    out += fmt::format("<polyline class=\"predicted\" fill=\"none\" stroke=\"#1f5fa8\" points=\"{}\"/>\n", predicted);
    for (const auto& p : log_.points) {
      out += fmt::format("<circle class=\"measured\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#c03020\"/>\n", x(p),
                         y(p.measured));
      const double zero = error_y(0);
      const double tip = error_y(p.relative_error);
      out += fmt::format(
          "<rect class=\"error\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"5\" height=\"{:.1f}\" fill=\"{}\"/>\n", x(p) - 2.5,
          std::min(zero, tip), std::max(0.5, std::abs(tip - zero)), p.is_inside_band ? "#7a9cc6" : "#c03020");
    }
    return out + labels();
  }

  static double height() { return k_top + k_curve + k_gap + k_error + k_gap; }

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
  [[nodiscard]] double y(Duration time) const { return y_of(std::log10(std::max(1e-12, time.seconds()))); }
  [[nodiscard]] double error_y(double error) const {
    return error_top() + (1 - std::clamp(error / error_, -1.0, 1.0)) / 2 * k_error;
  }
  static std::string frame(double top, double height) {
    return fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n",
                       k_left, top, k_width - k_left - k_right, height);
  }
  [[nodiscard]] std::string band() const {
    std::string points;
    for (const auto& p : log_.points) points += fmt::format("{:.1f},{:.1f} ", x(p), y(p.low));
    for (auto p = log_.points.rbegin(); p != log_.points.rend(); ++p)
      points += fmt::format("{:.1f},{:.1f} ", x(*p), y(p->high));
    return fmt::format("<polygon class=\"band\" fill=\"#1f5fa8\" fill-opacity=\"0.15\" points=\"{}\"/>\n", points);
  }
  static std::string text(double at_x, double at_y, const char* anchor, const std::string& words) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y, anchor, words);
  }
  static std::string line(double x1, double y1, double x2, double y2) {
    return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#e2e8f0\"/>\n", x1, y1, x2, y2);
  }
  /// Lines and labels at round sizes (a factor of 4 to 1024 apart) and times (1, or 1, 2 and 5 per decade).
  [[nodiscard]] std::string grid() const {
    std::string out;
    const double bottom = top_ + k_top + k_curve;
    const int step = size_high_ - size_low_ > 12 ? 4 : 2;
    for (int at = static_cast<int>(std::ceil(size_low_ / step)) * step; at <= size_high_; at += step) {
      out += line(x_of(at), top_ + k_top, x_of(at), bottom) +
             line(x_of(at), error_top(), x_of(at), error_top() + k_error) +
             text(x_of(at), bottom + 15, "middle", to_string(Bytes{std::int64_t{1} << at}));
    }
    const bool has_decades = time_high_ - time_low_ > 1.3;
    for (int decade = static_cast<int>(std::floor(time_low_)); decade <= time_high_; ++decade) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double at = decade + std::log10(digit);
        if ((has_decades && digit > 1) || at < time_low_ || at > time_high_) continue;
        out += line(k_left, y_of(at), k_width - k_right, y_of(at)) +
               text(k_left - 6, y_of(at) + 4, "end", to_string(from_seconds(std::pow(10, at))));
      }
    }
    return out + line(k_left, error_y(0), k_width - k_right, error_y(0));
  }
  [[nodiscard]] std::string labels() const {
    std::string out;
    for (const double share : {1.0, 0.0, -1.0}) {
      const auto words = share == 0 ? "0 %" : fmt::format("{:+.0f} %", 100 * share * error_);
      out += text(k_left - 6, error_y(share * error_) + 4, "end", words);
    }
    return out + text(k_left, error_top() + k_error + 16, "start",
                      fmt::format("line: predicted, dots: measured, shade: 80 % band; bars: error, red outside the "
                                  "band; median {:.1f} %, bias {:+.1f} %, in band {:.0f} %",
                                  100 * log_.summary.median_abs_error, 100 * log_.summary.bias,
                                  100 * log_.summary.interval_coverage));
  }

  const Validation& log_;
  double top_;
  double size_low_ = 1e9, size_high_ = -1e9, time_low_ = 1e9, time_high_ = -1e9, error_ = 0.05;
};

}  // namespace

std::string validation_svg(const Validated& validated) {
  const double height = Panel::height() * static_cast<double>(validated.logs.size()) + 10;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n",
      k_width, height);
  double top = 0;
  for (const auto& log : validated.logs) {
    out += Panel(log, top).svg();
    top += Panel::height();
  }
  return out + "</svg>\n";
}

std::string validation_html(const Validated& validated) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>{0}</title><style>body{{font:14px system-ui,sans-serif;max-width:1000px;margin:2em "
      "auto;padding:0 1em;color:#1a202c}}h1{{font-size:20px}}pre{{font-size:12px;overflow-x:auto}}</style></head>\n"
      "<body>\n<h1>Predicted against measured: {0}</h1>\n",
      escaped(validated.scenario));
  return out + validation_svg(validated) +
         fmt::format("<pre>{}</pre>\n</body></html>\n", escaped(validation_text(validated)));
}

}  // namespace fabricast::report
