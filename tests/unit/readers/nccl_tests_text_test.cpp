// SPDX-License-Identifier: Apache-2.0
// Every layout and every damage known of nccl-tests text, in tables cut down to a few rows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "fabricast/measurement.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// The only table of a text, which must be there.
MeasuredLog table_of(const std::string& text, const std::string& name = "log.txt") {
  const auto log = read_log_text(text, name);
  REQUIRE(log.has_value());
  return *log;
}

const std::string k_old_header =
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n";
const std::string k_header =
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)\n";
const std::string k_row =
    "     1048576        262144     float     sum      -1    20.29   51.68   51.68       0    15.95   65.73   65.73    "
    "   0";

}  // namespace

TEST_CASE("the layout without root and with an error column is read") {
  const auto log = table_of(
      "# nThread 1 nGpus 1 minBytes 4 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 100 validation: 1 \n"
      "#   Rank  0 Pid 2163724 on      a0008 device  0 [0x27] A100-SXM4-40GB\n"
      "#   Rank  1 Pid 2163725 on      a0009 device  0 [0x27] A100-SXM4-40GB\n" +
      k_old_header +
      "       16384          4096   float     sum    44.99    0.36    0.36  5e-07    44.37    0.37    0.37  5e-07\n"
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 7.41855 \n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].size == 16384_B);
  CHECK(log.rows[0].time == 44.99_us);
  CHECK(log.rows[0].in_place_time == 44.37_us);
  CHECK(log.rows[0].datatype == "float");
  CHECK(log.rows[0].reduction == "sum");
  CHECK(log.rows[0].line == 6);
  CHECK_FALSE(log.rows[0].num_wrong.has_value());
  CHECK(log.header.num_ranks == 2);
  CHECK(log.header.num_hosts == 2);
  CHECK(log.header.ranks_per_host == 1);
  CHECK(log.header.ranks[1].bus_id == "0x27");
  CHECK(log.header.device_names == std::vector<std::string>{"A100-SXM4-40GB"});
  CHECK(log.header.warmup_iterations == 5);
  CHECK(log.header.iterations == 100);
  CHECK(log.header.launch == LaunchMode::process_per_gpu);
}

TEST_CASE("an old broadcast has root in place of redop") {
  const auto log = table_of(
      "#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "           4             1   float       0     6.29    0.00    0.00  0e+00     5.08    0.00    0.00  0e+00\n",
      "broadcast.txt");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time == 6.29_us);
  CHECK(log.rows[0].in_place_time == 5.08_us);
  CHECK(log.benchmark == Benchmark::broadcast_perf);
}

TEST_CASE("a release of NCCL named above the table is that of tables that name none") {
  const std::string top = "NCCL version 2.18.3+cuda12.2\n";
  const std::string preamble = "# nThread 1 nGpus 2 minBytes 4 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n";
  const auto logs = [&](const std::string& text) {
    const auto read = read_logs_text(text, "all_reduce_perf.log");
    REQUIRE(read.has_value());
    std::vector<std::string> out;
    for (const auto& one : *read) out.push_back(one.header.nccl_version);
    return out;
  };
  const auto rows = k_header + k_row + "\n";
  CHECK(logs(top + preamble + rows) == std::vector<std::string>{"2.18.3"});
  CHECK(logs(top + preamble + rows + preamble + "NCCL version 2.21.5+cuda12.4\n" + rows) ==
        std::vector<std::string>{"2.18.3", "2.21.5"});
  CHECK(logs(preamble + rows) == std::vector<std::string>{""});
}

