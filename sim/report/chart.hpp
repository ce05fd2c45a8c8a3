// SPDX-License-Identifier: Apache-2.0
// Curves over message size, as SVG: logarithmic sizes, logarithmic or linear values, labels that never touch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fabricast/units.hpp"
#include "report/plot.hpp"

namespace fabricast::report {

constexpr double k_chart_width = 820, k_chart_height = 360;
constexpr double k_chart_left = 96, k_chart_right = 40, k_chart_top = 16, k_chart_bottom = 54;

/// Width of a label in the pages' tick font (12 px sans serif), rather too wide than too narrow.
double label_width(const std::string& text);

/// A label at a place along one axis.
struct Tick {
  double at = 0;  ///< centre, in the picture's units
  std::string label;
};
/// Every one of them, else every second, third ...: the first such choice in which neighbours leave a gap of `gap`;
/// `extent` is a label's size along the axis.
std::vector<Tick> without_collisions(const std::vector<Tick>& ticks, const std::function<double(const Tick&)>& extent,
                                     double gap);

/// At most about `most` sizes to label: powers of two when there are two or more, else the sizes themselves.
std::vector<Bytes> size_ticks(const std::vector<Bytes>& sizes, int most);

/// The smallest of 1, 2, 2.5 or 5 times a power of ten that is `value` / `steps` or more: round labels.
double round_step(double value, int steps);

class Chart {
 public:
  /// `name` stands beside the value axis, `label` prints its ticks.
  Chart(std::string title, std::string name, std::function<std::string(double)> label);

  /// What the axes must hold.
  void include(Bytes size, double value);
  /// Linear from 0 to a round value, instead of whole decades.
  void start_at_zero() { is_log_ = false; }
  /// A further value to draw a line at, e.g. ratio 1.
  void mark(double value) { mark_ = value; }

  struct Point {
    Bytes size;
    double value = 0;
    std::string note;  ///< shown on hover; no dot when empty
  };
  void add_curve(const std::vector<Point>& points, const std::string& colour, const std::string& label = {});
  void add_band(const std::vector<Point>& low, const std::vector<Point>& high);
  [[nodiscard]] std::string svg() const;
  /// The same curves for a live plot; values are in `unit`.
  [[nodiscard]] Plot plot(const std::string& unit) const;

  [[nodiscard]] double x(Bytes size) const;
  [[nodiscard]] double y(double value) const;

 private:
  struct Range {
    double low = 1e300, high = -1e300;
  };
  [[nodiscard]] double position(double value) const;
  [[nodiscard]] Range value_range() const;
  [[nodiscard]] std::string size_axis() const;
  [[nodiscard]] std::string value_axis() const;
  [[nodiscard]] std::string points_of(const std::vector<Point>& points) const;

  std::string title_, name_;
  std::function<std::string(double)> label_;
  bool is_log_ = true;
  double mark_ = 0;  ///< 0 = none
  Range size_, value_;
  std::vector<Bytes> sizes_;
  struct Curve {
    std::vector<Point> points;
    std::string colour;
    std::string label;
  };
  std::vector<Curve> curves_;
  std::vector<std::pair<std::vector<Point>, std::vector<Point>>> bands_;
};

}  // namespace fabricast::report
