// SPDX-License-Identifier: Apache-2.0
#include "fabricast/inputs.hpp"

#include <algorithm>

#include "base/sha256.hpp"

namespace fabricast {

namespace {

bool is_noted(const std::vector<InputFile>& inputs, const std::string& path) {
  return std::ranges::find(inputs, path, &InputFile::path) != inputs.end();
}

}  // namespace

void note_input(std::vector<InputFile>& inputs, const std::string& path, std::string_view text) {
  if (!is_noted(inputs, path)) inputs.push_back({path, sha256_of_text(text)});
}

void note_hash(std::vector<InputFile>& inputs, const std::string& path, const std::string& sha256) {
  if (!sha256.empty() && !is_noted(inputs, path)) inputs.push_back({path, sha256});
}

void note_file(std::vector<InputFile>& inputs, const std::string& path) {
  if (!is_noted(inputs, path)) note_hash(inputs, path, sha256_of_file(path).value_or(""));
}

}  // namespace fabricast
