// SPDX-License-Identifier: Apache-2.0
#include "config/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "fabricast/diagnostic.hpp"

namespace fabricast::config {

std::string letters_of(std::string_view text) {
  auto out = lower(text);
  std::erase_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return out;
}

std::vector<std::string> meant_names(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t least_letters = 3,
                        most = 5;  // fewer letters are held by names that have nothing to do with them
  const auto wanted = letters_of(word);
  std::vector<std::string> out;
  if (wanted.size() >= least_letters) {
    std::ranges::copy_if(candidates, std::back_inserter(out), [&](const std::string& candidate) {
      return letters_of(candidate).find(wanted) != std::string::npos;
    });
  }
  if (out.empty()) return near_names(word, candidates, most);
  std::ranges::sort(out, {}, [](const std::string& name) { return std::pair(name.size(), name); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  out.resize(std::min(out.size(), most));
  return out;
}

std::string meant_hint(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += fmt::format("{}'{}'", out.empty() ? "did you mean " : " or ", name);
  return out.empty() ? out : out + "?";
}

}  // namespace fabricast::config
