// SPDX-License-Identifier: Apache-2.0
// Fits that have little or nothing to work with end with an answer or a plain message: few rows, equal rows, rows that
// contradict each other, parameters that nothing depends on, everything held out.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "fabricast/calibration.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using test::Folder;

namespace {

namespace fs = std::filesystem;

std::string topology() { return (fs::path(FABRICAST_SOURCE_DIR) / "topologies" / "fdr-kepler-pair.yaml").string(); }

/// Rows of osu_bw: size, MB/s.
std::string osu_bw(const std::string& rows) {
  return "# OSU MPI Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n" + rows;
}

struct Outcome {
  std::optional<CalibrationReport> report;
  std::string message;
};

Outcome calibrate_text(const Folder& folder, const std::string& logs, const std::string& fit,
                       const std::string& further = {}) {
  folder.write("c.yaml", fmt::format("schema: fabricast/calibration/1\nname: x\ntopology: {}\nlogs:\n{}fit:\n{}{}",
                                     topology(), logs, fit, further));
  Outcome out;
  const auto calibration = load_calibration((folder.path / "c.yaml").string());
  if (!calibration) {
    out.message = render(calibration.error());
    return out;
  }
  auto report = calibrate(*calibration);
  if (!report) out.message = render(report.error());
  if (report) out.report = std::move(*report);
  return out;
}

std::string log_entry(const std::string& file, const std::string& keys = {}) {
  return fmt::format("  - {{file: {}, workload: {{benchmark: osu_bw}}{}}}\n", file, keys);
}

void check_sound(const CalibrationReport& report) {
  CHECK(std::isfinite(report.model_error));
  CHECK(std::isfinite(report.extrapolation));
  REQUIRE_FALSE(report.errors.empty());
  for (const auto& row : report.fitted.all()) {
    const auto& [name, p] = row;
    CAPTURE(row.first);
    CHECK(std::isfinite(p.value));
    CHECK(p.low <= p.value);
    CHECK(p.value <= p.high);
  }
  for (const auto& p : report.points) CHECK(p.predicted.ps > 0);
  for (const auto& one : report.errors) CHECK(std::isfinite(one.summary.p90_abs_error));
  CHECK(parameters_yaml(report).find("nan") == std::string::npos);
}

}  // namespace

TEST_CASE("a fit of a parameter that no forecast depends on is refused by name") {
  const Folder folder("unused");
  folder.write("a.txt", osu_bw("1024 1000.00\n4096 3000.00\n"));
  const auto out = calibrate_text(folder, log_entry("a.txt"), "  nccl.base_time.ring.ll: {}\n");
  CHECK_FALSE(out.report.has_value());
  CHECK(out.message.find("c.yaml:7:3: error: no forecast of the fitted logs depends on 'nccl.base_time.ring.ll'") !=
        std::string::npos);
  CHECK(out.message.find("--explain") != std::string::npos);
}

TEST_CASE("more unused parameters than fit a line are counted") {
  const Folder folder("unused-many");
  folder.write("a.txt", osu_bw("1024 1000.00\n4096 3000.00\n"));
  const auto out = calibrate_text(folder, log_entry("a.txt"), "  nccl.base_time.ring.*: {}\n");
  CHECK_FALSE(out.report.has_value());
  CHECK(out.message.find("'nccl.base_time.ring.ll', ") != std::string::npos);
  CHECK(out.message.find(" more\n") != std::string::npos);
}

TEST_CASE("a calibration whose points are all held out says so") {
  const Folder folder("all-held-out");
  folder.write("a.txt", osu_bw("1024 1000.00\n4096 3000.00\n"));
  const auto fit = std::string("  mpi.open-mpi-ucx.*: {}\n");
  const std::pair<std::string, std::string> ways[] = {{", hold_out: on", ""},
                                                      {"", "hold_out: {sizes: [1 KiB, 4 KiB]}\n"},
                                                      {"", "hold_out: {ranks: [2]}\n"},
                                                      {"", "hold_out: {hosts: [2]}\n"}};
  for (const auto& row : ways) {
    const auto& [keys, further] = row;
    CAPTURE(row.first + row.second);
    const auto out = calibrate_text(folder, log_entry("a.txt", keys), fit, further);
    CHECK_FALSE(out.report.has_value());
    CHECK(out.message.find("all 2 measured points are held out, none is left to fit") != std::string::npos);
  }
}

