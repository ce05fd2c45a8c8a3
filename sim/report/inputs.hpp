// SPDX-License-Identifier: Apache-2.0
// Files that took part, with their SHA-256, as every form of a result names them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/load.hpp"

namespace fabricast::report {

using InputSums = std::vector<std::pair<std::string, std::string>>;

InputSums sums_of(const std::vector<InputFile>& inputs);
/// [{"path": ..., "sha256": ...}]
nlohmann::ordered_json inputs_json(const InputSums& inputs);
/// One comment line each, with the first 16 digits.
std::string inputs_text(const InputSums& inputs);
/// A list for pages.
std::string inputs_html(const InputSums& inputs);

}  // namespace fabricast::report
