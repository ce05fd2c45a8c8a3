// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "fabricast/measurement.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

MeasuredLog table_of(const std::string& text, const std::string& name = "log.txt") {
  const auto log = read_log_text(text, name);
  REQUIRE(log.has_value());
  return *log;
}

}  // namespace

TEST_CASE("osu_latency on devices: version, buffers and half round trips") {
  const auto log = table_of(
      "Warning: OMB could not identify the local rank of the process.\n\n"
      "# OSU MPI-CUDA Latency Test v5.8\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
      "# Size          Latency (us)\n0                       1.98\n4194304              1655.53\n");
  CHECK(log.benchmark == Benchmark::osu_latency);
  CHECK(log.header.tool_version == "5.8");
  CHECK(log.header.accelerator == "CUDA");
  CHECK(log.header.send_buffer == BufferPlace::device);
  CHECK(log.header.receive_buffer == BufferPlace::host);
  CHECK(log.header.num_ranks == 2);
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[0].size == 0_B);
  CHECK(log.rows[1].time == 1655.53_us);
  CHECK(log.warnings.empty());
}

TEST_CASE("managed buffers are noted, and a datatype line below the header is passed over") {
  const auto log = table_of(
      "# OSU MPI-ROCM Latency Test v7.2\n# Send Buffer on MANAGED (M) and Receive Buffer on DEVICE (D)\n"
      "# Size          Latency (us)\n# Datatype: MPI_CHAR.\n1                         24.92\n");
  CHECK(log.header.is_managed_memory);
  CHECK(log.header.accelerator == "ROCM");
  CHECK(log.rows.size() == 1);
}

TEST_CASE("osu_bw megabytes are 1e6 bytes and its time is per message") {
  const auto log = table_of("# OSU MPI Bandwidth Test v7.1\n# Size      Bandwidth (MB/s)\n1048576    10000.00\n");
  CHECK(log.benchmark == Benchmark::osu_bw);
  CHECK(log.header.unit == "MB/s");
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(1e10));
  CHECK(log.rows[0].time.seconds() == test::approx(1048576 / 1e10));
}

TEST_CASE("osu_mbw_mr gives pairs, window and the time per message of all pairs together") {
  const auto log = table_of(
      "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# [ pairs: 4 ] [ window size: 64 ]\n"
      "# Size                  MB/s        Messages/s\n1                      16.42       16422494.33\n"
      "4194304             24782.62           5908.64\n");
  CHECK(log.benchmark == Benchmark::osu_mbw_mr);
  CHECK(log.header.pairs == 4);
  CHECK(log.header.window == 64);
  CHECK(log.header.num_ranks == 8);
  REQUIRE(log.rows.size() == 2);
  // the message rate has more digits at 1 B
  CHECK(log.rows[0].time.seconds() == test::approx(1 / 16422494.33).epsilon(1e-4));
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(16422494.33));
  CHECK(log.rows[1].messages_per_s == 5908.64);
}

TEST_CASE("a row whose message rate contradicts its bandwidth is dropped and reported") {
  const auto log = table_of(
      "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# Size  MB/s  Messages/s\n"
      "4194304 24782.62 5908.64\n4194304 2478.62 5908.64\n");
  CHECK(log.rows.size() == 1);
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].location.line == 4);
}

TEST_CASE("collective latencies are read in the wording of every version") {
  for (const std::string header : {"# Size          Latency (us)\n", "# Size       Avg Latency(us)\n",
                                   "# Size Avg Latency(us)\n", "Size       Avg Latency(us)\n"}) {
    CAPTURE(header);
    const auto log = table_of("# OSU MPI Allreduce Latency Test v5.8\n" + header + "4                       8.92\n");
    CHECK(log.benchmark == Benchmark::osu_allreduce);
    REQUIRE(log.rows.size() == 1);
    CHECK(log.rows[0].time == 8.92_us);
    CHECK(log.header.send_buffer == BufferPlace::host);
  }
}

TEST_CASE("columns of osu -f and of tail percentiles go by their names") {
  const auto log = table_of(
      "# OSU MPI-CUDA Allreduce Latency Test v7.4\n"
      "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations   P50 Tail Lat(us)   P99 Tail "
      "Lat(us)\n"
      "1                     174.36            135.35            221.55        1000             170.00             "
      "220.00\n");
  CHECK(log.header.send_buffer == BufferPlace::device);
  REQUIRE(log.rows.size() == 1);
  const auto& row = log.rows[0];
  CHECK(row.time == 174.36_us);
  CHECK(row.min_time == 135.35_us);
  CHECK(row.max_time == 221.55_us);
  CHECK(row.num_iterations == 1000);
  REQUIRE(row.percentiles.size() == 2);
  CHECK(row.percentiles[1].share == test::approx(0.99));
  CHECK(row.percentiles[1].time == 220_us);
}

TEST_CASE("non-blocking collectives give overlap and compute time, and are no benchmark that is forecast") {
  const auto log = table_of(
      "# OSU MPI Non-blocking Allreduce Latency Test v7.1\n"
      "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
      "1024                   20.00             10.00             12.00             16.67\n");
  CHECK_FALSE(log.benchmark.has_value());
  CHECK(log.rows[0].time == 20_us);
  CHECK(log.rows[0].compute_time == 10_us);
  CHECK(log.rows[0].pure_communication_time == 12_us);
  CHECK(log.rows[0].overlap == test::approx(0.1667));
}

