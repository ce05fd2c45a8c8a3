// SPDX-License-Identifier: Apache-2.0
#include "engine/interval.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast::engine {

namespace {

/// Relative half width assumed for a parameter that carries no interval, by how well its value is known.
double relative_half_width(Confidence confidence) {
  switch (confidence) {
    case Confidence::high:
      return 0.03;
    case Confidence::medium:
      return 0.10;
    case Confidence::low:
      return 0.30;
    case Confidence::assumed:
      return 0.50;
    case Confidence::fitted:
      return 0.05;
  }
  return 0.10;
}

}  // namespace

Interval interval(const Row& row, const ParameterSet& parameters) {
  const double time = row.time.seconds();
  double below = 0;
  double above = 0;
  for (const auto& term : row.terms) {
    const auto* parameter = parameters.find(term.parameter);
    if (parameter == nullptr || parameter->value == 0) continue;
    double low = relative_half_width(parameter->confidence);
    double high = low;
    if (parameter->has_interval()) {
      low = (parameter->value - parameter->low) / std::abs(parameter->value);
      high = (parameter->high - parameter->value) / std::abs(parameter->value);
    }
    // More of a rate is less time, more of a time is more time.
    if (parameter->dimension == Dimension::bandwidth) std::swap(low, high);
    below += std::pow(low * term.time.seconds(), 2);
    above += std::pow(high * term.time.seconds(), 2);
  }
  const auto* model = parameters.find("model.relative_error");
  const double own = model == nullptr ? 0 : model->value * time;
  below = std::sqrt(below + own * own);
  above = std::sqrt(above + own * own);
  return {from_seconds(std::max(0.0, time - below)), from_seconds(time + above)};
}

}  // namespace fabricast::engine