TEST_CASE("a log that says less of a parameter than is known already leaves it at its start, with a warning") {
  const Folder folder("undetermined");
  folder.write("a.txt", osu_bw("1024 1000.00\n4096 3000.00\n"));
  const auto out = calibrate_text(folder, log_entry("a.txt"), "  connect-ib.latency: {prior: 1e-4}\n");
  REQUIRE_MESSAGE(out.report.has_value(), out.message);
  check_sound(*out.report);
  REQUIRE(out.report->parameters.size() == 1);
  CHECK(out.report->parameters[0].parameter.value == out.report->parameters[0].start);
  CHECK(render(out.report->warnings).find("say less of every parameter than is known already") != std::string::npos);
}

TEST_CASE("logs without a usable row are refused, not fitted") {
  const Folder folder("rowless");
  for (const char* rows : {"", "1024 nan\n", "1024 inf\n", "1024 0.00\n", "1024 -3\n", "1024\n"}) {
    CAPTURE(rows);
    folder.write("a.txt", osu_bw(rows));
    const auto out = calibrate_text(folder, log_entry("a.txt"), "  mpi.open-mpi-ucx.*: {}\n");
    CHECK_FALSE(out.report.has_value());
    CHECK(out.message.find("error: ") != std::string::npos);
  }
}

TEST_CASE("fits of random few rows and parameters end with an answer or a message") {
  const Folder folder("few");
  const std::vector<std::string> sizes{"1", "1", "64", "1024", "4096", "65536", "4194304"};
  const std::vector<std::string> rates{"0.01", "1.00", "900.00", "900.00", "3000.00", "6000.00", "1e9", "nan", "0"};
  const std::vector<std::string> parameters{"mpi.open-mpi-ucx.overhead",
                                            "mpi.open-mpi-ucx.message_gap",
                                            "connect-ib.latency",
                                            "connect-ib.payload_efficiency",
                                            "verbs.*",
                                            "nccl.base_time.*",
                                            "xeon-ivybridge.p2p_read_bandwidth",
                                            "pcie.*"};
  const std::vector<std::string> keys{"{}", "{}", "{prior: 0}", "{prior: 1e-6}", "{prior: 100}"};
  const std::vector<std::string> further{"",
                                         "",
                                         "hold_out: {every: 2}\n",
                                         "loss: squared\n",
                                         "starts: 2\n",
                                         "intervals: bootstrap\nbootstrap_samples: 10\n",
                                         "noise: 1e-4\n"};
  int fitted = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    std::string logs;
    for (std::uint64_t log = 0; log < 1 + random.next(2); ++log) {
      std::string rows;
      for (std::uint64_t row = random.next(4); row > 0; --row)
        rows += random.pick(sizes) + " " + random.pick(rates) + "\n";
      const auto name = fmt::format("{}-{}.txt", seed, log);
      folder.write(name, osu_bw(rows.empty() ? "1024 1000.00\n" : rows));
      logs += log_entry(name, random.next(4) == 0 ? ", weight: 1e-6" : log > 0 ? ", hold_out: on" : "");
    }
    std::string fit = fmt::format("  {}: {}\n", random.pick(parameters), random.pick(keys));
    if (random.next(2) == 0) fit += fmt::format("  mpi.open-mpi-ucx.device_overhead: {}\n", random.pick(keys));
    const auto out = calibrate_text(folder, logs, fit, random.pick(further));
    if (out.report) check_sound(*out.report);
    if (!out.report) CHECK(out.message.find("error: ") != std::string::npos);
    fitted += out.report ? 1 : 0;
  }
  CHECK(fitted > 10);
}

