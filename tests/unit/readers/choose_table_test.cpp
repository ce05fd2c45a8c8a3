// SPDX-License-Identifier: Apache-2.0
// Which rows of a log a scenario is compared with: never those of another test, those of all runs taken alike.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "fabricast/measurement.hpp"
#include "fabricast/validation.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

Scenario scenario_of(Benchmark benchmark, std::optional<int> gpus = {}) {
  Scenario scenario;
  scenario.workloads.resize(1);
  scenario.workloads[0].benchmark = benchmark;
  scenario.workloads[0].gpus = gpus;
  return scenario;
}

MeasuredLog chosen(const std::string& text, Benchmark benchmark, std::optional<int> gpus = {}) {
  const auto tables = read_logs_text(text, "log.txt");
  REQUIRE(tables.has_value());
  auto table = table_for(*tables, scenario_of(benchmark, gpus));
  REQUIRE(table.has_value());
  return *table;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string first_warning(const MeasuredLog& log) {
  return log.warnings.empty() ? std::string() : log.warnings.front().message;
}

std::string osu(const std::string& title, double us = 2, const std::string& column = "Latency (us)") {
  return fmt::format("# OSU {} v7.2\n# Size  {}\n8 {:.2f}\n64 {:.2f}\n", title, column, us, us + 1);
}

std::string perftest(const std::string& title, bool is_bandwidth = true, const std::string& header = "") {
  return " " + title + "\n" + header +
         (is_bandwidth ? " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
                         " 65536 5000 394.31 394.25 0.751972\n"
                       : " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec]\n"
                         " 2 1000 0.90 3.00 1.01 1.02\n");
}

std::string nccl(int gpus, const std::vector<double>& us, const std::string& settings = "agg iters: 1",
                 const std::string& wrong = "0", const std::string& program = "all_reduce_perf") {
  std::string text = "# Collective test starting: " + program + "\n# nThread 1 nGpus " + std::to_string(gpus) +
                     " minBytes 8 warmup iters: 1 iters: 20 " + settings + "\n";
  for (int rank = 0; rank < gpus; ++rank) text += fmt::format("# Rank {0} Pid 1 on n device {0} [0x27] A100\n", rank);
  text += "# size count type redop root time algbw busbw #wrong\n";
  std::int64_t size = 8388608;
  for (const double time : us) {
    const double algbw = static_cast<double>(size) / time * 1e-3;
    text += fmt::format("{} {} float sum -1 {:.3f} {:.2f} {:.2f} {}\n", size, size / 4, time, algbw,
                        algbw * 2 * (gpus - 1) / gpus, wrong);
    size *= 2;
  }
  return text;
}

}  // namespace

TEST_CASE("a title that names another test is refused with both names") {
  struct Case {
    std::string text, name;
    Benchmark wanted;
  };
  const std::vector<Case> cases{
      {osu("MPI_Put Latency Test"), "OSU MPI_Put Latency Test", Benchmark::osu_latency},
      {osu("MPI Multi-threaded Latency Test"), "Multi-threaded", Benchmark::osu_latency},
      {osu("MPI Persistent Latency Test"), "Persistent", Benchmark::osu_latency},
      {osu("OpenSHMEM Put Test"), "OpenSHMEM", Benchmark::osu_latency},
      {osu("NCCL Latency Test"), "OSU NCCL", Benchmark::osu_latency},
      {osu("UPC MEMPUT Latency Test"), "UPC", Benchmark::osu_latency},
      {"# OMB-Py MPI Latency Test\n# Size  Latency (us)\n8 2.00\n", "OMB-Py", Benchmark::osu_latency},
      {osu("MPI Bandwidth Test", 900, "Bandwidth (MB/s)"), "osu_bw", Benchmark::osu_latency},
      {osu("MPI Allgatherv Latency Test"), "Allgatherv", Benchmark::osu_allreduce},
      {osu("MPI Allreduce Persistent Latency Test"), "Persistent", Benchmark::osu_allreduce},
      {osu("MPI Non-blocking Allreduce Latency Test", 2, "Overall(us)"), "Non-blocking", Benchmark::osu_allreduce},
      {osu("MPI Broadcast Latency Test"), "osu_bcast", Benchmark::osu_allreduce},
      {perftest("Atomic FETCH_AND_ADD Latency Test", false), "Atomic FETCH_AND_ADD", Benchmark::ib_write_lat},
      {perftest("RDMA_Read Latency Test", false), "ib_read_lat", Benchmark::ib_write_lat},
      {perftest("Atomic CMP_AND_SWAP BW Test"), "Atomic CMP_AND_SWAP", Benchmark::ib_write_bw},
      {perftest("Raw Ethernet BW Test"), "Raw Ethernet", Benchmark::ib_write_bw},
      {perftest("RDMA_Write_imm BW Test"), "RDMA_Write_imm", Benchmark::ib_write_bw},
      {perftest("RDMA_Write BW forwarding Test"), "forwarding", Benchmark::ib_write_bw},
      {perftest("Send BW Multicast Test"), "Multicast", Benchmark::ib_send_bw},
      {perftest("Send BW Test", true, " Connection type : RawEth\t\tUsing SRQ      : OFF\n"), "raw Ethernet",
       Benchmark::ib_send_bw},
      {nccl(2, {80}, "agg iters: 1", "0", "hypercube_perf"), "hypercube_perf", Benchmark::all_reduce_perf},
      {nccl(2, {80}, "agg iters: 1", "0", "all_gather_perf"), "all_gather_perf", Benchmark::all_reduce_perf},
      {osu("MPI Latency Test"), "osu_latency", Benchmark::all_reduce_perf},
      {perftest("RDMA_Write BW Test"), "ib_write_bw", Benchmark::osu_bw},
      {"# Size  Latency (us)\n8 2.00\n", "latencies", Benchmark::osu_bw},
      {"# Size  Bandwidth (MB/s)\n8 2.00\n", "bandwidths", Benchmark::osu_latency}};
  for (const auto& one : cases) {
    CAPTURE(one.text);
    const auto table = chosen(one.text, one.wanted);
    CHECK(table.rows.empty());
    CHECK(has(table.refusal, one.name));
    CHECK(has(table.refusal, std::string(to_string(one.wanted))));
  }
}

