// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_fault.hpp"

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>

#include <algorithm>

namespace fabricast {

namespace {

constexpr std::string_view k_opens_token = ":-,[{?";  ///< behind one of these a quote or bracket is one
constexpr const char* k_close_quote = "close it on its line";

struct Mark {
  char sign = 0;
  int line = 0;  ///< from 1
  int column = 0;
};

struct Marks {
  std::vector<Mark> brackets;     ///< that nothing closes, outermost first
  std::optional<Mark> quote;      ///< open at the end
  std::optional<Mark> over_keys;  ///< the first quote that runs over a line that looks like a key
};

std::size_t indent_of(std::string_view line) {
  const auto at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? line.size() : at;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// "  name: value", "- name:"
bool looks_like_key(std::string_view line) {
  auto text = line.substr(std::min(line.size(), line.find_first_not_of(" -")));
  const auto end = std::ranges::find_if_not(text, is_word) - text.begin();
  text = text.substr(static_cast<std::size_t>(end));
  return end > 0 && (text == ":" || text.starts_with(": "));
}

/// Lines that belong to a text behind `|` or `>` are skipped.
bool begins_block_text(std::string_view line) {
  const auto last = line.find_last_not_of(" +-0123456789");
  if (last == std::string_view::npos || (line[last] != '|' && line[last] != '>')) return false;
  const auto before = last == 0 ? std::string_view::npos : line.find_last_not_of(' ', last - 1);
  return before != std::string_view::npos && (line[before] == ':' || line[before] == '-');
}

class Scanner {
 public:
  explicit Scanner(const std::vector<std::string>& lines) {
    std::size_t block_indent = std::string::npos;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string_view text = lines[i];
      const bool is_blank = indent_of(text) == text.size();
      if (block_indent != std::string::npos && (is_blank || indent_of(text) > block_indent)) continue;
      block_indent = std::string::npos;
      if (marks.quote && !marks.over_keys && looks_like_key(text)) marks.over_keys = marks.quote;
      scan(text, static_cast<int>(i) + 1);
      if (!marks.quote && marks.brackets.empty() && begins_block_text(text)) block_indent = indent_of(text);
    }
  }

  Marks marks;

 private:
  void scan(std::string_view text, int line) {
    char before = ':';  // what a token follows; at the start of a line one begins
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (marks.quote) {
        const bool is_escape = marks.quote->sign == '"' ? c == '\\' : c == '\'' && text.substr(i + 1).starts_with('\'');
        if (is_escape) ++i;
        if (!is_escape && c == marks.quote->sign) marks.quote.reset();
        before = c;
        continue;
      }
      if (c == '#' && (i == 0 || text[i - 1] == ' ')) return;
      const bool is_start = k_opens_token.find(before) != std::string_view::npos;
      const Mark mark{c, line, static_cast<int>(i) + 1};
      if ((c == '"' || c == '\'') && is_start) marks.quote = mark;
      if ((c == '[' || c == '{') && (is_start || !marks.brackets.empty())) marks.brackets.push_back(mark);
      if ((c == ']' || c == '}') && !marks.brackets.empty()) marks.brackets.pop_back();
      if (c != ' ') before = c;
    }
  }
};

YamlFault at(const Mark& mark, std::string message, std::string hint) {
  return {mark.line, mark.column, std::move(message), std::move(hint)};
}

YamlFault open_quote(const Mark& mark) { return at(mark, "the quote that opens here is not closed", k_close_quote); }

/// The last line with content above `line`; 0 without.
int line_above(const std::vector<std::string>& lines, int line) {
  for (int i = std::min(line - 1, static_cast<int>(lines.size())); i > 0; --i) {
    const std::string_view text = lines[static_cast<std::size_t>(i - 1)];
    const auto from = indent_of(text);
    if (from < text.size() && text[from] != '#') return i;
  }
  return 0;
}

/// "schema fabricast/topology/1", "gpus=16", "- name=n": a key and its value without what parts them.
std::optional<YamlFault> no_colon(std::string_view text, int line) {
  const auto from = std::min(text.size(), text.find_first_not_of(" -"));
  const auto content = text.substr(from);
  const auto word = static_cast<std::size_t>(std::ranges::find_if_not(content, is_word) - content.begin());
  const auto rest = content.substr(word);
  const bool is_entry = text.find('-') < from && !rest.starts_with('=') && !rest.starts_with(':');
  const bool has_colon = content.substr(0, content.find_first_of("{[")).find(": ") != std::string_view::npos;
  if (is_entry || has_colon || content.ends_with(':') || content.starts_with('{') || content.starts_with('['))
    return {};
  const auto value = rest.substr(std::min(rest.size(), rest.find_first_not_of(" :=")));
  return YamlFault{line, static_cast<int>(from) + 1, "no ': ' parts key and value",
                   word == 0 || value.empty() ? std::string("write 'key: value'")
                                              : fmt::format("write '{}: {}'", content.substr(0, word), value)};
}

/// The slip behind a ':' or an indentation that fits nothing.
YamlFault misplaced(const std::vector<std::string>& lines, int line, int column) {
  const auto text = line <= static_cast<int>(lines.size()) ? std::string_view(lines[static_cast<std::size_t>(line - 1)])
                                                           : std::string_view();
  const auto indent = indent_of(text);
  if (const int above = line_above(lines, line); above > 0) {
    const std::string_view before = lines[static_cast<std::size_t>(above - 1)];
    if (auto fault = no_colon(before, above)) return *fault;
    const auto key = before.find_first_not_of(" -");
    if (before.find(": ") != std::string_view::npos && key != std::string_view::npos && indent > key)
      return {line, static_cast<int>(indent) + 1, "this line is deeper than the one above, which has a value",
              "indent it like the keys beside it"};
  }
  if (auto fault = no_colon(text, line)) return *fault;
  const auto first = text.find(": ");
  const auto second = first == std::string_view::npos ? first : text.find(": ", first + 1);
  if (second != std::string_view::npos && static_cast<int>(second) + 1 == column)
    return {line, column, "a second ': ' follows on one line", "put the value in quotes"};
  return {line, static_cast<int>(indent) + 1, "the indentation of this line fits nothing above it",
          "indent it like the keys or entries beside it"};
}

}  // namespace

