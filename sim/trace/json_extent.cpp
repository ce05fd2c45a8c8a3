// SPDX-License-Identifier: Apache-2.0
#include "trace/reading.hpp"

namespace fabricast::trace {

JsonExtent json_extent(std::string_view text, std::size_t begin, std::size_t most_levels) {
  std::size_t depth = 0;
  bool is_word = false;
  for (auto i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (is_word) {
      if (c == '\\') ++i;
      if (c == '"') is_word = false;
    } else if (c == '"') {
      is_word = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most_levels) return {std::string_view::npos, true};
    } else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
      return {i + 1, false};
    }
  }
  return {std::string_view::npos, false};
}

}  // namespace fabricast::trace
