// SPDX-License-Identifier: Apache-2.0
// The captures below data/ (see PROVENANCE.md there) and what tests do with them.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fabricast/import.hpp"
#include "fabricast/load.hpp"

namespace fabricast::test {

inline const std::string k_captures = std::string(FABRICAST_SOURCE_DIR) + "/tests/unit/import/data/";

inline std::string capture(const std::string& name) {
  std::ifstream in(name.starts_with("/") ? name : k_captures + name, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> captures_of(const std::string& prefix) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(k_captures)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(prefix)) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline Result<ImportedCluster> import_files(const std::vector<std::string>& names, const ImportOptions& options = {}) {
  std::vector<ClusterSource> sources;
  for (const auto& name : names) sources.push_back({name, capture(name), SourceRole::any, ""});
  return import_cluster(sources, options);
}

/// The YAML loads as a topology of the catalogue.
inline Result<LoadedTopology> load_text(const std::string& yaml) {
  const auto path = std::filesystem::temp_directory_path() / ("fabricast-import-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(path, std::ios::binary) << yaml;
  auto loaded = load_topology(path.string());
  std::filesystem::remove(path);
  return loaded;
}

}  // namespace fabricast::test
