// SPDX-License-Identifier: Apache-2.0
#include "report/inputs.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/page.hpp"

namespace fabricast::report {

InputSums sums_of(const std::vector<InputFile>& inputs) {
  InputSums out;
  for (const auto& input : inputs) out.emplace_back(input.path, input.sha256);
  return out;
}

nlohmann::ordered_json inputs_json(const InputSums& inputs) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& [path, sum] : inputs) out.push_back({{"path", path}, {"sha256", sum}});
  return out;
}

std::string inputs_text(const InputSums& inputs) {
  std::string out;
  for (const auto& [path, sum] : inputs) out += fmt::format("#   {} sha256 {}\n", path, sum.substr(0, 16));
  return out;
}

std::string inputs_html(const InputSums& inputs) {
  std::string out = "<ul>\n";
  for (const auto& [path, sum] : inputs) out += fmt::format("<li>{} <code>sha256 {}</code></li>\n", escaped(path), sum);
  return out + "</ul>\n";
}

}  // namespace fabricast::report
