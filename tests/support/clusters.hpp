// SPDX-License-Identifier: Apache-2.0
// Small clusters made from YAML text, for tests of everything above the reader.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "fabricast/fabricast.hpp"

namespace fabricast::test {

/// Writes a file below the test's own temporary folder and returns its path.
inline std::string write_file(const std::string& name, const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("fabricast-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

/// The faults' text with the folder of temporary files left out.
inline std::string shown(const Diagnostics& faults) {
  auto text = render(faults);
  const auto folder =
      (std::filesystem::temp_directory_path() / ("fabricast-test-" + std::to_string(::getpid()))).string() + "/";
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

inline LoadedTopology topology(const std::string& text) {
  auto loaded = load_topology(write_file("topology.yaml", text));
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

inline LoadedScenario scenario(const std::string& text, const std::vector<Setting>& settings = {}) {
  auto loaded = load_scenario(write_file("scenario.yaml", text), {}, settings);
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

inline Prediction run(const LoadedScenario& loaded, const SimulateOptions& options = {}) {
  auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  if (!prediction) FAIL(render(prediction.error()));
  return std::move(*prediction);
}

/// A shipped example.
inline LoadedScenario shipped(const std::string& name, const std::vector<Setting>& settings = {}) {
  auto loaded = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/" + name, {}, settings);
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

/// GPUs that hold any step: for laws of time, whatever a step keeps.
inline LoadedScenario with_memory(LoadedScenario loaded) {
  for (const auto gpu : loaded.topology.devices(DeviceKind::gpu)) {
    auto memory = loaded.parameters.at(loaded.topology.device(gpu).type + ".memory");
    memory.value = memory.low = memory.high = 1e15;
    loaded.parameters.set(memory);
  }
  return loaded;
}

/// Of the first workload.
inline const Row& row_at(const Prediction& prediction, Bytes size) {
  for (const auto& row : prediction.workloads[0].rows) {
    if (row.size == size) return row;
  }
  FAIL("no row of this size");
  return prediction.workloads[0].rows[0];
}

inline double us(const Prediction& prediction, Bytes size) { return row_at(prediction, size).time.us(); }

}  // namespace fabricast::test
