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

#include "doctor/case.hpp"
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
  int per_host = 8;  ///< GPUs
};

/// One table in nccl-tests' own columns, each time scattered.
inline std::string nccl_tests_log(Benchmark benchmark, const std::vector<Bytes>& sizes,
                                  const std::vector<Duration>& times, const std::string& host, const Planted& planted,
                                  double scatter, std::mt19937_64& random) {
  auto log = fmt::format(
      "# Collective test starting: {}\n# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 4(factor) warmup "
      "iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n# Using devices\n",
      to_string(benchmark));
  for (int i = 0; i < planted.ranks; ++i)
    log += fmt::format("#  Rank {:2} Group  0 Pid {} on {}{} device {:2} [0x{:02x}] NVIDIA GPU\n", i, 1000 + i, host,
                       planted.first_host + i / planted.per_host, i % planted.per_host, 7 + i % planted.per_host);
  log +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
      "(GB/s)\n";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // Twelve uniform numbers less six: nearly normal, the same with every standard library.
    double noise = -6;
    for (int k = 0; k < 12; ++k) noise += static_cast<double>(random() >> 11) * 0x1p-53;
    const double us = times[i].us() * (1 + scatter * noise);
    const auto one =
        fmt::format("{:10.2f} {:7.2f} {:7.2f}      0", us, static_cast<double>(sizes[i].value) / us / 1e3, 0.0);
    log += fmt::format("{:12} {:13}     float     sum      -1 {} {}\n", sizes[i].value, sizes[i].value / 4, one, one);
  }
  return log;
}

/// What is forecast of a scenario's text, and the sizes of its first workload.
inline doctor::Case case_of_text(const std::string& text, std::vector<Bytes>& sizes) {
  const auto loaded = load_scenario_text("s.yaml", text, {}, {});
  REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
  doctor::Case out;
  out.spec = loaded->topology.spec();
  out.scenario = loaded->scenario;
  out.parameters = loaded->parameters;
  out.types = loaded->device_types;
  sizes = out.scenario.workloads.front().sizes;
  return out;
}

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
    std::vector<Duration> times;
    std::vector<Bytes> sizes;
    for (const auto& row : prediction->workloads.front().rows) {
      times.push_back(row.time);
      sizes.push_back(row.size);
    }
    const auto log =
        nccl_tests_log(loaded->scenario.workloads.front().benchmark, sizes, times, host, logs[k], scatter, random);
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-doctor-{}-{}.log", getpid(), k);
    std::ofstream(path) << log;
    out.push_back(path.string());
  }
  return out;
}

}  // namespace fabricast::test
