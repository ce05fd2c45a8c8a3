// SPDX-License-Identifier: Apache-2.0
// Descriptions of plots that a page draws alive: zoom, values under the cursor. A figure has its picture too, for paper
// and for readers without script.
#pragma once

#include <string>
#include <vector>

namespace fabricast::report {

struct PlotAxis {
  std::string label;
  std::string unit;  ///< bytes, us, s, GB/s, B/s, number, or a currency
  int log = 0;       ///< base of a logarithmic axis, 2 or 10; 0 = linear
  bool starts_at_zero = false;
};

struct PlotSeries {
  std::string label;
  std::string colour = "--c0";  ///< CSS variable
  bool is_line = true;
  bool is_faint = false;  ///< hollow points
  double size = 6;
  std::vector<double> x, y, low, high;  ///< low and high may be empty
  std::vector<std::string> notes;       ///< shown beside the nearest point
};

struct Plot {
  PlotAxis x, y;
  std::vector<PlotSeries> series;
};

/// The still picture of points and lines.
std::string picture_of(const Plot& plot);

/// A figure with its caption, its picture and the live plot.
std::string plotted(const std::string& caption, const std::string& picture, const Plot& plot);

/// `json` in a page, for other programs and for whoever wants to trace a figure.
std::string embedded_json(const std::string& json);

}  // namespace fabricast::report
