// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace fabricast {

std::string quantity_text(double value, Dimension dimension, int digits) {
  switch (dimension) {
    case Dimension::bytes:
      return to_string(Bytes{range::whole(value)});
    case Dimension::time:
      return to_string(from_seconds(value));
    case Dimension::bandwidth:
      return to_string(Bandwidth{value});
    case Dimension::number:
      return fmt::format("{:.{}g}", value, digits);
  }
  return "";
}

namespace {

constexpr std::size_t k_widest_excerpt = 160;

/// Of a character that is UTF-8.
std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6U | (byte(i) & 0x3FU);
  return code;
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string escaped_code(std::uint32_t code) {
  return code < 0x20 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) >> 6U) == 2; }

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view k_blank = " \t\r";
  std::vector<std::string_view> out;
  for (auto begin = text.find_first_not_of(k_blank); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(k_blank, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(k_blank, end);
  }
  return out;
}

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!is_continuation(text[i])) return 0;
  if (length < 3) return length;
  const auto code = code_point(text.substr(0, length));
  const bool is_overlong = code < (length == 3 ? 0x800U : 0x10000U);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return is_overlong || is_surrogate || code > 0x10FFFF ? 0 : length;
}

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_character(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::size_t first_control(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_character(text.substr(at));
    if (length > 0 && is_control(code_point(text.substr(at, length)))) return at;
    at += std::max<std::size_t>(1, length);
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_character(text.substr(at));
    const auto character = text.substr(at, std::max<std::size_t>(1, length));
    at += character.size();
    const bool ends_line =
        character == "\n" || character == "\t" || (character == "\r" && at < text.size() && text[at] == '\n');
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (is_control(code_point(character)) && !(keep == Keep::lines && ends_line)) {
      out += escaped_code(code_point(character));
    } else {
      out += character;
    }
  }
  return out;
}

Excerpt excerpt_of(std::string_view line, int column) {
  const auto at = static_cast<std::size_t>(std::max(1, column));
  if (line.size() <= k_widest_excerpt) return {std::string(line), static_cast<int>(at)};
  std::size_t start = std::min(line.size(), at > k_widest_excerpt / 2 ? at - k_widest_excerpt / 2 : 0);
  std::size_t end = std::min(line.size(), start + k_widest_excerpt);
  while (start > 0 && start < line.size() && is_continuation(line[start])) --start;
  while (end > start && end < line.size() && is_continuation(line[end])) --end;
  Excerpt out;
  if (start > 0) out.text = "...";
  out.text += line.substr(start, end - start);
  if (end < line.size()) out.text += "...";
  out.column = static_cast<int>(at - start + (start > 0 ? 3 : 0));
  return out;
}

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += escaped_code(static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace fabricast
