// SPDX-License-Identifier: Apache-2.0
#include "fabricast/units.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast {

namespace {

constexpr double k_ps_per_s = 1e12;

}  // namespace

Duration from_seconds(double seconds) { return {range::whole(std::round(seconds * k_ps_per_s))}; }

Duration from_seconds_up(double seconds) {
  const double ps = seconds * k_ps_per_s;
  return {range::whole(std::ceil(ps - 1e-9 * std::max(1.0, ps)))};
}

Bytes to_bytes(double bytes) { return {range::whole(std::round(bytes))}; }

Duration transfer_time(Bytes size, Bandwidth rate) {
  if (size.is_past_range() || !(rate.bytes_per_s > 0)) return {range::k_past_range};
  return {range::whole(std::ceil(static_cast<double>(size.value) / rate.bytes_per_s * k_ps_per_s))};
}

Bandwidth average_rate(Bytes size, Duration time) {
  if (time.ps <= 0) return {0};
  return {static_cast<double>(size.value) / time.seconds()};
}

}  // namespace fabricast
