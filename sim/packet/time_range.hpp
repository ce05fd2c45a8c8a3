// SPDX-License-Identifier: Apache-2.0
// Why the engine's sums of picoseconds cannot overflow: the clock never passes k_last_time, what is added to it is
// never longer than k_longest_step, and no more than four steps are added at once. validate() refuses networks with
// longer steps, and what starts later than k_last_time never does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fabricast/units.hpp"

namespace fabricast::packet {

inline constexpr std::int64_t k_last_time = INT64_MAX / 2;             ///< 53 days
inline constexpr std::int64_t k_longest_step = std::int64_t{1} << 60;  ///< 13 days
inline constexpr Bandwidth k_least_rate{1e3};                          ///< 4 MB of pause quanta take 70 minutes
inline constexpr Bytes k_largest_buffer{std::int64_t{1} << 50};        ///< and thresholds of up to
inline constexpr double k_largest_alpha = 4096;                        ///< times it
inline constexpr std::int64_t k_most_packets = std::int64_t{1} << 31;  ///< of one queue pair: their numbers are 32 bit

/// A start that is not seen is as good as any later one.
constexpr std::int64_t within_range(Duration start) { return std::min(start.ps, k_last_time + 1); }

/// How often something is looked at.
constexpr std::int64_t as_step(Duration interval) { return std::min(interval.ps, k_longest_step); }

}  // namespace fabricast::packet
