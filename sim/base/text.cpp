// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

namespace fabricast {

std::string quantity_text(double value, Dimension dimension, int digits) {
  switch (dimension) {
    case Dimension::bytes:
      return to_string(Bytes{static_cast<std::int64_t>(value)});
    case Dimension::time:
      return to_string(from_seconds(value));
    case Dimension::bandwidth:
      return to_string(Bandwidth{value});
    case Dimension::number:
      return fmt::format("{:.{}g}", value, digits);
  }
  return "";
}

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace fabricast
