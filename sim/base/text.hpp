// SPDX-License-Identifier: Apache-2.0
// Values and words as files and tables show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/units.hpp"

namespace fabricast {

/// A value in SI base units with the unit that suits its size; plain numbers with `digits` significant digits.
std::string quantity_text(double value, Dimension dimension, int digits);

/// `text` with the letters A to Z in lower case.
std::string lower(std::string_view text);

/// The parts of `text` between blanks, tabs and carriage returns.
std::vector<std::string_view> words_of(std::string_view text);

/// Length of the UTF-8 character that `text` begins with [RFC 3629]; 0 when it begins with none.
std::size_t utf8_character(std::string_view text);

/// Where the first byte is that belongs to no UTF-8 character; npos when all do.
std::size_t first_not_utf8(std::string_view text);

/// Where the first character is that does something to a terminal instead of being shown: C0, DEL, C1, line separators
/// and what turns the direction of writing. npos when there is none.
std::size_t first_control(std::string_view text);

enum class Keep { nothing, lines };  ///< lines: line ends and tabs stay as they are

/// `text` as it can be shown: control characters as `\x1b` or `\u202e`, bytes that are no UTF-8 as U+FFFD.
std::string printable(std::string_view text, Keep keep = Keep::nothing);

/// The part of a source line that a message shows: at most 160 bytes around the column (from 1), dots where it is cut.
struct Excerpt {
  std::string text;
  int column = 0;  ///< in `text`
};
Excerpt excerpt_of(std::string_view line, int column);

/// `text` as a double-quoted YAML scalar.
std::string yaml_quoted(std::string_view text);

}  // namespace fabricast
