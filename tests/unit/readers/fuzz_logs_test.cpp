// SPDX-License-Identifier: Apache-2.0
// Real logs (our own, and published ones where they are at hand), damaged as logs are: cut anywhere, letters lost or
// changed, lines doubled, two ranks printing at once. Readers never fail, keep no senseless row, and save what is
// whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "fabricast/measurement.hpp"
#include "tests/support/logs.hpp"

using namespace fabricast;
using test::text_of;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> real_logs() {
  return test::logs_below(
      {fs::path(FABRICAST_SOURCE_DIR) / "calibration" / "data", test::measurements_folder() / "public"});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string damaged(std::string text, std::mt19937_64& random) {
  const auto at = [&] { return text.empty() ? 0 : random() % text.size(); };
  for (std::uint64_t edits = 1 + random() % 20; edits > 0; --edits) {
    switch (random() % 5) {
      case 0:
        text.erase(at(), 1 + random() % 8);
        break;
      case 1:
        text.insert(at(), text.substr(at(), 1 + random() % 120));
        break;
      case 2:
        if (!text.empty()) text[at()] = static_cast<char>(random() % 256);
        break;
      case 3:
        if (random() % 8 == 0) text.resize(at());
        break;
      case 4:
        text.insert(at(), random() % 2 == 0 ? "\n" : "[1,3]<stdout>:");
        break;
    }
  }
  return text;
}

/// Every way a table can be asked for.
void check_sane(const std::vector<MeasuredLog>& logs) {
  for (const auto& log : logs) {
    for (const auto& row : log.rows) {
      CHECK(row.time.ps > 0);
      CHECK(row.size.value >= 0);
      if (row.bandwidth) CHECK(std::isfinite(row.bandwidth->bytes_per_s));
    }
    CHECK(log.warnings.size() <= 101);
  }
  for (const auto direction :
       {CopyDirection::to_host, CopyDirection::to_device, CopyDirection::both, CopyDirection::to_peer}) {
    for (const int gpus : {1, 2, 8}) {
      Scenario scenario;
      scenario.workloads.resize(1);
      scenario.workloads[0].benchmark = Benchmark::host_copies;
      scenario.workloads[0].gpus = gpus;
      scenario.workloads[0].direction = direction;
      const auto table = table_for(logs, scenario);
      if (!table) continue;
      for (const auto& row : table->rows) CHECK(row.time.ps > 0);
    }
  }
}

std::set<std::pair<std::int64_t, std::int64_t>> size_and_time(const std::vector<MeasuredLog>& logs) {
  std::set<std::pair<std::int64_t, std::int64_t>> out;
  for (const auto& log : logs) {
    for (const auto& row : log.rows) out.emplace(row.size.value, row.time.ps);
  }
  return out;
}

}  // namespace

TEST_CASE("real logs damaged at random are read without failing, and keep no senseless row" *
          doctest::test_suite("long")) {
  std::mt19937_64 random(4);
  for (const auto& file : real_logs()) {
    const auto text = text_of(file);
    for (int round = 0; round < 12; ++round) {
      const auto logs = read_logs_text(damaged(text, random), file.string());
      if (!logs) continue;
      CAPTURE(file.string());
      check_sane(*logs);
    }
  }
}

TEST_CASE("a real log cut at any line keeps every row above the cut" * doctest::test_suite("long")) {
  for (const auto& file : real_logs()) {
    const auto text = text_of(file);
    const auto whole = read_logs_text(text, file.string());
    if (!whole) continue;
    const auto lines = lines_of(text);
    for (std::size_t kept = 1; kept < lines.size(); kept += 1 + lines.size() / 12) {
      std::string cut;
      for (std::size_t i = 0; i < kept; ++i) cut += lines[i] + "\n";
      const auto logs = read_logs_text(cut, file.string());
      const auto rows = logs ? size_and_time(*logs) : std::set<std::pair<std::int64_t, std::int64_t>>{};
      CAPTURE(file.string());
      CAPTURE(kept);
      for (const auto& log : *whole) {
        for (const auto& row : log.rows) {
          if (row.line > 0 && row.line <= static_cast<int>(kept)) CHECK(rows.contains({row.size.value, row.time.ps}));
        }
      }
    }
  }
}

TEST_CASE("two ranks that print the same table line by line lose no row") {
  for (const auto& file : real_logs()) {
    const auto text = text_of(file);
    const auto whole = read_logs_text(text, file.string());
    if (!whole || whole->size() != 1 || (*whole)[0].rows.empty()) continue;
    std::string both;
    for (const auto& line : lines_of(text)) both += "[1,0]<stdout>:" + line + "\n[1,1]<stdout>:" + line + "\n";
    // What the collector wrote stands above the output of the ranks.
    const auto marker = text.find("# ---- raw output below ----\n");
    if (marker != std::string::npos) {
      both = text.substr(0, marker + 29);
      for (const auto& line : lines_of(text.substr(marker + 29)))
        both += "[1,0]<stdout>:" + line + "\n[1,1]<stdout>:" + line + "\n";
    }
    const auto logs = read_logs_text(both, file.string());
    CAPTURE(file.string());
    REQUIRE(logs.has_value());
    CHECK(size_and_time(*logs) == size_and_time(*whole));
  }
}

TEST_CASE("two ranks that print into each other's lines: rows kept are rows of the log") {
  std::mt19937_64 random(7);
  for (const auto& file : real_logs()) {
    const auto text = text_of(file);
    const auto whole = read_logs_text(text, file.string());
    const bool is_nccl = whole && whole->size() == 1 && (*whole)[0].format == LogFormat::nccl_tests;
    if (!is_nccl || text.find("algbw") == std::string::npos) continue;
    const auto known = size_and_time(*whole);
    // Another rank's line breaks into every fifth line.
    std::string mixed;
    const auto lines = lines_of(text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto line = lines[i];
      if (i % 5 == 4) line.insert(random() % (line.size() + 1), lines[random() % lines.size()]);
      mixed += line + "\n";
    }
    const auto logs = read_logs_text(mixed, file.string());
    if (!logs) continue;
    CAPTURE(file.string());
    // Columns guard each other: size / time = algbw. What slips through is rare.
    std::size_t foreign = 0;
    for (const auto& row : size_and_time(*logs)) {
      if (known.contains(row)) continue;
      ++foreign;
      MESSAGE(row.first << " B in " << row.second << " ps");
    }
    CHECK(foreign <= 1);
  }
}