TEST_CASE("rows of nccl-tests that move nothing are no points of a fit, messages of 0 bytes of OSU are") {
  const Folder folder("empty-rows");
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n";
  folder.write("n.txt", header +
                            "           0             0     float     sum      -1     0.50    0.00    0.00      0\n"
                            "        1024           256     float     sum      -1    20.00    0.05    0.05      0\n"
                            "     1048576        262144     float     sum      -1    90.00   11.65   11.65      0\n"
                            "    16777216       4194304     float     sum      -1   900.00   18.64   18.64      0\n");
  folder.write("o.txt",
               "# OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n0 1.10\n1 1.12\n1024 1.60\n65536 14.0\n");
  const auto points = [&](const std::string& file, const std::string& workload, const std::string& parameter) {
    const auto out = calibrate_text(folder, fmt::format("  - {{file: {}, workload: {{{}}}}}\n", file, workload),
                                    "  " + parameter + ": {prior: 0.5}\n");
    CAPTURE(out.message);
    REQUIRE(out.report.has_value());
    return out.report->points.size();
  };
  CHECK(points("n.txt", "benchmark: all_reduce_perf, gpus: 2", "connect-ib.latency") == 3);
  CHECK(points("o.txt", "benchmark: osu_latency", "connect-ib.latency") == 4);
}

TEST_CASE("a log that is named again, by its name or as a copy, counts once") {
  const Folder folder("again");
  const auto first = osu_bw("1024 1000.00\n4096 3000.00\n16384 4500.00\n65536 5500.00\n262144 5900.00\n");
  folder.write("a.txt", first);
  folder.write("copy.txt", first);
  folder.write("stamped.txt", "[1,0]<stdout>:" + first);
  folder.write("b.txt", osu_bw("1024 1001.00\n4096 3010.00\n16384 4510.00\n65536 5510.00\n262144 5910.00\n"));
  const std::string fit = "  mpi.*: {}\n  verbs.*: {}\n";
  const auto once = calibrate_text(folder, log_entry("a.txt") + log_entry("b.txt"), fit);
  REQUIRE(once.report.has_value());
  for (const std::string again : {"a.txt", "copy.txt", "stamped.txt"}) {
    CAPTURE(again);
    const auto twice = calibrate_text(folder, log_entry("a.txt") + log_entry("b.txt") + log_entry(again), fit);
    REQUIRE(twice.report.has_value());
    CHECK(twice.report->logs.size() == once.report->logs.size());
    CHECK(twice.report->model_error == once.report->model_error);
    CHECK(render(twice.report->warnings).find("holds the same measurement as") != std::string::npos);
  }
  CHECK(render(once.report->warnings).find("same measurement") == std::string::npos);
}

TEST_CASE("a log of other ranks or hosts than its workload's is no part of a fit") {
  const Folder folder("elsewhere");
  const std::string rows = "# Size  Avg Latency(us)\n1024 10.00\n4096 12.00\n16384 20.00\n";
  const auto log = [&](int ranks, int hosts) {
    return fmt::format(
               "# gpus: {0}\n# hosts: {1}\n# benchmark: osu_allreduce, {0} ranks\n"
               "# ---- raw output below ----\n# OSU MPI Allreduce Latency Test v7.2\n",
               ranks, hosts) +
           rows;
  };
  const std::string entry = "  - {file: a.txt, workload: {benchmark: osu_allreduce, ranks: 2, ranks_per_host: 1}}\n";
  folder.write("a.txt", log(2, 2));
  const auto own = calibrate_text(folder, entry, "  mpi.*: {}\n  verbs.*: {}\n");
  CHECK(own.message.empty());
  folder.write("a.txt", log(16, 2));
  CHECK(calibrate_text(folder, entry, "  mpi.*: {}\n").message.find("has 16 ranks, its workload 2") !=
        std::string::npos);
  folder.write("a.txt", log(2, 1));
  CHECK(calibrate_text(folder, entry, "  mpi.*: {}\n").message.find("has 1 hosts, its workload 2") !=
        std::string::npos);
}

TEST_CASE("a calibration takes no log of another test") {
  const Folder folder("other");
  folder.write("a.txt",
               "# OSU MPI_Put Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n1024 1000.00\n4096 3000.00\n");
  const auto out = calibrate_text(folder, log_entry("a.txt"), "  mpi.*: {}\n");
  CHECK_FALSE(out.report.has_value());
  CHECK(out.message.find("OSU MPI_Put Bandwidth Test") != std::string::npos);
  CHECK(out.message.find("osu_bw") != std::string::npos);
}
