// SPDX-License-Identifier: Apache-2.0
#include "fabricast/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fabricast {

Duration from_seconds(double seconds) {
  constexpr double k_max_ps = 9.2e18;
  const double ps = seconds * 1e12;
  if (ps >= k_max_ps) return {std::numeric_limits<std::int64_t>::max()};
  if (ps <= -k_max_ps) return {std::numeric_limits<std::int64_t>::min()};
  return {std::llround(ps)};
}

Duration transfer_time(Bytes size, Bandwidth rate) {
  if (rate.bytes_per_s <= 0) return {std::numeric_limits<std::int64_t>::max()};
  const double ps = static_cast<double>(size.value) / rate.bytes_per_s * 1e12;
  if (ps >= 9.2e18) return {std::numeric_limits<std::int64_t>::max()};
  return {static_cast<std::int64_t>(std::ceil(ps))};
}

Bandwidth average_rate(Bytes size, Duration time) {
  if (time.ps <= 0) return {0};
  return {static_cast<double>(size.value) / time.seconds()};
}

}  // namespace fabricast
