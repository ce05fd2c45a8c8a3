// SPDX-License-Identifier: Apache-2.0
// The ranges that declared keys share; the two halves of their table are parameter_table_software.hpp and
// parameter_table_system.hpp.
#pragma once

#include <array>

#include "base/parameter_keys.hpp"

namespace fabricast::parameter_table {

inline constexpr double k_count = 1e6;

constexpr ParameterRange declared(double low, double high, std::string_view what) { return {low, high, what, true}; }
/// The same of rates and of what is reached of a rate.
constexpr ParameterRange declared_rate(double low, double high, std::string_view what) {
  return {low, high, what, true, true};
}
constexpr ParameterRange count(double low, double high) { return declared(low, high, "a count"); }

inline constexpr auto k_share = declared(1e-3, 1, "a share above 0");
inline constexpr auto k_share_or_none = declared(0, 1, "a share");
inline constexpr auto k_switch = declared(0, 1, "0 or 1");
inline constexpr auto k_rate_share = declared_rate(1e-3, 1, "a share above 0");
inline constexpr auto k_efficiency = declared_rate(0.01, 1, "a share above 0");
inline constexpr auto k_factor = declared(0, 100, "a factor");
inline constexpr auto k_threshold_factor = declared(1e-4, 1024, "a factor above 0");
inline constexpr auto k_rate_or_no_limit = declared_rate(0, 1e15, "a rate, 0 for no limit");
inline constexpr auto k_part_size = declared(1, 1.2e18, "a size above 0");
inline constexpr auto k_minutes = declared(0, 1e6, "a time");
inline constexpr auto k_support = declared(0, 10'000, "0 or 1, a count or a release");

inline constexpr auto N = Dimension::number;
inline constexpr auto T = Dimension::time;
inline constexpr auto R = Dimension::bandwidth;
inline constexpr auto B = Dimension::bytes;

}  // namespace fabricast::parameter_table
