// SPDX-License-Identifier: Apache-2.0
// Plain nccl-tests logs, as people keep them: no command line, no telling file name. The rows say which collective it
// is; old versions' algbw of all_gather and reduce_scatter is converted.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fabricast/measurement.hpp"
#include "readers/nccl_content.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/logs.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

namespace fs = std::filesystem;

struct Form {
  Benchmark benchmark;
  const char* reduction;
  int root;
  bool counts_share;  ///< the count is one rank's
  bool has_in_place;
};

const std::vector<Form> k_forms{
    {Benchmark::all_reduce_perf, "sum", -1, false, true},    {Benchmark::all_gather_perf, "none", -1, true, true},
    {Benchmark::reduce_scatter_perf, "sum", -1, true, true}, {Benchmark::broadcast_perf, "none", 0, false, true},
    {Benchmark::reduce_perf, "sum", 0, false, true},         {Benchmark::alltoall_perf, "none", -1, true, false},
    {Benchmark::sendrecv_perf, "sum", -1, false, false},     {Benchmark::gather_perf, "none", 0, true, true},
    {Benchmark::scatter_perf, "none", 0, true, true}};

enum class DeviceLines { named, unnamed };

/// The layout of 2.11 and later without a word of the collective.
std::string plain_log(const Form& form, int ranks, bool is_checked, DeviceLines devices, std::uint64_t seed = 1) {
  test::Random random(seed);
  std::string text =
      "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20\n";
  for (int rank = 0; rank < ranks && devices == DeviceLines::named; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on node{} device {:2} [0000:0{}:00] NVIDIA H100\n", rank,
                        100 + rank, rank / 8, rank % 8, rank % 8);
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n";
  for (std::int64_t size = 4096LL * ranks; size <= (4096LL * ranks) << 18; size *= 4) {
    const double us = (20 + static_cast<double>(size) / 150e3) * (1 + static_cast<double>(random.next(100)) / 1000);
    const double algbw = static_cast<double>(size) / us * 1e-3;
    const double busbw = algbw * bus_bandwidth_factor(form.benchmark, ranks);
    const auto half = fmt::format("{:8.2f} {:7.2f} {:7.2f}", us, algbw, busbw);
    text += fmt::format("{:12} {:12} float {:>6} {:6} {} {:>5} {} {:>5}\n", size,
                        size / 4 / (form.counts_share ? ranks : 1), form.reduction, form.root, half,
                        is_checked ? "0" : "N/A", half, is_checked && form.has_in_place ? "0" : "N/A");
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 93.1\n";
}

MeasuredLog table_of(const std::string& text, const std::string& name = "job-4711.log") {
  const auto log = read_log_text(text, name);
  REQUIRE(log.has_value());
  return *log;
}

bool holds(const std::vector<Benchmark>& all, Benchmark one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// all_gather as old versions print it: no redop, no root, algbw = busbw = size (n-1)/n / time.
std::string old_all_gather(int ranks, bool with_devices, int rows) {
  std::string text = "# nThread 1 nGpus 1 minBytes 32 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20\n";
  for (int rank = 0; rank < ranks && with_devices; ++rank)
    text += fmt::format("#   Rank {:2} Pid {} on node0 device {:2} [0x{:02}] V100\n", rank, 100 + rank, rank, rank + 1);
  text += "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n";
  std::int64_t size = 4LL * ranks;
  for (int row = 0; row < rows; ++row, size *= 2) {
    const double us = 30 + static_cast<double>(size) / 120e3;
    const double algbw = static_cast<double>(size) / us * 1e-3 * (ranks - 1) / ranks;
    const auto half = fmt::format("{:8.2f} {:7.2f} {:7.2f} {}", us, algbw, algbw, "0e+00");
    text += fmt::format("{:12} {:12} float {} {}\n", size, size / 4 / ranks, half, half);
  }
  return text;
}

/// Their rows are alike: only a name tells a gather from a scatter.
bool is_ambiguous(const Form& form) {
  return form.benchmark == Benchmark::gather_perf || form.benchmark == Benchmark::scatter_perf;
}

}  // namespace

TEST_CASE("a checked log without a name is recognised by its rows at every number of ranks") {
  for (const auto& form : k_forms) {
    for (const int ranks : {2, 3, 4, 8, 16, 64}) {
      for (const auto devices : {DeviceLines::named, DeviceLines::unnamed}) {
        CAPTURE(to_string(form.benchmark));
        CAPTURE(ranks);
        const auto table = table_of(plain_log(form, ranks, true, devices));
        if (is_ambiguous(form)) {
          CHECK(table.possible_benchmarks == std::vector{Benchmark::gather_perf, Benchmark::scatter_perf});
          const auto name = fmt::format("h200-{}.txt", form.benchmark == Benchmark::gather_perf ? "gather" : "scatter");
          CHECK(table_of(plain_log(form, ranks, true, devices), name).benchmark == form.benchmark);
          continue;
        }
        REQUIRE(table.benchmark.has_value());
        CHECK(*table.benchmark == form.benchmark);
        CHECK(table.possible_benchmarks.empty());
        CHECK(table.warnings.empty());
        REQUIRE(table.rows.size() == 10);
        CHECK(table.rows[3].root == form.root);
      }
    }
  }
}

TEST_CASE("an unchecked log leaves open only what nothing tells apart") {
  for (const auto& form : k_forms) {
    for (const int ranks : {2, 8}) {
      CAPTURE(to_string(form.benchmark));
      CAPTURE(ranks);
      const auto table = table_of(plain_log(form, ranks, false, DeviceLines::named));
      std::vector<Benchmark> open{form.benchmark};
      if (form.benchmark == Benchmark::all_gather_perf) open.push_back(Benchmark::alltoall_perf);
      if (form.benchmark == Benchmark::alltoall_perf) open.push_back(Benchmark::all_gather_perf);
      if (form.benchmark == Benchmark::gather_perf) open.push_back(Benchmark::scatter_perf);
      if (form.benchmark == Benchmark::scatter_perf) open.push_back(Benchmark::gather_perf);
      // 2(n-1)/n of two ranks is 1.
      if (form.benchmark == Benchmark::all_reduce_perf && ranks == 2) open.push_back(Benchmark::sendrecv_perf);
      if (form.benchmark == Benchmark::sendrecv_perf && ranks == 2) open.push_back(Benchmark::all_reduce_perf);
      std::sort(open.begin(), open.end());
      if (open.size() == 1) {
        CHECK(table.benchmark == form.benchmark);
      } else {
        CHECK_FALSE(table.benchmark.has_value());
        CHECK(table.possible_benchmarks == open);
      }
      auto said = table;
      set_benchmark(said, form.benchmark);
      CHECK(said.benchmark == form.benchmark);
      CHECK(said.possible_benchmarks.empty());
      CHECK(said.header.num_ranks == ranks);
      REQUIRE(said.rows.back().busbw.has_value());
      CHECK(said.rows.back().busbw->bytes_per_s ==
            test::approx(said.rows.back().printed_busbw->bytes_per_s).epsilon(0.001));
    }
  }
}

TEST_CASE("a file's name decides where the rows leave it open, and is corrected where they do not") {
  const auto open = plain_log(k_forms[1], 8, false, DeviceLines::named);
  CHECK(table_of(open, "alltoall-8gpu.log").benchmark == Benchmark::alltoall_perf);
  CHECK(table_of(open, "all_gather-8gpu.log").benchmark == Benchmark::all_gather_perf);
  const auto wrong = table_of(plain_log(k_forms[3], 8, true, DeviceLines::named), "allreduce-8gpu.log");
  CHECK(wrong.benchmark == Benchmark::broadcast_perf);
  REQUIRE(wrong.warnings.size() == 1);
  CHECK(wrong.warnings[0].message == "the file is named for all_reduce_perf, its columns are of broadcast_perf");
}

TEST_CASE("the number of ranks comes with the collective when no device line says it") {
  for (const auto& form : k_forms) {
    if (bus_bandwidth_factor(form.benchmark, 4) == 1 || is_ambiguous(form)) continue;
    for (const int ranks : {4, 8, 16}) {
      const auto table = table_of(plain_log(form, ranks, true, DeviceLines::unnamed));
      CAPTURE(to_string(form.benchmark));
      CHECK(table.header.num_ranks == ranks);
    }
  }
}

TEST_CASE("rows of an old all_gather are read by their times and its algbw is converted") {
  for (const int ranks : {2, 4, 8, 12, 16}) {
    for (const bool with_devices : {true, false}) {
      CAPTURE(ranks);
      CAPTURE(with_devices);
      const auto table = table_of(old_all_gather(ranks, with_devices, 26));
      REQUIRE(table.rows.size() == 26);
      CHECK(table.header.num_ranks == ranks);
      REQUIRE(table.warnings.size() == 1);
      CHECK(table.warnings[0].message.find("algbw is size (n-1)/n / time with n = " + std::to_string(ranks)) == 0);
      const auto& last = table.rows.back();
      CHECK(last.time.us() == test::approx(30 + static_cast<double>(last.size.value) / 120e3).epsilon(1e-5));
      CHECK(last.in_place_time.has_value());
      CHECK(last.printed_algbw->bytes_per_s == test::approx(last.bandwidth->bytes_per_s).epsilon(1e-3));
    }
  }
}

TEST_CASE("old rows convert only when one number of ranks explains every row") {
  // The device lines name another number of ranks than the algbw.
  auto text = old_all_gather(8, false, 26);
  std::string devices;
  for (int rank = 0; rank < 4; ++rank)
    devices += fmt::format("#   Rank {:2} Pid {} on node0 device {:2} [0x0{}] V100\n", rank, 9 + rank, rank, rank + 1);
  text.insert(text.find("#       size"), devices);
  CHECK(table_of(text).rows.size() < 26);
  // One row at full rate contradicts the others.
  text = old_all_gather(8, false, 20);
  text += "   134217728      4194304 float  1148.48  116.87  116.87 0e+00  1148.48  116.87  116.87 0e+00\n";
  const auto mixed = table_of(text);
  CHECK(mixed.rows.size() < 20);
  CHECK(mixed.warnings.size() > 3);
  // Two rows may agree by chance: a digit lost of each.
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n";
  const std::string row = " 1048576 262144 float sum -1 20.00 26.21 26.21 0 20.00 26.21 26.21 0\n";
  CHECK(table_of(header + row + row).rows.empty());
}

TEST_CASE("an abridged list of devices still says how many ranks there are") {
  auto text = plain_log(k_forms[0], 16, true, DeviceLines::named);
  for (const int cut : {2, 3, 5, 11, 12}) {
    const auto at = text.find(fmt::format("#  Rank {:2} ", cut));
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  const auto table = table_of(text);
  CHECK(table.header.num_ranks == 16);
  CHECK(table.header.num_hosts == 2);
  CHECK(table.header.ranks_per_host == 8);
}

TEST_CASE("the rows of every measured log allow the collective that its command or name says") {
  int checked = 0;
  int recognised = 0;
  const auto files = test::logs_below({test::measurements_folder()});
  if (files.empty()) MESSAGE("skipped: no measurements");
  for (const auto& path : files) {
    const auto logs = read_logs(path.string());
    if (!logs) continue;
    for (const auto& table : *logs) {
      if (table.format != LogFormat::nccl_tests || !table.benchmark || table.rows.empty()) continue;
      if (table.header.unit == "ms") continue;  // has no columns of nccl-tests
      CAPTURE(path.filename().string());
      const auto possible = readers::benchmarks_by_content(table);
      CHECK(holds(possible, *table.benchmark));
      ++checked;
      recognised += possible.size() == 1 ? 1 : 0;
    }
  }
  MESSAGE(recognised << " of " << checked << " tables are recognised by their rows alone");
  if (!files.empty()) CHECK(recognised * 10 >= checked * 6);
}
