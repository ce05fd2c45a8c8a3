// SPDX-License-Identifier: Apache-2.0
// Any text as a scenario with its topology: read, checked, and, when it is small, run on both engines and printed. It
// may be refused; it must not crash, hang, or give times that run backwards.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "fabricast/check.hpp"
#include "fabricast/fabricast.hpp"
#include "report/report.hpp"

namespace {

using namespace fabricast;

constexpr long k_largest_number = 99;  ///< of what multiplies devices: bigger clusters only take longer
constexpr std::size_t k_most_sizes = 3;
constexpr std::size_t k_most_workloads = 3;
constexpr int k_most_devices = 400;

/// True when a key that multiplies devices or work is followed by a large number.
bool is_large(std::string_view text) {
  for (const std::string_view key :
       {"count", "dimensions", "groups", "per_group", "per_router", "global_links", "senders", "pairs", "window",
        "ranks", "streams", "iterations", "ports", "spines", "rails", "threads", "vcpus"}) {
    for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      auto rest = text.substr(at + key.size(), 40);
      rest = rest.substr(0, rest.find('\n'));
      long number = 0;
      for (const char c : rest) {
        number = std::isdigit(static_cast<unsigned char>(c)) != 0 ? 10 * number + (c - '0') : 0;
        if (number > k_largest_number) return true;
      }
    }
  }
  return false;
}

void run(const LoadedScenario& loaded, Fidelity fidelity) {
  SimulateOptions options;
  options.fidelity = fidelity;
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  if (!prediction) {
    FABRICAST_ASSERT(has_errors(prediction.error()), "refused without a reason");
    return;
  }
  for (const auto& workload : prediction->workloads) {
    for (const auto& row : workload.rows) {
      FABRICAST_ASSERT(row.time.ps >= 0 && !row.time.is_past_range(), "a row takes {} ps", row.time.ps);
      FABRICAST_ASSERT(row.low_time <= row.high_time, "band from {} to {} ps", row.low_time.ps, row.high_time.ps);
    }
  }
  const report::Document document{*prediction, loaded.scenario, {}};
  FABRICAST_ASSERT(!report::text(document).empty() && !report::json(document).empty(), "nothing printed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (is_large(text)) return 0;
  auto loaded = load_scenario_text("fuzz.yaml", text);
  if (!loaded) {
    FABRICAST_ASSERT(!render(loaded.error()).empty(), "refused without a reason");
    return 0;
  }
  if (loaded->topology.num_devices() > k_most_devices) return 0;
  auto& workloads = loaded->scenario.workloads;
  if (workloads.size() > k_most_workloads) workloads.resize(k_most_workloads);
  for (auto& workload : workloads) {
    if (workload.sizes.empty()) workload.sizes = {Bytes{8}, Bytes{1 << 20}};
    if (workload.sizes.size() > k_most_sizes) workload.sizes.resize(k_most_sizes);
  }
  (void)render(check_topology(loaded->topology, loaded->parameters));
  (void)render(check_lossless(loaded->topology, loaded->parameters));
  (void)render(check_scenario(loaded->topology, loaded->scenario, loaded->parameters));
  const auto infeasible = check_virtualization(loaded->topology, loaded->parameters, loaded->device_types);
  if (has_errors(infeasible)) return 0;
  run(*loaded, Fidelity::automatic);
  // Packets of larger messages only take longer.
  for (auto& workload : workloads) {
    for (auto& bytes : workload.sizes) bytes = std::min(bytes, Bytes{100'000});
    for (auto& flow : workload.traffic.flows)
      if (flow.bytes) flow.bytes = std::min(*flow.bytes, Bytes{100'000});
  }
  run(*loaded, Fidelity::packet);
  return 0;
}