TEST_CASE("a title that is the scenario's is taken, whatever it was built for") {
  for (const std::string library : {"MPI", "MPI-CUDA", "MPI-ROCM", "MPI-OPENACC"}) {
    CHECK(chosen(osu(library + " Latency Test"), Benchmark::osu_latency).rows.size() == 2);
    CHECK(chosen(osu(library + " Allreduce Latency Test"), Benchmark::osu_allreduce).rows.size() == 2);
  }
  for (const std::string title : {"RDMA_Write BW Test", "RDMA_Write Bidirectional BW Test",
                                  "RDMA_Write Post List BW Test", "RDMA_Write Bidirectional Post List BW Test"})
    CHECK(chosen(perftest(title), Benchmark::ib_write_bw).rows.size() == 1);
  CHECK(chosen(nccl(2, {80}, "agg iters: 1", "0", "all_reduce_perf_mpi"), Benchmark::all_reduce_perf).rows.size() == 1);
}

TEST_CASE("of a log with another test beside the scenario's, the scenario's is compared") {
  for (const bool is_first : {true, false}) {
    const auto own = osu("MPI Latency Test", 5), other = osu("MPI_Put Latency Test", 2);
    const auto table = chosen(is_first ? own + other : other + own, Benchmark::osu_latency);
    CHECK(table.refusal.empty());
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].time == 5_us);
  }
}

TEST_CASE("runs taken alike are repeats, in any order, and the log says so") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> times(20, 200);
  for (int run = 0; run < 20; ++run) {
    const double a = times(random), b = times(random), c = times(random);
    const auto middle = std::max(std::min(a, b), std::min(std::max(a, b), c));
    const auto one = [&](double us) { return nccl(2, {us}); };
    for (const auto& text : {one(a) + one(b) + one(c), one(c) + one(a) + one(b)}) {
      const auto table = chosen(text, Benchmark::all_reduce_perf, 2);
      REQUIRE(table.rows.size() == 3);
      CHECK(has(first_warning(table), "3 tables of all_reduce_perf taken alike"));
      WorkloadPrediction prediction;
      prediction.benchmark = Benchmark::all_reduce_perf;
      Row row;
      row.size = 8388608_B;
      row.time = 100_us;
      prediction.rows.push_back(row);
      const auto validation = validate(prediction, table);
      REQUIRE(validation.points.size() == 1);
      CHECK(validation.points[0].measured.seconds() * 1e6 == test::approx(middle).epsilon(1e-4));
    }
  }
}

TEST_CASE("repeats are found in every format, with and without a title of their own") {
  const auto row = std::string("8 9.00\n64 9.50\n");
  const std::vector<std::pair<std::string, Benchmark>> cases{
      {osu("MPI Latency Test") + osu("MPI Latency Test", 4), Benchmark::osu_latency},
      {osu("MPI Latency Test") + "# Size  Latency (us)\n" + row, Benchmark::osu_latency},
      {perftest("RDMA_Write BW Test") + perftest("RDMA_Write BW Test"), Benchmark::ib_write_bw},
      {perftest("RDMA_Write BW Test") + " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
                                        " 65536 5000 200.00 199.00 0.379562\n",
       Benchmark::ib_write_bw},
      {nccl(2, {80}) + "# size count type redop root time algbw busbw #wrong\n8388608 2097152 float sum -1 90.00 93.21 "
                       "93.21 0\n",
       Benchmark::all_reduce_perf}};
  for (const auto& one : cases) {
    const auto& text = one.first;
    const auto benchmark = one.second;
    CAPTURE(text);
    const auto table = chosen(text, benchmark);
    CHECK(table.rows.size() % 2 == 0);
    CHECK(has(first_warning(table), "2 tables"));
    CHECK(has(first_warning(table), "taken alike"));
  }
}

