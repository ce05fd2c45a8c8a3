// SPDX-License-Identifier: Apache-2.0
#include "fit/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fabricast::fit {

double noise_floor(const std::vector<double>& residuals) {
  constexpr std::size_t k_aside = 2;
  // Median of |x - median of the five around it| for normal x of deviation 1, by drawing 400,000 of them.
  constexpr double k_normal = 0.491;
  std::vector<double> scatter;
  for (std::size_t i = k_aside; i + k_aside < residuals.size(); ++i) {
    const auto at = residuals.begin() + static_cast<std::ptrdiff_t>(i);
    scatter.push_back(std::abs(*at - percentile(std::vector<double>(at - k_aside, at + k_aside + 1), 0.5)));
  }
  return scatter.empty() ? 0 : percentile(scatter, 0.5) / k_normal;
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
