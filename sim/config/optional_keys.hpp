// SPDX-License-Identifier: Apache-2.0
// Keys that may be left out: `into` stays as it is then.
#pragma once

#include <optional>

#include "config/schema.hpp"

namespace fabricast::config {

inline void read_flag(const Node& node, const char* key, bool& into) {
  if (const auto* found = node.find(key)) into = as_flag(*found);
}

inline void read_size(const Node& node, const char* key, std::optional<Bytes>& into) {
  if (const auto* found = node.find(key)) into = as_size(*found);
}

inline void read_number(const Node& node, const char* key, std::optional<double>& into) {
  if (const auto* found = node.find(key)) into = as_quantity(*found, Dimension::number);
}

inline void read_time(const Node& node, const char* key, std::optional<Duration>& into) {
  if (const auto* found = node.find(key)) into = from_seconds(as_quantity(*found, Dimension::time));
}

inline void read_rate(const Node& node, const char* key, std::optional<Bandwidth>& into) {
  if (const auto* found = node.find(key)) into = Bandwidth{as_quantity(*found, Dimension::bandwidth)};
}

}  // namespace fabricast::config
