// SPDX-License-Identifier: Apache-2.0
// The text of a log as its readers want it: numbered lines without line ends, carriage returns, byte order mark,
// terminal colours and mpirun's rank tags, and numbers that know how many digits they were printed with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "fabricast/diagnostic.hpp"

namespace fabricast::readers {

/// One line of the log, cleaned.
struct Line {
  int number = 0;  ///< 1-based, in the file
  std::string text;
  bool is_terminated = true;  ///< false for a last line without line end: its last word may be cut
};

/// A log split into lines, with the `# key: value` lines of a collected file apart.
struct LogText {
  std::string name;
  std::map<std::string, std::string> provenance;
  std::vector<Line> lines;
};

LogText split_log(std::string_view text, const std::string& name);

/// A word of a line and the column (from 0) it begins at.
struct Word {
  std::string_view text;
  std::size_t column = 0;
};
std::vector<Word> split_words(std::string_view line);

/// 0 to 9, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool contains(std::string_view text, std::string_view part);
std::string_view trim(std::string_view text);

/// A number as printed: `value`, give or take `half_unit` of its last digit.
struct Printed {
  double value = 0;
  double half_unit = 0;

  [[nodiscard]] double relative_rounding() const { return value > 0 ? half_unit / value : 1; }
};

/// A finite decimal number that fills the whole word ("12.5", "3e-07"); digit separators `_` are dropped.
std::optional<Printed> parse_printed(std::string_view word);
/// A whole number >= 0 that fills the whole word; digit separators `_` are dropped.
std::optional<std::int64_t> parse_count(std::string_view word);
/// The first whole number of a text ("2, Kubernetes pods" -> 2).
std::optional<int> leading_count(std::string_view text);

/// The whole number that follows `key` and blanks, colons or '=' in `line`, e.g. ("agg iters: 5", "agg iters") -> 5.
std::optional<int> count_after(std::string_view line, std::string_view key);

/// A warning at a line of a log.
Diagnostic line_warning(const LogText& log, const Line& line, std::string message);

}  // namespace fabricast::readers
