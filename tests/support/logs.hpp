// SPDX-License-Identifier: Apache-2.0
// Logs that tests read where they lie.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fabricast::test {

/// $FABRICAST_MEASUREMENTS, else ../shared/measurements beside the source; it need not exist.
inline std::filesystem::path measurements_folder() {
  if (const char* folder = std::getenv("FABRICAST_MEASUREMENTS")) return folder;
  return std::filesystem::path(FABRICAST_SOURCE_DIR) / ".." / "shared" / "measurements";
}

/// Every .txt file below the folders, sorted; folders that do not exist have none.
inline std::vector<std::filesystem::path> logs_below(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : folders) {
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      if (it->is_regular_file() && it->path().extension() == ".txt") files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace fabricast::test