TEST_CASE("a barrier has a time and no size") {
  const auto log = table_of("# OSU MPI Barrier Latency Test v5.8\n# Avg Latency(us)\n              3.25\n");
  CHECK(log.benchmark == Benchmark::osu_barrier);
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].size == 0_B);
  CHECK(log.rows[0].time == 3.25_us);
}

TEST_CASE("one file with several OSU tests gives a table for each") {
  const auto logs = read_logs_text(
      "# OSU MPI Latency Test v7.1\n# Size Latency (us)\n1 1.00\n# OSU MPI Bandwidth Test v7.1\n# Size Bandwidth "
      "(MB/s)\n1 2.00\n"
      "2 4.00\n# OSU MPI Broadcast Latency Test v7.1\n# Size Avg Latency(us)\n1 3.00\n"
      "# OSU MPI All-to-All Personalized Exchange Latency Test v7.1\n# Size Avg Latency(us)\n1 3.00\n",
      "all.txt");
  REQUIRE(logs.has_value());
  REQUIRE(logs->size() == 4);
  CHECK((*logs)[0].benchmark == Benchmark::osu_latency);
  CHECK((*logs)[1].rows.size() == 2);
  CHECK((*logs)[2].benchmark == Benchmark::osu_bcast);
  CHECK((*logs)[3].benchmark == Benchmark::osu_alltoall);
}

TEST_CASE("a table whose last line breaks off loses that line only") {
  const auto log = table_of("# OSU MPI Latency Test v7.1\n# Size Latency (us)\n1 1.00\n2");
  CHECK(log.rows.size() == 1);
  CHECK(log.warnings.size() == 1);
}

TEST_CASE("one-sided and multi-threaded tests are not taken for point-to-point ones") {
  CHECK_FALSE(table_of("# OSU MPI_Put Latency Test v7.1\n# Size Latency (us)\n1 1.00\n").benchmark.has_value());
  CHECK_FALSE(
      table_of("# OSU MPI Multi-threaded Latency Test v7.1\n# Size Latency (us)\n1 1.00\n").benchmark.has_value());
}

TEST_CASE("a table that does not print how many ranks ran takes it from the collector's line, else from its name") {
  const std::string table =
      "# ---- raw output below ----\n# OSU MPI Allreduce Latency Test v7.1\n# Size Avg Latency(us)\n4 1.00\n";
  const auto ranks = [&](const std::string& benchmark, const std::string& name = "log.txt") {
    return table_of("# benchmark: " + benchmark + "\n" + table, name).header.num_ranks;
  };
  CHECK(ranks("osu_allreduce, 16 ranks") == 16);
  CHECK(ranks("osu_allreduce v7.1 (24-rank run)") == 24);
  CHECK(ranks("osu_allreduce, one rank a host, 8 ranks") == 8);
  CHECK(ranks("osu_multi_lat, 6 pairs of ranks") == 12);
  CHECK(ranks("osu_allreduce", "runs/osu_allreduce_32ranks.txt") == 32);
  CHECK_FALSE(ranks("osu_allreduce").has_value());
}

TEST_CASE("words behind the measures of a head are columns of their own") {
  const auto log = table_of(
      "# OSU MPI Multiple Bandwidth / Message Rate Test\n# [ pairs: 4 ] [ window size: 64 ]\n"
      "# Size                    MB/s        Messages/s           low          high  protocol\n"
      "4194304               24782.62           5908.64      20000.00      30000.00  rendezvous\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(24782.62e6).epsilon(1e-5));
  CHECK(log.warnings.empty());
}

TEST_CASE("rows of osu -f are whole where the head names the average alone") {
  const std::string head =
      "# OSU MPI-CUDA Reduce Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n";
  // open-mpi/ompi pull request 12318
  const auto log = table_of(head + "1                      50.89             18.27             89.23        1000\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].time == 50.89_us);
  CHECK(log.rows[0].min_time == 18.27_us);
  CHECK(log.rows[0].max_time == 89.23_us);
  CHECK(log.rows[0].num_iterations == 1000);
  // Two rows that ran into each other are none.
  CHECK(table_of(head + "1 50.89 18.27 16.23 1000\n2 50.20\n").rows.size() == 1);
}

TEST_CASE("rows whose validation failed are marked") {
  const auto log = table_of(
      "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)        Validation\n"
      "8                       1.51              Pass\n16                      1.51              Fail\n");
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[0].num_wrong.value_or(0) == 0);
  CHECK(log.rows[1].num_wrong == 1);
}

TEST_CASE("messages of a derived data type are another test") {
  const auto log = table_of(
      "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
      "# Size       Avg Latency(us)     Transmit Size\n4096                       4.98              2048\n");
  CHECK_FALSE(log.benchmark.has_value());
  CHECK(log.other_test == "OSU MPI Latency Test v7.4 of a derived data type");
}
