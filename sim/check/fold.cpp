// SPDX-License-Identifier: Apache-2.0
#include "check/fold.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace fabricast::check {

namespace {

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// "hca" of "hca12"; empty unless letters and then digits.
std::string_view stem(std::string_view word) {
  const auto end = word.find_first_of("0123456789");
  const bool is_numbered =
      end != std::string_view::npos && end > 0 && word.find_first_not_of("0123456789", end) == std::string_view::npos;
  return is_numbered ? word.substr(0, end) : std::string_view();
}

/// Runs of letters and digits, and what stands between them.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const bool is_word = is_of_word(text.front());
    const auto end = std::ranges::find_if(text, [&](char c) { return is_of_word(c) != is_word; }) - text.begin();
    out.push_back(text.substr(0, static_cast<std::size_t>(end)));
    text.remove_prefix(static_cast<std::size_t>(end));
  }
  return out;
}

std::string whole(const Diagnostic& one) {
  std::string out = one.message;
  for (const auto& note : one.notes) out += "\n" + note.text;
  return out;
}

/// The device in place of which `other` has another of its kind everywhere, and that one; empty where more differs.
std::string_view device_instead(const std::string& one, const std::string& other) {
  const auto first = parts(one), second = parts(other);
  if (first.size() != second.size()) return {};
  std::string_view was, is;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == second[i]) continue;
    if (was.empty()) was = first[i], is = second[i];
    if (first[i] != was || second[i] != is || stem(was).empty() || stem(was) != stem(is)) return {};
  }
  return is;
}

/// What two faults that may be folded have in common: the place, and the text without the numbers of devices.
std::string likeness(const Diagnostic& one, const std::string& text) {
  const auto& at = one.location;
  auto out = fmt::format("{}:{}:{}:{}:", static_cast<int>(one.severity), at.file, at.line, at.column);
  for (const auto part : parts(text)) out += stem(part).empty() ? part : stem(part);
  return out;
}

}  // namespace

Diagnostics folded(const Diagnostics& found) {
  struct Kept {
    Diagnostic first;
    std::string text;
    std::vector<std::string> others;
  };
  std::vector<Kept> kept;
  std::unordered_map<std::string, std::vector<std::size_t>> alike;  // of `kept`
  for (const auto& one : found) {
    const auto text = whole(one);
    auto& candidates = alike[likeness(one, text)];
    const auto like = std::ranges::find_if(candidates, [&](std::size_t before) {
      return one.location.line > 0 && !device_instead(kept[before].text, text).empty();
    });
    if (like == candidates.end()) {
      candidates.push_back(kept.size());
      kept.push_back({one, text, {}});
    } else {
      kept[*like].others.emplace_back(device_instead(kept[*like].text, text));
    }
  }
  Diagnostics out;
  for (auto& one : kept) {
    if (!one.others.empty())
      one.first.notes.push_back({fmt::format("the same of {}", fmt::join(one.others, ", ")), {}});
    out.push_back(std::move(one.first));
  }
  return out;
}

}  // namespace fabricast::check
