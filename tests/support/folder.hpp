// SPDX-License-Identifier: Apache-2.0
// A temporary folder of one test, removed at its end.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace fabricast::test {

struct Folder {
  std::filesystem::path path;
  explicit Folder(const std::string& name)
      : path(std::filesystem::temp_directory_path() / ("fabricast-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// Returns the file's path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

}  // namespace fabricast::test
