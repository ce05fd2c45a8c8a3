// SPDX-License-Identifier: Apache-2.0
#include "base/parameter_change.hpp"

#include <cmath>

namespace fabricast {

double relative_half_width(Confidence confidence) {
  switch (confidence) {
    case Confidence::high:
      return 0.03;
    case Confidence::medium:
      return 0.10;
    case Confidence::low:
    case Confidence::read_off:
      return 0.30;
    case Confidence::assumed:
      return 0.50;
    case Confidence::fitted:
      return 0.05;
  }
  return 0.10;
}

TimeChange change_of_time(const Parameter& parameter) {
  const double half = relative_half_width(parameter.confidence);
  if (!parameter.has_interval()) return {half, half};
  const double value = std::abs(parameter.value);
  if (parameter.is_rate && parameter.low > 0)
    return {1 - parameter.value / parameter.high, parameter.value / parameter.low - 1};
  const double below = (parameter.value - parameter.low) / value;
  const double above = (parameter.high - parameter.value) / value;
  return parameter.is_rate ? TimeChange{above, below} : TimeChange{below, above};
}

}  // namespace fabricast
