// SPDX-License-Identifier: Apache-2.0
// Tables by which libraries pick algorithms, and how they are read.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/assert.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::mpi {

inline constexpr int k_any = std::numeric_limits<int>::max();
inline constexpr std::int64_t k_float = 4;  ///< bytes of an element of OSU's reductions

/// Below `ranks`: sizes and letters, "8R 4kD *B" = below 8 B R, else below 4 KiB D, else B.
struct Rule {
  int ranks;
  std::string_view sizes;
};

inline std::int64_t size_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  FABRICAST_ASSERT(error == std::errc{}, "'{}' is no size of a decision table", text);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return unit == "k" ? value << 10 : unit == "M" ? value << 20 : value;
}

/// The letter for so many ranks and bytes; more ranks than any rule names take the last one.
inline char letter(std::span<const Rule> rules, int ranks, std::int64_t size) {
  auto rule = rules.begin();
  while (rule + 1 != rules.end() && ranks >= rule->ranks) ++rule;
  auto rest = rule->sizes;
  while (true) {
    const auto word = rest.substr(0, rest.find(' '));
    const auto limit = word.substr(0, word.size() - 1);
    if (limit == "*" || size < size_in(limit)) return word.back();
    rest.remove_prefix(word.size() + 1);
  }
}

inline bool is_power_of_two(int n) { return schedules::floor_power_of_two(n) == n; }

}  // namespace fabricast::models::mpi
