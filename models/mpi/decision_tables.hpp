// SPDX-License-Identifier: Apache-2.0
// Tables by which libraries pick algorithms, and how they are read.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/assert.hpp"
#include "mpi/schedule.hpp"
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

/// What a letter of a table names.
inline CollectiveAlgorithm algorithm_of(char letter, Benchmark benchmark) {
  switch (letter) {
    case 'N':
      if (benchmark == Benchmark::osu_scatter) return CollectiveAlgorithm::linear_nb;
      return benchmark == Benchmark::osu_reduce_scatter ? CollectiveAlgorithm::reduce_scatter
                                                        : CollectiveAlgorithm::reduce_broadcast;
    case 'D':
      return CollectiveAlgorithm::recursive_doubling;
    case 'R':
      return CollectiveAlgorithm::ring;
    case 'S':
      if (benchmark == Benchmark::osu_gather) return CollectiveAlgorithm::linear_sync;
      return benchmark == Benchmark::osu_alltoall ? CollectiveAlgorithm::linear : CollectiveAlgorithm::ring;
    case 'B':
      return benchmark == Benchmark::osu_allreduce || benchmark == Benchmark::osu_reduce
                 ? CollectiveAlgorithm::rabenseifner
                 : CollectiveAlgorithm::bruck;
    case 'L':
      return CollectiveAlgorithm::linear;
    case 'C':
    case 'P':
      return CollectiveAlgorithm::chain;
    case 'T':
      return CollectiveAlgorithm::split_binary;
    case 'Y':
    case 'O':
      return CollectiveAlgorithm::binary;
    case 'M':
      return CollectiveAlgorithm::binomial;
    case 'K':
      return CollectiveAlgorithm::knomial;
    case 'G':
      return CollectiveAlgorithm::scatter_doubling;
    case 'H':
      return CollectiveAlgorithm::recursive_halving;
    case 'F':
      return benchmark == Benchmark::osu_barrier ? CollectiveAlgorithm::dissemination : CollectiveAlgorithm::butterfly;
    case 'A':
      return CollectiveAlgorithm::scatter_allgather;
    case 'W':
      return CollectiveAlgorithm::pairwise;
    case 'E':
      return CollectiveAlgorithm::neighbor_exchange;
    default:
      break;
  }
  FABRICAST_ASSERT(false, "'{}' is no letter of a decision table", letter);
  return CollectiveAlgorithm::ring;
}

/// What algorithms do that cannot work on so few elements or on such a number of ranks.
inline CollectiveAlgorithm fallen_back(CollectiveAlgorithm algorithm, Benchmark benchmark, int n, std::int64_t size) {
  const auto elements = size / k_float;
  if (benchmark == Benchmark::osu_allreduce && algorithm == CollectiveAlgorithm::ring && elements < n)
    return CollectiveAlgorithm::recursive_doubling;
  if (benchmark == Benchmark::osu_allreduce && algorithm == CollectiveAlgorithm::rabenseifner &&
      elements < schedules::floor_power_of_two(n))
    return CollectiveAlgorithm::reduce_broadcast;
  if (benchmark == Benchmark::osu_reduce && algorithm == CollectiveAlgorithm::rabenseifner &&
      elements < schedules::floor_power_of_two(n))
    return CollectiveAlgorithm::linear;
  if (benchmark == Benchmark::osu_allgather && algorithm == CollectiveAlgorithm::recursive_doubling &&
      !is_power_of_two(n))
    return CollectiveAlgorithm::bruck;
  if (algorithm == CollectiveAlgorithm::neighbor_exchange && n % 2 != 0) return CollectiveAlgorithm::ring;
  const bool is_scattered =
      algorithm == CollectiveAlgorithm::scatter_doubling || algorithm == CollectiveAlgorithm::scatter_allgather;
  if (is_scattered && size < n) return CollectiveAlgorithm::linear;
  if (algorithm == CollectiveAlgorithm::scatter_doubling && !is_power_of_two(n))
    return CollectiveAlgorithm::scatter_allgather;
  return algorithm;
}

}  // namespace fabricast::models::mpi
