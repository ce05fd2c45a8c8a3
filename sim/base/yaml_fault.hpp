// SPDX-License-Identifier: Apache-2.0
// Why a text is no YAML, in words for whoever wrote it. The parser says where it gave up, which is often the line after
// the slip, and accepts quotes that nothing closes: this looks for the slip.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

struct YamlFault {
  int line = 0;  ///< from 1
  int column = 0;
  std::string message;
  std::string hint;
};

/// A quote that is still open at the end of the text.
std::optional<YamlFault> unclosed_quote(const std::vector<std::string>& lines);

/// `said`: the parser's message, with the place (from 1) at which it gave up.
YamlFault yaml_fault(const std::vector<std::string>& lines, std::string_view said, int line, int column);

}  // namespace fabricast
