// SPDX-License-Identifier: Apache-2.0
// Readers meet logs cut, glued and garbled at random (same mutations every run): they never fail, and no row they keep
// has a time or a size that makes no sense.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>

#include "fabricast/measurement.hpp"

using namespace fabricast;

namespace {

const std::string k_nccl =
    "# nccl-tests version 2.20.0 nccl-headers=22809 nccl-library=22809\n# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 2 minBytes 8192 maxBytes 8589934592 step: 2(factor) warmup iters: 10 iters: 100 agg iters: 1 "
    "graph: 0\n"
    "#  Rank  0 Group  0 Pid 1000 on n0 device  0 [0000:00:06] NVIDIA H200\n"
    "#  Rank  1 Group  0 Pid 1000 on n0 device  1 [0000:00:07] NVIDIA H200\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "     1048576        262144     float     sum      -1    20.29   51.68   51.68       0    15.95   65.73   65.73    "
    "   0\n"
    "     2097152        524288     float     sum      -1    29.59   70.89   70.89       0    29.52   71.04   71.04    "
    " N/A\n";
const std::string k_osu =
    "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# [ pairs: 4 ] [ window size: 64 ]\n# Size MB/s "
    "Messages/s\n"
    "1 16.42 16422494.33\n4194304 24782.62 5908.64\n# OSU MPI-CUDA Allreduce Latency Test v7.4\n"
    "# Size Avg Latency(us) Min Latency(us) Max Latency(us) Iterations\n1 174.36 135.35 221.55 1000\n";
const std::string k_perftest =
    " RDMA_Write BW Test\n Number of qps   : 2\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
    " 65536 5000 394.31 394.25 0.751972\n Send Latency Test\n"
    " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% percentile[usec]\n"
    " 2 20000 1.91 13.87 1.99 2.01 0.32 2.13\n";
const std::string k_json =
    R"({"args":["all_reduce_perf"],"nccl_version":22809,"config":{"ngpus":2,"devices":[{"rank":0,"hostname":"n"}]},"results":
[{"size":8,"out_of_place":{"time":24.3,"alg_bw":0.1,"bus_bw":0.1,"nwrong":"nan"},"in_place":null},
{"size":16,"out_of_place":null,"in_place":{"time":24.3}}],"test_info":{"a":"Send BW Test"}})";

const std::string k_others =
    "Device: 0, V100, pciBusID: 3d, x\nUnidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D  0  1 \n 0 778.36 "
    "9.55\n"
    "bandwidthTest-D2D, Bandwidth = 4.0 GB/s, Time = 0.0 s, Size = 6000 bytes, NumDevsUsed = 1\n"
    " Host to Device Bandwidth, 1\n PINNED Memory Transfers\n Transfer Size (Bytes) Bandwidth(GB/s)\n 32000000 12.5\n"
    "## copy gpu4: bytes\th2d_pinned_us\n4096\t8.192\n## peer copy p2p=1: src\tdst\tbw_256MiB_GBps\n0\t1\t390.83\n"
    "## concurrent pinned copies: dir\tk_gpus\tper_gpu_GBps...\nh2d\t2\t55.11\t55.13\n"
    "NCCL INFO Algorithm | Tree | Ring |\nNCCL INFO AllReduce | 1/ 2 | 1/ 2 | 1/ 2 | 1/ 2 | 1/ 2 | 1/ 2 |\n"
    "NCCL INFO AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n";

