// SPDX-License-Identifier: Apache-2.0
#include "fit/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fabricast::fit {

namespace {

constexpr std::size_t k_around = 5;  ///< rows a line is laid through

/// Distance of the middle one of five from the line of median slope through their median (Theil and Sen).
double off_the_line(const double* rows) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < k_around; ++i) {
    for (std::size_t j = i + 1; j < k_around; ++j) slopes.push_back((rows[j] - rows[i]) / static_cast<double>(j - i));
  }
  const double slope = percentile(std::move(slopes), 0.5);
  std::vector<double> level;
  for (std::size_t i = 0; i < k_around; ++i)
    level.push_back(rows[i] - slope * (static_cast<double>(i) - static_cast<double>(k_around / 2)));
  return std::abs(rows[k_around / 2] - percentile(std::move(level), 0.5));
}

}  // namespace

double noise_floor(const std::vector<double>& residuals) {
  // Median of the distance for normal rows of deviation 1, by drawing 60,000 of them.
  constexpr double k_normal = 0.393;
  std::vector<double> scatter;
  for (std::size_t i = 0; i + k_around <= residuals.size(); ++i) scatter.push_back(off_the_line(&residuals[i]));
  return scatter.empty() ? 0 : percentile(std::move(scatter), 0.5) / k_normal;
}

void mark_outliers(std::vector<CalibrationPoint>& points, double limit) {
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const double before = points[i].relative_error - points[i - 1].relative_error;
    const double after = points[i].relative_error - points[i + 1].relative_error;
    points[i].is_outlier = std::min(std::abs(before), std::abs(after)) > limit && before * after > 0;
  }
}

std::vector<RegimeChange> regime_changes(const std::vector<CalibrationPoint>& points, double limit) {
  std::vector<RegimeChange> out;
  for (std::size_t i = 2; i + 1 < points.size(); ++i) {
    const auto error = [&](std::size_t k) { return points[k].relative_error; };
    const double before = (error(i - 2) + error(i - 1)) / 2;
    const double after = (error(i) + error(i + 1)) / 2;
    // Steady on both sides, and a step between them.
    const bool is_steady =
        std::abs(error(i - 2) - error(i - 1)) < limit / 2 && std::abs(error(i) - error(i + 1)) < limit / 2;
    if (!is_steady || std::abs(after - before) < limit) continue;
    RegimeChange change{points[i].log, points[i].size, after - before, {}};
    change.description = points[i].regime == points[i - 1].regime
                             ? fmt::format("the measurement changes regime, the model stays with {}", points[i].regime)
                             : fmt::format("the model changes from {} to {}", points[i - 1].regime, points[i].regime);
    out.push_back(std::move(change));
  }
  return out;
}

ErrorClass error_class(std::string name, const std::vector<CalibrationPoint>& points) {
  std::vector<ValidationPoint> plain;
  for (const auto& point : points) {
    ValidationPoint one;
    one.relative_error = point.relative_error;
    one.is_inside_band = point.low <= point.measured && point.measured <= point.high;
    plain.push_back(std::move(one));
  }
  return {std::move(name), summarize(std::span<const ValidationPoint>(plain))};
}

}  // namespace fabricast::fit
