// SPDX-License-Identifier: Apache-2.0
// Tables of forecasts over many settings, kept beside the tests: a number that changes is one that somebody meant to
// change. FABRICAST_UPDATE_GOLDEN=1 writes them anew.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fabricast/models/names.hpp"
#include "tests/support/clusters.hpp"

namespace fabricast::test {

/// Compares line by line with tests/unit/kept/NAME.txt. Lines of one indented block belong to the line before it.
inline void check_kept(const std::string& name, const std::string& now) {
  const auto path = std::string(FABRICAST_SOURCE_DIR) + "/tests/unit/kept/" + name + ".txt";
  if (std::getenv("FABRICAST_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::ifstream file(path);
  std::istringstream actual(now);
  std::string kept, line, head;
  while (std::getline(file, kept)) {
    if (!kept.starts_with(' ')) head = kept;
    CAPTURE(head);
    REQUIRE(std::getline(actual, line));
    CHECK(line == kept);
  }
  CHECK_FALSE(std::getline(actual, line));
}

/// The YAML files of folders of the project, by name.
inline std::vector<std::filesystem::path> yaml_files(std::initializer_list<const char*> folders) {
  std::vector<std::filesystem::path> out;
  for (const auto* folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FABRICAST_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

/// What a forecast says of each size: microseconds, their band as shares, what was chosen, what binds.
inline std::string row_text(const Row& row) {
  const double us = row.time.us();
  std::string out = fmt::format(" {:.5g}", us);
  if (us > 0) out += fmt::format("[{:.3f},{:.3f}]", row.low_time.us() / us, row.high_time.us() / us);
  for (const auto& word : {row.algorithm, row.protocol})
    if (!word.empty()) out += "/" + word;
  if (row.channels > 0) out += fmt::format("/{}", row.channels);
  return out;
}

/// One line: `what`, its rows, and what binds the last; or why there is none.
inline std::string forecast_line(const LoadedScenario& loaded, const std::string& what,
                                 const SimulateOptions& options = {}) {
  const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  if (!forecast) return fmt::format("  {}: {}\n", what, forecast.error().front().message);
  std::string out = fmt::format("  {}:", what);
  for (const auto& row : forecast->workloads.front().rows) out += row_text(row);
  const auto& rows = forecast->workloads.front().rows;
  if (!rows.empty() && !rows.back().bottleneck.empty()) out += "; " + rows.back().bottleneck;
  return out + "\n";
}

/// Of the size in the middle: the terms that its time is made of, in picoseconds.
inline std::string terms_line(const LoadedScenario& loaded) {
  const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  if (!forecast) return {};
  const auto& rows = forecast->workloads.front().rows;
  std::string out = "    of";
  for (const auto& term : rows[rows.size() / 2].terms) out += fmt::format(" {} {};", term.name, term.time.ps);
  return out + "\n";
}

/// A scenario on a topology given as the lines below its name; its first workload is then changed in place.
inline LoadedScenario on_cluster(const std::string& topology,
                                 const std::string& workload = "benchmark: all_reduce_perf",
                                 const std::string& software = "") {
  std::string indented;
  std::istringstream lines(topology);
  for (std::string line; std::getline(lines, line);) indented += "  " + line + "\n";
  return scenario(
      fmt::format("schema: fabricast/scenario/1\nname: kept\ntopology:\n  schema: fabricast/topology/1\n  name: "
                  "kept\n{}{}workload: "
                  "{{{}}}\n",
                  indented, software.empty() ? "" : "software: {" + software + "}\n", workload));
}

inline std::vector<Bytes> sizes_of(std::initializer_list<std::int64_t> values) {
  std::vector<Bytes> out;
  for (const auto value : values) out.push_back({value});
  return out;
}

}  // namespace fabricast::test
