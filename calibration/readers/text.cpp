// SPDX-License-Identifier: Apache-2.0
#include "readers/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "readers/line_prefix.hpp"

namespace fabricast::readers {
namespace {

constexpr std::string_view k_raw_marker = "---- raw output below ----";
constexpr std::string_view k_byte_order_mark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v'; }

/// Length of a terminal escape sequence (`ESC [ ... letter`, `ESC ( letter`) at the start of `text`; 0 when there is
/// none.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b') return 0;
  if (text[1] == '(') return std::min<std::size_t>(3, text.size());
  if (text[1] != '[') return 0;
  std::size_t at = 2;
  while (at < text.size() && (is_digit(text[at]) || text[at] == ';')) ++at;
  return std::min(at + 1, text.size());
}

/// Without colours and line ends; the blanks of web pages become plain ones.
std::string without_colours(std::string_view raw) {
  constexpr std::string_view k_no_break_space = "\xC2\xA0";
  std::string text;
  text.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    if (const auto escape = escape_length(raw.substr(at)); escape > 0) {
      at += escape;
    } else if (raw.substr(at).starts_with(k_no_break_space)) {
      text += ' ';
      at += k_no_break_space.size();
    } else {
      if (raw[at] != '\r' && raw[at] != '\0') text += raw[at];
      ++at;
    }
  }
  return text;
}

/// Drops line ends, colours and what stands before the program's own line; a rank tag glued between two words becomes
/// a blank.
std::string cleaned(std::string_view raw) {
  const auto line = without_xml_tag(without_colours(raw));
  const auto own = std::string_view(line).substr(prefix_length(line));
  std::string text;
  text.reserve(own.size());
  for (std::size_t at = 0; at < own.size();) {
    if (const auto tag = rank_tag_length(own.substr(at)); tag > 0) {
      if (!text.empty()) text += ' ';
      at += tag;
    } else {
      text += own[at];
      ++at;
    }
  }
  return text;
}

std::vector<Line> numbered_lines(std::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const bool is_terminated = end != std::string_view::npos;
    lines.push_back({++number, cleaned(text.substr(0, end)), is_terminated});
    if (!is_terminated) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

void read_provenance_line(std::string_view text, std::map<std::string, std::string>& provenance) {
  text = trim(text);
  if (text.empty() || text[0] != '#') return;
  text = trim(text.substr(1));
  const auto colon = text.find(": ");
  if (colon == std::string_view::npos) return;
  provenance.emplace(std::string(text.substr(0, colon)), std::string(trim(text.substr(colon + 2))));
}

std::string without_separators(std::string_view word) {
  std::string digits(word);
  std::erase(digits, '_');
  return digits;
}

}  // namespace

LogText split_log(std::string_view text, const std::string& name) {
  if (text.starts_with(k_byte_order_mark)) text.remove_prefix(k_byte_order_mark.size());
  LogText log{name, {}, numbered_lines(text)};
  const auto marker = std::find_if(log.lines.begin(), log.lines.end(), [](const Line& line) {
    return line.text.starts_with("#") && contains(line.text, k_raw_marker);
  });
  if (marker == log.lines.end()) return log;
  for (auto it = log.lines.begin(); it != marker; ++it) read_provenance_line(it->text, log.provenance);
  log.lines.erase(log.lines.begin(), marker + 1);
  return log;
}

std::vector<Word> split_words(std::string_view line) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && is_blank(line[at])) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    if (at > begin) words.push_back({line.substr(begin, at - begin), begin});
  }
  return words;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (is_blank(text.front()) || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (is_blank(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::optional<Printed> parse_printed(std::string_view word) {
  constexpr std::size_t k_longest_number = 40;
  if (word.empty() || word.size() > k_longest_number) return std::nullopt;
  const std::string digits = without_separators(word);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value)) return std::nullopt;
  const auto exponent_at = digits.find_first_of("eE");
  const auto point = digits.find('.');
  int last_digit = 0;
  if (point != std::string::npos) {
    const auto mantissa_end = exponent_at == std::string::npos ? digits.size() : exponent_at;
    last_digit = -static_cast<int>(mantissa_end - point - 1);
  }
  if (exponent_at != std::string::npos) {
    const auto from = exponent_at + (digits[exponent_at + 1] == '+' ? 2 : 1);
    int exponent = 0;
    std::from_chars(digits.data() + from, digits.data() + digits.size(), exponent);
    last_digit += exponent;
  }
  return Printed{value, 0.5 * std::pow(10.0, last_digit)};
}

std::optional<std::int64_t> parse_count(std::string_view word) {
  if (word.empty() || !is_digit(word[0])) return std::nullopt;
  const std::string digits = without_separators(word);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<int> leading_count(std::string_view text) {
  int value = 0;
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

std::optional<int> count_after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  while (!line.empty() && (is_blank(line[0]) || line[0] == ':' || line[0] == '=')) line.remove_prefix(1);
  return leading_count(line);
}

Diagnostic line_warning(const LogText& log, const Line& line, std::string message) {
  constexpr std::size_t k_longest_quote = 400;
  return {Severity::warning, {log.name, line.number, 1}, std::move(message), line.text.substr(0, k_longest_quote), {}};
}

}  // namespace fabricast::readers
