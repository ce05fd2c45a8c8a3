// SPDX-License-Identifier: Apache-2.0
// Every form in which the forecasts of the shipped scenarios are given: lines and a digest of each. The commands kept
// in tests/golden show what such a page says; here no scenario's page changes unseen.
#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "report/report.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

constexpr int k_most_devices = 3000;

/// FNV-1a, 64 bits: the same on every machine.
std::string digest(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("{} lines {:016x}", std::ranges::count(text, '\n'), hash);
}

}  // namespace

TEST_CASE("every form of every shipped scenario's forecast is the one before") {
  std::string out;
  for (const auto& file : test::yaml_files({"scenarios"})) {
    const auto loaded = load_scenario(file.string());
    if (!loaded || loaded->topology.num_devices() > k_most_devices) continue;
    const auto forecast = simulate(loaded->topology, loaded->scenario, loaded->parameters);
    out += file.stem().string() + "\n";
    if (!forecast) continue;
    const report::Document document{*forecast, loaded->scenario, {}};
    out += fmt::format("  text {}\n  json {}\n  csv {}\n  html {}\n  trace {}\n", digest(report::text(document)),
                       digest(report::json(document)), digest(report::csv(document)), digest(report::html(document)),
                       digest(report::trace(document)));
    for (const auto& workload : forecast->workloads)
      for (const auto& row : workload.rows)
        if (row.size == workload.rows.back().size)
          out += fmt::format("  explained {}\n", digest(report::explain(workload, row)));
    for (const auto& table : report::fabric_csv(document))
      out += fmt::format("  {} {}\n", table.name, digest(table.text));
  }
  test::check_kept("forms", out);
}
