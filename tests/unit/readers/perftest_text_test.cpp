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

const std::string k_settings =
    " Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 2\t\tTransport type : IB\n"
    " Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\n TX depth        : 128\n"
    " Mtu             : 4096[B]\n Link type       : IB\n"
    "---------------------------------------------------------------------------------------\n";

}  // namespace

TEST_CASE("perftest gigabits are 1e9 bits, and settings are read") {
  const auto log = table_of("                    RDMA_Write BW Test\n" + k_settings +
                            " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
                            " 65536      5000             394.31             394.25\t\t     0.751972\n");
  CHECK(log.benchmark == Benchmark::ib_write_bw);
  CHECK(log.header.device == "mlx5_0");
  CHECK(log.header.queue_pairs == 2);
  CHECK(log.header.tx_depth == 128);
  CHECK(log.header.mtu == 4096_B);
  CHECK(log.header.connection_type == "RC");
  CHECK(log.header.link_type == "IB");
  CHECK(log.header.unit == "Gb/sec");
  CHECK(log.header.send_buffer == BufferPlace::host);
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(394.25e9 / 8).epsilon(1e-4));
  CHECK(log.rows[0].peak_bandwidth->bytes_per_s == test::approx(394.31e9 / 8));
  CHECK(log.rows[0].num_iterations == 5000);
}

TEST_CASE("perftest megabytes are 2^20 bytes under both names") {
  for (const std::string unit : {"MB/sec", "MiB/sec"}) {
    const auto log = table_of(" Send BW Test\n #bytes #iterations BW peak[" + unit + "] BW average[" + unit +
                              "] MsgRate[Mpps]\n 1048576 5000 0.00 3663.00 0.003663\n");
    CHECK(log.header.unit == unit);
    REQUIRE(log.rows.size() == 1);
    CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(3663.0 * 1048576));
    CHECK_FALSE(log.rows[0].peak_bandwidth.has_value());
  }
}

TEST_CASE("a bandwidth too small for its digits is taken from the message rate") {
  // 2 B x 2.588087 M/s; printed as 0.04 Gb/sec
  const auto log = table_of(
      " RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 2 5000 0.04 0.04 "
      "2.588087\n");
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(2 * 2.588087e6));
  CHECK(log.rows[0].time.seconds() == test::approx(1 / 2.588087e6).epsilon(1e-5));
}

TEST_CASE("perftest latencies: average, median, spread and percentiles") {
  const auto log = table_of(
      " RDMA_Read Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% "
      "percentile[usec] "
      "  99.9% percentile[usec] \n 2       20000          1.91           13.87        1.99               2.01          "
      "0.32  2.13 9.95\n");
  CHECK(log.benchmark == Benchmark::ib_read_lat);
  CHECK(log.header.unit == "usec");
  const auto& row = log.rows.at(0);
  CHECK(row.time == 2.01_us);
  CHECK(row.typical_time == 1.99_us);
  CHECK(row.min_time == 1.91_us);
  CHECK(row.max_time == 13.87_us);
  CHECK(row.std_dev == 0.32_us);
  REQUIRE(row.percentiles.size() == 2);
  CHECK(row.percentiles[1].share == test::approx(0.999));
  CHECK(row.percentiles[1].time == 9.95_us);
}

TEST_CASE("a latency test by duration has an average only") {
  const auto log = table_of(
      " Send Latency Test\n #bytes        #iterations       t_avg[usec]    tps average\n 2 1000000 1.07 467000.00\n");
  CHECK(log.rows.at(0).time == 1.07_us);
  CHECK_FALSE(log.rows.at(0).min_time.has_value());
}

TEST_CASE("bidirectional tests are marked") {
  const auto log = table_of(
      " RDMA_Write Bidirectional BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
      " 65536 5000 23000.00 22900.00 0.366400\n");
  CHECK(log.benchmark == Benchmark::ib_write_bw);
  CHECK(log.header.is_bidirectional);
}

TEST_CASE("GPU buffers and a lost title are known from the command line") {
  const auto log = table_of(
      "$ ib_read_bw -a --use_cuda=0 host1\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
      " 65536 5000 23000.00 22900.00 0.366400\n");
  CHECK(log.benchmark == Benchmark::ib_read_bw);
  CHECK(log.header.send_buffer == BufferPlace::device);
}

TEST_CASE("a row with a column too many or a rate that contradicts the bandwidth is dropped and reported") {
  const auto log = table_of(
      " RDMA_Write BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
      " 65536 5000 23000.00 22900.00 0.366400 77 78\n 65536 5000 23000.00 2290.00 0.366400\n 65536 5000 23000.00 "
      "22900.00 0.366400\n");
  CHECK(log.rows.size() == 1);
  REQUIRE(log.warnings.size() == 2);
  CHECK(log.warnings[0].location.line == 3);
  CHECK(log.warnings[1].location.line == 4);
}