TEST_CASE("the layout with root, versions and full bus ids is read") {
  const auto log = table_of(
      "# nccl-tests version 2.20.0 (b4d5bee) nccl-headers=23102 nccl-library=22809\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 2 minBytes 8192 maxBytes 8589934592 step: 2(factor) warmup iters: 10 iters: 100 agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n"
      "#  Rank  0 Group  0 Pid 1666603 on spark-d708 device  0 [000f:01:00] NVIDIA GB10\n"
      "#  Rank  1 Group  0 Pid 1666603 on spark-d708 device  1 [000f:02:00] NVIDIA GB10\n" +
      k_header + k_row + "\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.benchmark == Benchmark::all_reduce_perf);
  CHECK(log.header.tool_version == "2.20.0");
  CHECK(log.header.nccl_version == "2.28.9");
  CHECK(log.header.launch == LaunchMode::one_thread);
  CHECK(log.header.aggregated_iterations == 1);
  CHECK(log.header.iterations == 100);
  CHECK(log.rows[0].num_wrong == 0);
  // 1,048,576 B in 20.29 us; 2 ranks: factor 1
  CHECK(log.rows[0].busbw->bytes_per_s == test::approx(1048576 / 20.29e-6));
  CHECK(log.header.ranks[0].bus_id == "000f:01:00");
}

TEST_CASE("the layout with per-iteration statistics gives minimum, maximum, percentile and deviation") {
  const auto log = table_of(
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min "
      "i_max "
      "i_p99 i_cv%\n"
      "1048576 262144 float sum -1 20.00 52.43 52.43 0 18.50 30.25 29.00 5.00 21.00 49.93 49.93 0 19 31 30 5\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time == 20_us);
  CHECK(log.rows[0].min_time == 18.5_us);
  CHECK(log.rows[0].max_time == 30.25_us);
  CHECK(log.rows[0].std_dev == 1_us);
  REQUIRE(log.rows[0].percentiles.size() == 1);
  CHECK(log.rows[0].percentiles[0].share == 0.99);
  CHECK(log.rows[0].percentiles[0].time == 29_us);
  CHECK(log.rows[0].in_place_time == 21_us);
}

TEST_CASE("rows are read without any header") {
  const auto with_root = table_of("nThread 1 nGpus 1\n" + k_row + "\n");
  REQUIRE(with_root.rows.size() == 1);
  CHECK(with_root.rows[0].in_place_time == 15.95_us);
  const auto without = table_of(
      "nThread 1 nGpus 1\n 16384 4096 float sum 44.99 0.36 0.68 5e-07 44.37 0.37 0.69 5e-07\n"
      " 1048576 262144 float sum -1 20.00 52.43 52.43 0 18 30 29 5 21.00 49.93 49.93 0 19 31 30 5\n");
  REQUIRE(without.rows.size() == 2);
  CHECK(without.rows[0].time == 44.99_us);
  CHECK(without.rows[1].max_time == 30_us);
}

TEST_CASE("time stamps at the end of rows, N/A and cputime do not shift columns") {
  const auto log = table_of(
      "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n"
      "1048576 262144 float sum -1 7.11 51.68 51.68 N/A 6.02 65.73 65.73 N/A 2026-11-21 01:00:00\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time.us() == test::approx(1048.576 / 51.68));
  CHECK(log.rows[0].in_place_time->us() == test::approx(1048.576 / 65.73));
  CHECK_FALSE(log.rows[0].num_wrong.has_value());
}

TEST_CASE(
    "with -C the times are the CPU's: the wall time stands in algbw, rows whose algbw has too few digits are lost") {
  for (const double algbw : {0.00, 0.23, 0.49, 0.51, 1.99, 51.68, 412.0}) {
    CAPTURE(algbw);
    const auto half = fmt::format("5.00 {0:.2f} {0:.2f} 0", algbw);
    const auto log = table_of("# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n" +
                              fmt::format("1048576 262144 float sum -1 {0} {0}\n", half));
    CHECK(log.rows.size() == (algbw > 0.5 ? 1 : 0));
    REQUIRE_FALSE(log.warnings.empty());
    CHECK(log.warnings[0].message.find("cputime") != std::string::npos);
    if (log.rows.empty()) {
      REQUIRE(log.warnings.size() == 2);
      CHECK(log.warnings[1].message.find("too few digits") != std::string::npos);
    } else {
      CHECK(log.rows[0].time.us() == test::approx(1048.576 / algbw));
      CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(algbw * 1e9));
    }
  }
}

TEST_CASE("an error of ten characters at the end of a row without a header is no date") {
  const auto log =
      table_of("nThread 1 nGpus 1\n 16384 4096 float sum 44.99 0.36 0.68 5e-07 44.37 0.37 0.69 1.2345e-05\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time == 44.99_us);
  CHECK(log.rows[0].in_place_time == 44.37_us);
}

TEST_CASE("a log whose leading '#' was lost reads the same") {
  const auto log = table_of(
      "nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
      "  Rank  0 Pid 7 on n0 device  0 [0x27] V100\n  Rank  1 Pid 7 on n0 device  1 [0x2a] V100\n"
      "      size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "       (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
      "       16384          4096   float     sum    44.99    0.36    0.68  5e-07    44.37    0.37    0.69  5e-07\n");
  CHECK(log.rows.size() == 1);
  CHECK(log.header.num_ranks == 2);
}

TEST_CASE("mpirun's rank tags are taken out, also from the middle of a row") {
  const auto log = table_of("[1,0]<stdout>:" + k_header.substr(0, k_header.find('\n') + 1) +
                            "[1,0]<stdout>:  1048576  262144  float  sum  -1[0]    20.29   51.68   51.68  0    15.95   "
                            "65.73   65.73       0\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time == 20.29_us);
}

TEST_CASE("NCCL's debug lines between rows are passed over, and its version is noted") {
  const auto log = table_of(k_header + k_row +
                            "\nnode0:77:78 [0] NCCL INFO Connected all rings\n"
                            "node0:77:78 [0] NCCL INFO NCCL version 2.8.4+cuda11.1\n" +
                            k_row + "\n");
  CHECK(log.rows.size() == 2);
  CHECK(log.header.nccl_version == "2.8.4");
  CHECK(log.warnings.empty());
}

TEST_CASE("a row with a blank out-of-place half is an in-place row") {
  const auto log = table_of(k_header +
                            "     1048576        262144     float     sum      -1                                  "
                            "15.95   65.73   65.73       0\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].is_in_place_only);
  CHECK(log.rows[0].time == 15.95_us);
  CHECK(log.rows[0].in_place_time == 15.95_us);
}

TEST_CASE("a last line that breaks off keeps the out-of-place half if it is whole") {
  const auto whole_half = table_of(k_header + k_row + "\n" + k_row.substr(0, k_row.find("15.95") + 3));
  REQUIRE(whole_half.rows.size() == 2);
  CHECK(whole_half.rows[1].time == 20.29_us);
  CHECK_FALSE(whole_half.rows[1].in_place_time.has_value());
  CHECK_FALSE(whole_half.rows[1].is_in_place_only);
  const auto cut_time = table_of(k_header + k_row + "\n" + k_row.substr(0, k_row.find("20.29") + 3));
  CHECK(cut_time.rows.size() == 1);
  REQUIRE(cut_time.warnings.size() == 1);
  CHECK(cut_time.warnings[0].location.line == 4);
}

TEST_CASE("a row cut exactly after its first half is out of place, not in place") {
  const auto log = table_of(k_header + k_row.substr(0, k_row.find("  15.95") - 2));
  REQUIRE(log.rows.size() == 1);
  CHECK_FALSE(log.rows[0].is_in_place_only);
  CHECK(log.rows[0].time == 20.29_us);
}

TEST_CASE("a row with a digit lost is dropped and reported, since algbw no longer fits") {
  const auto log =
      table_of(k_header + k_row + "\n" +
               "     1048576        262144     float     sum      -1    2.29   51.68   51.68       0 15.95 65.73 "
               "65.73 0\n");
  CHECK(log.rows.size() == 1);
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].message == "row lost: algbw is not size / time, so a digit or a column is missing");
  CHECK(log.warnings[0].location.line == 4);
}

TEST_CASE("carriage returns, tabs, colours and a byte order mark change nothing") {
  const auto log = table_of(
      "\xEF\xBB\xBF# size\tcount\ttype\tredop\troot\ttime\talgbw\tbusbw\t#wrong\ttime\talgbw\tbusbw\t#wrong\r\n"
      "\x1b[32m1048576\t262144\tfloat\tsum\t-1\t20.29\t51.68\t51.68\t0\t15.95\t65.73\t65.73\t0\x1b[0m\r\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].in_place_time == 15.95_us);
}

TEST_CASE("several unconnected processes printing at once are one table with a warning") {
  const std::string preamble =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n#   Rank  0 Pid 1 on n0 device  0 [0x1] V100\n";
  const auto log = table_of(preamble + preamble + k_header + k_header + k_row + "\n" + k_row + "\n");
  CHECK(log.rows.size() == 2);
  CHECK(log.header.num_ranks == 1);
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].location.line == 3);
}

TEST_CASE("a file with several runs gives a table for each") {
  const std::string run =
      "# Collective test starting: NAME\n# nThread 1 nGpus 2 minBytes 8 maxBytes 8\n" + k_header + k_row + "\n";
  auto first = run, second = run;
  first.replace(first.find("NAME"), 4, "all_reduce_perf");
  second.replace(second.find("NAME"), 4, "all_gather_perf");
  const auto logs = read_logs_text(first + second, "log.txt");
  REQUIRE(logs.has_value());
  REQUIRE(logs->size() == 2);
  CHECK((*logs)[0].benchmark == Benchmark::all_reduce_perf);
  CHECK((*logs)[1].benchmark == Benchmark::all_gather_perf);
  const auto only = read_log_text(first + second, "log.txt");
  REQUIRE(only->warnings.size() == 1);
  CHECK(only->warnings[0].message == "the log has 2 tables; the one that begins here is used");
}

TEST_CASE("the benchmark is taken from the command line, else from the file's header, else from its rows and name") {
  CHECK(table_of("$ mpirun -np 2 ./build/reduce_scatter_perf -b 8\n" + k_header + k_row + "\n").benchmark ==
        Benchmark::reduce_scatter_perf);
  CHECK(table_of("# benchmark: nccl-tests alltoall_perf -g 2\n# ---- raw output below ----\n" + k_header + k_row + "\n")
            .benchmark == Benchmark::alltoall_perf);
  CHECK(table_of(k_header + k_row + "\n", "v100-8gpu-allreduce.txt").benchmark == Benchmark::all_reduce_perf);
  // Two ranks: busbw = algbw, summed, no root, an in-place form.
  CHECK(table_of(k_header + k_row + "\n").benchmark == Benchmark::all_reduce_perf);
  // Without the columns that tell.
  CHECK_FALSE(table_of("# size time algbw busbw\n 1048576 20.29 51.68 51.68\n").benchmark.has_value());
}

TEST_CASE("header lines of a collected file are kept by key and are no part of the table") {
  const auto log = table_of(
      "# benchmark: nccl-tests all_reduce_perf\n# gpus: 16\n# hosts: 2, 8 GPUs each\n"
      "# notes: size time algbw busbw; see: the page\n# ---- raw output below ----\n" +
      k_header + k_row + "\n");
  CHECK(log.provenance.at("gpus") == "16");
  CHECK(log.provenance.at("notes") == "size time algbw busbw; see: the page");
  CHECK(log.rows[0].line == 8);
}

TEST_CASE("the printed bandwidths tell the number of ranks when no device line does") {
  // busbw / algbw = 1.875 = 2 (16 - 1) / 16
  const std::string row = "1073741824 268435456 float sum -1 6669.78 160.99 301.85 0 6678.26 160.78 301.47 0\n";
  CHECK(table_of(k_header + row, "x-allreduce.txt").header.num_ranks == 16);
  const auto corrected =
      table_of("# benchmark: all_reduce_perf\n# gpus: 8\n# hosts: 1\n# ---- raw output below ----\n" + k_header + row);
  CHECK(corrected.header.num_ranks == 16);
  REQUIRE(corrected.warnings.size() == 1);
  CHECK(corrected.warnings[0].message ==
        "the printed bandwidths belong to 16 ranks, not to the 8 of the file's header");
}

TEST_CASE("columns cut by the author and digit separators are read by the header that is left") {
  const auto log =
      table_of("  size  time  algbw  busbw\n  (B)  (us)  (GB/s)  (GB/s)\n  1048_576   101.9   10.29   18.00\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].size == 1_MiB);
  CHECK(log.rows[0].time == 101.9_us);
}

TEST_CASE("bus bandwidth factors are those of nccl-tests") {
  CHECK(bus_bandwidth_factor(Benchmark::all_reduce_perf, 8) == test::approx(1.75));
  CHECK(bus_bandwidth_factor(Benchmark::alltoall_perf, 8) == test::approx(0.875));
  CHECK(bus_bandwidth_factor(Benchmark::broadcast_perf, 8) == 1);
  CHECK(bus_bandwidth_factor(Benchmark::sendrecv_perf, 8) == 1);
}
