// SPDX-License-Identifier: Apache-2.0
// What the readers of traces share: limits, faults, and the nodes of Chakra before they are operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/trace.hpp"

namespace fabricast::trace {

inline constexpr std::size_t k_most_bytes = std::size_t{256} << 20;
inline constexpr std::size_t k_most_ops = 4'000'000;
inline constexpr std::size_t k_most_ranks = 65'536;
inline constexpr std::int64_t k_longest_us = 1'000'000'000'000;        ///< 11 days
inline constexpr std::int64_t k_most_message = std::int64_t{1} << 50;  ///< bytes

/// A node of et_def.proto, as far as a replay reads it.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  int type = 0;
  std::int64_t microseconds = 0;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::string> attributes;  ///< numbers and truth values as text
  SourceLocation place;
};

/// Where a JSON object or list ends, found before it is parsed.
struct JsonExtent {
  std::size_t end = std::string_view::npos;  ///< one past it; npos = cut off, or too deep
  bool is_deep = false;                      ///< more levels than allowed
};
/// Of the one that begins at `begin`.
JsonExtent json_extent(std::string_view text, std::size_t begin, std::size_t most_levels);

bool is_chakra_binary(std::string_view text);
/// Nodes of one rank's file, protobuf or JSON.
Result<std::vector<ChakraNode>> read_chakra_binary(const TraceFile& file);
Result<std::vector<ChakraNode>> read_chakra_json(const TraceFile& file);
/// Nodes to operations of rank `rank`.
Result<std::vector<TraceOp>> chakra_ops(const std::vector<ChakraNode>& nodes, const TraceFile& file, int rank);
Result<Trace> read_goal(const TraceFile& file);

inline tl::unexpected<Diagnostics> fault(const SourceLocation& where, std::string message, std::string hint = {}) {
  return tl::unexpected(Diagnostics{make_error_at(where, std::move(message), std::move(hint))});
}

}  // namespace fabricast::trace