std::size_t below(std::mt19937_64& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// One random edit: cut, delete, double, overwrite, insert a nasty piece, or swap two spans.
void mutate(std::string& text, std::mt19937_64& random) {
  constexpr std::array<const char*, 16> k_pieces{"[1,0]<stdout>:",
                                                 "\r",
                                                 "\t",
                                                 "nan",
                                                 "-",
                                                 "1e999",
                                                 "99999999999999999999",
                                                 "#",
                                                 "\n",
                                                 "0x7",
                                                 "_",
                                                 "[0]",
                                                 "inf",
                                                 "1e-400",
                                                 "2026-11-21",
                                                 "\x1b["};
  const auto at = below(random, text.size());
  switch (random() % 6) {
    case 0:
      text.resize(at);
      break;
    case 1:
      text.erase(at, 1 + below(random, 12));
      break;
    case 2:
      text.insert(at, text.substr(below(random, text.size()), 1 + below(random, 60)));
      break;
    case 3:
      if (!text.empty()) text[at] = static_cast<char>(random() % 256);
      break;
    case 4:
      text.insert(at, k_pieces[random() % k_pieces.size()]);
      break;
    case 5:
      if (!text.empty()) text[at] = static_cast<char>('0' + random() % 10);
      break;
  }
}

void check_sane(const MeasuredLog& log) {
  for (const auto& row : log.rows) {
    CHECK(row.time.ps > 0);
    CHECK(row.size.value >= 0);
    if (row.bandwidth) CHECK(std::isfinite(row.bandwidth->bytes_per_s));
    if (row.in_place_time) CHECK(row.in_place_time->ps > 0);
  }
  for (const auto& copy : log.copies) {
    if (copy.time) CHECK(copy.time->ps >= 0);
    if (copy.bandwidth) CHECK(std::isfinite(copy.bandwidth->bytes_per_s));
  }
  for (const auto& matrix : log.matrices) CHECK(matrix.row_devices.size() == matrix.value.size());
  CHECK(log.warnings.size() <= 101);
}

}  // namespace

TEST_CASE("no mutation of a log makes a reader fail or return a senseless row") {
  for (const auto& seed_text : {k_nccl, k_osu, k_perftest, k_json, k_others}) {
    std::mt19937_64 random(20261121);
    for (int round = 0; round < 4000; ++round) {
      std::string text = seed_text;
      const auto edits = 1 + below(random, 6);
      for (std::size_t i = 0; i < edits; ++i) mutate(text, random);
      CAPTURE(text);
      const auto logs = read_logs_text(text, "mutated.txt");
      if (!logs) {
        CHECK(logs.error().at(0).severity == Severity::error);
        continue;
      }
      for (const auto& log : *logs) check_sane(log);
    }
  }
}

TEST_CASE("a damaged digit in an nccl-tests time is not taken for a measurement") {
  // Any other digit in front changes the time by more than the printed bandwidth allows.
  for (char digit = '0'; digit <= '9'; ++digit) {
    if (digit == '2') continue;
    auto text = k_nccl;
    text[text.find("20.29")] = digit;
    const auto log = read_log_text(text, "log.txt");
    REQUIRE(log.has_value());
    CAPTURE(digit);
    CHECK(log->rows.size() == 1);
    CHECK(log->warnings.size() == 1);
  }
}

TEST_CASE("text without any table is refused with the name of the file") {
  for (const std::string text : {"", "\n", "hello", "# size", "{}", "{", "\xEF\xBB\xBF", "1 2 3\n"}) {
    const auto logs = read_logs_text(text, "x.txt");
    REQUIRE_FALSE(logs.has_value());
    CHECK(logs.error()[0].message == "no benchmark table in 'x.txt'");
  }
}

TEST_CASE("a missing file and a directory are refused with the reason") {
  const auto missing = read_logs("/nonexistent/log.txt");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error()[0].message == "cannot read '/nonexistent/log.txt': No such file or directory");
  const auto folder = read_log("/");
  REQUIRE_FALSE(folder.has_value());
  CHECK(folder.error()[0].message == "cannot read '/': it is a directory");
}

TEST_CASE("a long log of one line is read in linear time") {
  const std::string blanks(5'000'000, ' ');
  const std::string tags = [] {
    std::string text;
    for (int i = 0; i < 500'000; ++i) text += "[1,0]";
    return text;
  }();
  CHECK_FALSE(read_logs_text(blanks + tags, "x.txt").has_value());
}