TEST_CASE("of runs with other settings one is taken, and the log says which and what differs") {
  const auto window = [](int size) {
    return fmt::format(
        "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# [ pairs: 4 ] [ window size: {} ]\n"
        "# Size MB/s Messages/s\n4194304 24782.62 5908.64\n",
        size);
  };
  const auto windows = chosen(window(64) + window(128), Benchmark::osu_mbw_mr);
  CHECK(windows.rows.size() == 1);
  CHECK(has(first_warning(windows), "others differ in window"));
  const auto ranks = chosen(nccl(2, {80}) + nccl(4, {120}), Benchmark::all_reduce_perf);
  CHECK(ranks.rows.size() == 1);
  CHECK(has(first_warning(ranks), "others differ in ranks"));
  // The scenario's own count decides without a word.
  CHECK(chosen(nccl(2, {80}) + nccl(4, {120}), Benchmark::all_reduce_perf, 4).warnings.empty());
}

TEST_CASE("operations started in groups or waited for are refused, wrong results are said") {
  CHECK(has(chosen(nccl(2, {80}, "agg iters: 8"), Benchmark::all_reduce_perf).refusal, "8 at a time"));
  CHECK(has(chosen("# Blocking Enabled: wait for completion and barrier after each collective\n" + nccl(2, {80}),
                   Benchmark::all_reduce_perf)
                .refusal,
            "waited for"));
  CHECK(has(chosen(perftest("RDMA_Write BW Test", true, " Dual-port       : ON\t\tDevice         : mlx5_0\n"),
                   Benchmark::ib_write_bw)
                .refusal,
            "Dual-port"));
  const auto wrong = chosen(nccl(2, {80, 150}, "agg iters: 1", "12345"), Benchmark::all_reduce_perf);
  CHECK(wrong.rows.size() == 2);
  CHECK(has(first_warning(wrong), "2 of 2 rows have wrong results"));
  CHECK(chosen(nccl(2, {80, 150}), Benchmark::all_reduce_perf).warnings.empty());
}

TEST_CASE("perftest's lines of GPU memory above a title are of the test below it alone") {
  const auto test = perftest("RDMA_Write BW Test");
  for (const std::string line :
       {"$ ib_write_bw --use_cuda=0 -a host", "$ ib_write_bw --use_rocm=0 host", "initializing CUDA",
        "cuMemAlloc() of a 16777216 bytes GPU buffer", "allocated GPU buffer address at 00007f4d60000000"}) {
    CAPTURE(line);
    const auto alone = chosen(line + "\n" + test, Benchmark::ib_write_bw);
    CHECK(alone.header.send_buffer == BufferPlace::device);
    const auto tables = read_logs_text(test + line + "\n" + test + "destroying current CUDA Ctx\n" + test, "log.txt");
    REQUIRE(tables.has_value());
    REQUIRE(tables->size() == 3);
    CHECK(tables->at(0).header.send_buffer == BufferPlace::host);
    CHECK(tables->at(1).header.send_buffer == BufferPlace::device);
    CHECK(tables->at(2).header.send_buffer == BufferPlace::host);
  }
  const auto malloced = chosen(
      "initializing CUDA\nHost allocation selected, calling memalign allocator\n"
      "allocated GPU buffer of a 65536 address at 0x7f for type CUDA_MEM_MALLOC\n" +
          test,
      Benchmark::ib_write_bw);
  CHECK(malloced.header.send_buffer == BufferPlace::host);
}

TEST_CASE("a log that lost every row says why") {
  const std::vector<std::pair<std::string, Benchmark>> all{
      {"# OSU MPI Reduce Latency Test v7.3\n# Size Avg Latency(us)\n1 50.89 18.27\n", Benchmark::osu_reduce},
      {"#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]\n 2 5000 1.0 1.0 9.0\n",
       Benchmark::ib_write_bw}};
  for (const auto& one : all) {
    CAPTURE(one.first);
    const auto lost = chosen(one.first, one.second);
    CHECK(lost.rows.empty());
    CHECK(has(first_warning(lost), "row lost: "));
  }
}
