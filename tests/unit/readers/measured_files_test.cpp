// SPDX-License-Identifier: Apache-2.0
// Every published log at hand is read whole. The logs are not part of the project: they are looked for in
// $FABRICAST_MEASUREMENTS, else in ../shared/measurements beside the source; without them these tests say so and pass.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "fabricast/measurement.hpp"
#include "tests/support/logs.hpp"

namespace fs = std::filesystem;
using namespace fabricast;
using test::measurements_folder;
using test::text_of;

namespace {

std::vector<fs::path> measured_files() {
  const auto files = test::logs_below({measurements_folder()});
  if (files.empty()) MESSAGE("skipped: no measurements in " << measurements_folder().string());
  return files;
}

/// A table in the columns of nccl-tests, OSU or perftest, and not marked suspicious.
bool is_sound_benchmark_log(const std::string& text) {
  const bool is_known = text.find("algbw   busbw") != std::string::npos || text.find("# OSU ") != std::string::npos ||
                        text.find("#bytes") != std::string::npos;
  const bool is_other = text.find("#repetitions") != std::string::npos;
  return is_known && !is_other && text.find("# quality: suspicious") == std::string::npos;
}

std::string column(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

TEST_CASE("every sound measured log gives rows, a benchmark and ranks") {
  for (const auto& path : measured_files()) {
    const auto text = text_of(path);
    if (!is_sound_benchmark_log(text)) continue;
    CAPTURE(path.filename().string());
    const auto logs = read_logs(path.string());
    REQUIRE(logs.has_value());
    for (const auto& log : *logs) {
      if (log.rows.empty()) continue;
      const bool is_listed = std::getenv("FABRICAST_LIST_LOGS") != nullptr;
      if (is_listed) {
        std::cout << column(path.filename().string(), 76) << column(std::string(to_string(log.format)), 12)
                  << " b=" << (log.benchmark ? static_cast<int>(*log.benchmark) : -1) << " rows=" << log.rows.size()
                  << " ranks=" << log.header.num_ranks.value_or(-1) << " hosts=" << log.header.num_hosts.value_or(-1)
                  << " per=" << log.header.ranks_per_host.value_or(-1) << " warn=" << log.warnings.size()
                  << " nccl=" << log.header.nccl_version << " tool=" << log.header.tool_version
                  << " unit=" << log.header.unit << "\n";
        for (const auto& w : log.warnings) std::cout << "    " << w.location.line << ": " << w.message << "\n";
      }
      for (const auto& row : log.rows) CHECK(row.time.ps > 0);
      for (const auto& warning : log.warnings) CHECK(warning.message.find("lost") == std::string::npos);
    }
    const bool has_rows = std::any_of(logs->begin(), logs->end(), [](const auto& l) { return !l.rows.empty(); });
    CHECK(has_rows);
  }
}

TEST_CASE("recomputed bus bandwidths agree with the printed ones of every sound nccl-tests log") {
  for (const auto& path : measured_files()) {
    const auto text = text_of(path);
    if (!is_sound_benchmark_log(text)) continue;
    CAPTURE(path.filename().string());
    const auto logs = read_logs(path.string());
    REQUIRE(logs.has_value());
    for (const auto& log : *logs) {
      if (log.format != LogFormat::nccl_tests) continue;
      for (const auto& row : log.rows) {
        CAPTURE(row.line);
        REQUIRE(row.busbw.has_value());
        REQUIRE(row.printed_busbw.has_value());
        // Printed with two decimals of GB/s, from a time printed with at least three digits.
        const double tolerance = 0.0051e9 + 0.005 * row.busbw->bytes_per_s;
        CHECK(std::abs(row.busbw->bytes_per_s - row.printed_busbw->bytes_per_s) <= tolerance);
      }
    }
  }
}

TEST_CASE("measured matrices, copy timings, bandwidth sweeps and tuning lines are read whole") {
  for (const auto& path : measured_files()) {
    const auto name = path.filename().string();
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool is_summary = has("summary");
    if (is_summary || !(has("p2pBandwidthLatencyTest") || has("bandwidthTest") || has("copies") || has("tuning-debug")))
      continue;
    CAPTURE(name);
    const auto log = read_log(path.string());
    REQUIRE(log.has_value());
    CHECK(log->warnings.empty());
    if (has("p2pBandwidthLatencyTest")) CHECK(log->matrices.size() >= 6);
    if (has("bandwidthTest")) CHECK(log->copies.size() == 81);
    if (has("host-and-peer-copies")) CHECK(log->copies.size() == 2 + 2 * 15 * 4 + 2 * 40 + 3 * 24);
    if (has("tuning-debug")) CHECK(log->tuning.choices.size() == 17);
  }
}
