// SPDX-License-Identifier: Apache-2.0
// Messages about the user's input. Readers collect every fault of a file and return them together; nothing below cli/
// prints. A rendered message looks like a compiler's:
//
//   fat.yaml:6:5: error: unknown key 'bandwith' in a link
//       6 |     bandwith: 400 Gb/s
//         |     ^
//         = note: did you mean 'bandwidth'?
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace fabricast {

/// A place in an input file. `line` and `column` count from 1; 0 means the whole file.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

enum class Severity { error, warning };

/// Extra information below a message; with a `location` it points at a second place.
struct Note {
  std::string text;
  SourceLocation location;  ///< empty file = no second place
};

/// One message about the input. `source_line` is the text of the line at `location`, without line end; may be empty,
/// and a part of the line when `source_column` is given.
struct Diagnostic {
  Severity severity = Severity::error;
  SourceLocation location;
  std::string message;  ///< lower case, no full stop: what was found (quoted) and what was expected
  std::string source_line;
  std::vector<Note> notes;
  int source_column = 0;  ///< where the column of `location` is in `source_line`; 0 = the same
};

/// All messages of one load or check, in the order they were found.
using Diagnostics = std::vector<Diagnostic>;

/// A value, or every reason why there is none (at least one error).
template <typename T>
using Result = tl::expected<T, Diagnostics>;

/// True when at least one entry is an error.
bool has_errors(const Diagnostics& diagnostics);

/// Gives a diagnostic with a place the text of that line, cut around its column when it is long.
void set_source_line(Diagnostic& diagnostic, std::string_view line);

/// A diagnostic without a place in a file.
Diagnostic make_error(std::string message, std::string hint = {});

/// The same with its place.
Diagnostic make_error_at(const SourceLocation& where, std::string message, std::string hint = {});
Diagnostic make_warning_at(const SourceLocation& where, std::string message, std::string hint = {});

/// The message as a compiler would print it, with a final line end. Long source lines are cut around the column.
std::string render(const Diagnostic& diagnostic);

/// All messages, rendered one after another.
std::string render(const Diagnostics& diagnostics);

/// The candidate nearest to `word` by edit distance, if within max(2, length / 3); else empty.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// Up to `limit` candidates near `word`, nearest first; ties in alphabetical order.
std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& candidates,
                                    std::size_t limit = 5);

}  // namespace fabricast
