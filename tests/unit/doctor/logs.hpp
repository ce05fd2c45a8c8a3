// SPDX-License-Identifier: Apache-2.0
// Logs of simulated runs: a scenario's forecast with settings, each time scattered by a share, in nccl-tests' own
// columns.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fabricast/doctor.hpp"
#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"

namespace fabricast::test {

inline std::string topology_file(const std::string& name) {
  return std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name;
}

/// One log: `workload` is the body of the workload's mapping, `ranks` on hosts of 8 GPUs called `host`0, `host`1 ...
struct Planted {
  std::string workload;
  int ranks = 8;
  int first_host = 0;
};

/// Writes the logs of a cluster under settings; their paths. Settings that a workload refuses are left out of it.
inline std::vector<std::string> planted_logs(const std::string& topology, const std::string& host,
                                             const std::vector<Planted>& logs, const std::vector<Setting>& settings,
                                             double scatter, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> out;
  for (std::size_t k = 0; k < logs.size(); ++k) {
    const auto text = fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{{}, sizes: {{from: 8 B, to: 128 MiB, "
        "factor: 4}}}}\n",
        topology, logs[k].workload);
    auto loaded = load_scenario_text("s.yaml", text, {}, settings);
    REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
    auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
    if (!prediction) {
      loaded = load_scenario_text("s.yaml", text, {}, {});
      prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
    }
    REQUIRE(prediction);
    const auto& workload = prediction->workloads.front();
    auto log = fmt::format(
        "# Collective test starting: {}\n# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 4(factor) warmup "
        "iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n# Using devices\n",
        to_string(loaded->scenario.workloads.front().benchmark));
    for (int i = 0; i < logs[k].ranks; ++i)
      log += fmt::format("#  Rank {:2} Group  0 Pid {} on {}{} device {:2} [0x{:02x}] NVIDIA GPU\n", i, 1000 + i, host,
                         logs[k].first_host + i / 8, i % 8, 7 + i % 8);
    log +=
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
        "(GB/s)\n";
    for (const auto& row : workload.rows) {
      // Twelve uniform numbers less six: nearly normal, the same with every standard library.
      double noise = -6;
      for (int i = 0; i < 12; ++i) noise += static_cast<double>(random() >> 11) * 0x1p-53;
      const double us = row.time.us() * (1 + scatter * noise);
      const auto one =
          fmt::format("{:10.2f} {:7.2f} {:7.2f}      0", us, static_cast<double>(row.size.value) / us / 1e3, 0.0);
      log += fmt::format("{:12} {:13}     float     sum      -1 {} {}\n", row.size.value, row.size.value / 4, one, one);
    }
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-doctor-{}-{}.log", getpid(), k);
    std::ofstream(path) << log;
    out.push_back(path.string());
  }
  return out;
}

}  // namespace fabricast::test