std::optional<YamlFault> unclosed_quote(const std::vector<std::string>& lines) {
  const Scanner scanner(lines);
  if (!scanner.marks.quote) return {};
  return open_quote(*scanner.marks.quote);
}

YamlFault yaml_fault(const std::vector<std::string>& lines, std::string_view said, int line, int column) {
  namespace Said = YAML::ErrorMsg;
  const Scanner scanner(lines);
  const auto& marks = scanner.marks;
  const auto text = line <= static_cast<int>(lines.size()) ? std::string_view(lines[static_cast<std::size_t>(line - 1)])
                                                           : std::string_view();
  if (marks.quote) return open_quote(*marks.quote);
  if (marks.over_keys && marks.over_keys->line <= line) return open_quote(*marks.over_keys);
  if (const auto tab = text.substr(0, indent_of(text)).find('\t'); tab != std::string_view::npos)
    return {line, static_cast<int>(tab) + 1, "a tab indents this line", "indent with blanks"};
  if (!marks.brackets.empty()) {
    const auto& open = marks.brackets.back();
    return at(open, fmt::format("'{}' is not closed", open.sign),
              fmt::format("end it with '{}'", open.sign == '[' ? ']' : '}'));
  }
  if (said == Said::UNKNOWN_ANCHOR)
    return {line, column, "an alias refers to an anchor that is not above it", "write the value out"};
  if (auto fault = said == Said::FLOW_END ? no_colon(text, line) : std::nullopt) return *fault;
  if (said == Said::FLOW_END) return {line, column, "a closing bracket has no opening one", "remove it, or open it"};
  if (said == Said::UNKNOWN_TOKEN && column <= static_cast<int>(text.size()))
    return {line, column, fmt::format("a value cannot begin with '{}'", text[static_cast<std::size_t>(column - 1)]),
            "put it in quotes"};
  if (said.starts_with(Said::INVALID_ESCAPE))
    return {line, column, "this is no escape in double quotes", "use single quotes, or write '\\\\' for a backslash"};
  if (said == Said::MAP_VALUE || said == Said::MAP_KEY || said == Said::BLOCK_ENTRY || said == Said::END_OF_MAP ||
      said == Said::END_OF_SEQ)
    return misplaced(lines, line, column);
  return {line, column, "this is not YAML", "look at indentation, quotes and brackets of this line and the one above"};
}

}  // namespace fabricast
