// SPDX-License-Identifier: Apache-2.0
#include "tests/support/clusters.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace fabricast::test {

std::string write_file(const std::string& name, const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("fabricast-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::string shown(const Diagnostics& faults) {
  auto text = render(faults);
  const auto folder =
      (std::filesystem::temp_directory_path() / ("fabricast-test-" + std::to_string(::getpid()))).string() + "/";
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

LoadedTopology topology(const std::string& text) {
  auto loaded = load_topology(write_file("topology.yaml", text));
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

LoadedScenario scenario(const std::string& text, const std::vector<Setting>& settings) {
  auto loaded = load_scenario(write_file("scenario.yaml", text), {}, settings);
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

Prediction run(const LoadedScenario& loaded, const SimulateOptions& options) {
  auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  if (!prediction) FAIL(render(prediction.error()));
  return std::move(*prediction);
}

LoadedScenario shipped(const std::string& name, const std::vector<Setting>& settings) {
  auto loaded = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/" + name, {}, settings);
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

LoadedScenario with_memory(LoadedScenario loaded) {
  for (const auto gpu : loaded.topology.devices(DeviceKind::gpu)) {
    auto memory = loaded.parameters.at(loaded.topology.device(gpu).type + ".memory");
    memory.value = memory.low = memory.high = 1e15;
    loaded.parameters.set(memory);
  }
  return loaded;
}

const Row& row_at(const Prediction& prediction, Bytes size) {
  for (const auto& row : prediction.workloads[0].rows) {
    if (row.size == size) return row;
  }
  FAIL("no row of this size");
  return prediction.workloads[0].rows[0];
}

double us(const Prediction& prediction, Bytes size) { return row_at(prediction, size).time.us(); }

double us(const Row& row, const std::string& term) {
  double sum = 0;
  for (const auto& one : row.terms) sum += one.name == term ? one.time.us() : 0;
  return sum;
}

}  // namespace fabricast::test
