// SPDX-License-Identifier: Apache-2.0
#include "fabricast/diagnostic.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "base/text.hpp"

namespace fabricast {

namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string where(const SourceLocation& location) {
  if (location.file.empty()) return "";
  if (location.line == 0) return printable(location.file) + ": ";
  return fmt::format("{}:{}:{}: ", printable(location.file), location.line, location.column);
}

}  // namespace

void raise_internal_error(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {} ({}); please report this with the command that caused it", file, line,
                                  message, condition));
}

bool has_errors(const Diagnostics& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const auto& d) { return d.severity == Severity::error; });
}

void set_source_line(Diagnostic& diagnostic, std::string_view line) {
  auto excerpt = excerpt_of(line, diagnostic.location.column);
  diagnostic.source_line = std::move(excerpt.text);
  diagnostic.source_column = excerpt.column;
}

Diagnostic make_error(std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  if (!hint.empty()) diagnostic.notes.push_back({std::move(hint), {}});
  return diagnostic;
}

Diagnostic make_error_at(const SourceLocation& where, std::string message, std::string hint) {
  auto diagnostic = make_error(std::move(message), std::move(hint));
  diagnostic.location = where;
  return diagnostic;
}

Diagnostic make_warning_at(const SourceLocation& where, std::string message, std::string hint) {
  auto diagnostic = make_error_at(where, std::move(message), std::move(hint));
  diagnostic.severity = Severity::warning;
  return diagnostic;
}

std::string render(const Diagnostic& diagnostic) {
  std::string out =
      fmt::format("{}{}: {}\n", where(diagnostic.location),
                  diagnostic.severity == Severity::error ? "error" : "warning", printable(diagnostic.message));
  const auto gutter = std::to_string(std::max(0, diagnostic.location.line)).size();
  const std::string blank(gutter + 4, ' ');
  if (!diagnostic.source_line.empty() && diagnostic.location.line > 0) {
    auto [line, column] = excerpt_of(
        diagnostic.source_line, diagnostic.source_column > 0 ? diagnostic.source_column : diagnostic.location.column);
    // One for one, so that the caret stays below its column.
    for (auto& c : line) {
      if (c == '\t') c = ' ';
      if (static_cast<unsigned char>(c) < 0x20) c = '?';
    }
    out += fmt::format("    {} | {}\n{} | {}^\n", diagnostic.location.line, printable(line), blank,
                       std::string(static_cast<std::size_t>(column - 1), ' '));
  }
  for (const auto& note : diagnostic.notes) {
    if (note.location.file.empty()) {
      out += fmt::format("{} = note: {}\n", blank, printable(note.text));
    } else {
      out += fmt::format("{}note: {}\n", where(note.location), printable(note.text));
    }
  }
  return out;
}

std::string render(const Diagnostics& diagnostics) {
  std::string out;
  for (const auto& diagnostic : diagnostics) out += render(diagnostic);
  return out;
}

std::vector<std::string> near_names(std::string_view word, const std::vector<std::string>& candidates,
                                    std::size_t limit) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  const auto asked = lower(word);
  const std::size_t farthest = std::max<std::size_t>(2, word.size() / 3);
  for (const auto& candidate : candidates) {
    const auto longer = std::max(candidate.size(), word.size());
    const auto shorter = std::min(candidate.size(), word.size());
    if (longer - shorter > farthest) continue;
    const auto distance = edit_distance(asked, lower(candidate));
    if (distance <= farthest && distance < longer) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  std::vector<std::string> names;
  for (const auto& [distance, name] : ranked) {
    if (names.size() < limit) names.push_back(name);
  }
  return names;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const auto names = near_names(word, candidates, 1);
  return names.empty() ? std::string() : names.front();
}

}  // namespace fabricast
