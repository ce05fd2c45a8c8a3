// SPDX-License-Identifier: Apache-2.0
#include "validate/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace fabricast::validate_detail {

namespace {

constexpr double k_explains = 2.0 / 3;  ///< of the median error may be left
constexpr double k_worth = 0.02;        ///< median error; less is what two runs of one test differ by (`noise`)
constexpr int k_steps = 32;             ///< of the factor, from a quarter to four times
constexpr std::size_t k_worst_shown = 5;

/// Seconds of each parameter at each point.
std::map<std::string, std::vector<double>> shares(const WorkloadPrediction& prediction,
                                                  const std::vector<ValidationPoint>& points) {
  std::map<Bytes, const Row*> rows;
  for (const auto& row : prediction.rows) rows[key_of(prediction, row)] = &row;
  std::map<std::string, std::vector<double>> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto& term : rows.at(points[i].size)->terms) {
      auto& seconds = out[term.parameter.empty() ? term.name : term.parameter];
      seconds.resize(points.size(), 0);
      seconds[i] += term.time.seconds();
    }
  }
  return out;
}

double median_error(const std::vector<ValidationPoint>& points, const std::vector<double>& seconds, double factor) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double predicted = std::max(0.0, points[i].predicted.seconds() + (factor - 1) * seconds[i]);
    errors.push_back(std::abs(predicted / points[i].measured.seconds() - 1));
  }
  return percentile(errors, 0.5);
}

}  // namespace

std::optional<Explanation> explain_misfit(const WorkloadPrediction& prediction,
                                          const std::vector<ValidationPoint>& points) {
  if (points.empty()) return std::nullopt;
  Explanation best;
  const double unscaled = median_error(points, std::vector<double>(points.size(), 0), 1);
  if (unscaled < k_worth) return std::nullopt;
  best.median_abs_error = unscaled;
  for (const auto& [parameter, seconds] : shares(prediction, points)) {
    for (int step = -k_steps / 2; step <= k_steps / 2; ++step) {
      const double factor = std::exp2(4.0 * step / k_steps);
      const double error = median_error(points, seconds, factor);
      if (error >= best.median_abs_error) continue;
      best.parameter = parameter;
      best.factor = factor;
      best.median_abs_error = error;
    }
  }
  if (best.parameter.empty() || best.median_abs_error > k_explains * unscaled) return std::nullopt;
  auto worst = points;
  std::stable_sort(worst.begin(), worst.end(), [](const auto& a, const auto& b) {
    return std::abs(a.relative_error) > std::abs(b.relative_error);
  });
  for (std::size_t i = 0; i < std::min(k_worst_shown, worst.size()); ++i) best.worst_sizes.push_back(worst[i].size);
  return best;
}

}  // namespace fabricast::validate_detail
