// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "fabricast/measurement.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

const std::string k_nccl =
    R"({"version":3,"start_time":"2026-11-21 01:00:00","args":["./build/all_reduce_perf","-g","2"],
"env":["HOME=/root","SECRET_TOKEN=hunter2"],"nccl_version":23102,
"config":{"nthreads":1,"ngpus":2,"warmup_iterations":1,"iterations":20,"aggregated_iterations":1,"graph":0,
 "devices":[{"rank":0,"group":0,"pid":77,"hostname":"n1","device":0,"device_hex":"0000:18:00","device_info":"NVIDIA H200"},
            {"rank":1,"group":0,"pid":77,"hostname":"n1","device":1,"device_hex":"0000:2a:00","device_info":"NVIDIA H200"}]},
"results":[{"size":8,"count":2,"type":"float","redop":"sum","root":"    -1",
 "out_of_place":{"time":24.310000,"alg_bw":0.000329,"bus_bw":0.000329,"nwrong":0.000000},
 "in_place":{"time":24.1,"alg_bw":0.0003,"bus_bw":0.0003,"nwrong":"nan"},"actual_iterations":20,
 "out_of_place_per_iter":{"times_us":[24.0,24.5,"nan"]},"experiment_name":"AllReduce"},
 {"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1","out_of_place":null,
 "in_place":{"time":20.5,"alg_bw":51.15,"bus_bw":51.15,"nwrong":0.0},"experiment_name":"AllReduce"}],
"out_of_bounds":{"count":0,"okay":true}})";

MeasuredLog table_of(const std::string& text, const std::string& name = "log.json") {
  const auto log = read_log_text(text, name);
  REQUIRE(log.has_value());
  return *log;
}

}  // namespace

TEST_CASE("nccl-tests JSON gives rows, devices and the times of single iterations") {
  const auto log = table_of(k_nccl);
  CHECK(log.format == LogFormat::nccl_tests_json);
  CHECK(log.benchmark == Benchmark::all_reduce_perf);
  CHECK(log.header.nccl_version == "2.31.2");
  CHECK(log.header.num_ranks == 2);
  CHECK(log.header.ranks_per_host == 2);
  CHECK(log.header.launch == LaunchMode::one_thread);
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[0].time == 24.31_us);
  CHECK(log.rows[0].in_place_time == 24.1_us);
  CHECK(log.rows[0].num_wrong == 0);
  CHECK(log.rows[0].iterations == std::vector<Duration>{24_us, 24.5_us});
  CHECK(log.warnings.empty());
}

TEST_CASE("a null out-of-place half of nccl-tests JSON makes an in-place row") {
  const auto log = table_of(k_nccl);
  CHECK(log.rows[1].is_in_place_only);
  CHECK(log.rows[1].time == 20.5_us);
  CHECK(log.rows[1].busbw->bytes_per_s == test::approx(1048576 / 20.5e-6));
}

TEST_CASE("nccl-tests JSON with -C has the CPU's times: the wall time stands in alg_bw") {
  auto text = k_nccl;
  const auto replace = [&](const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  replace(R"("-g","2"])", R"("-g","2","-C","1"])");
  replace(R"("time":24.310000,"alg_bw":0.000329)", R"("time":3.1,"alg_bw":0.000329)");
  const auto log = table_of(text);
  CHECK(log.rows.at(0).time.us() == test::approx(8e-3 / 0.000329));
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].message.find("CPU's") != std::string::npos);
}

TEST_CASE("the environment in nccl-tests JSON is kept nowhere") {
  const auto log = table_of(k_nccl);
  for (const auto& [key, value] : log.provenance) {
    CHECK(key.find("SECRET") == std::string::npos);
    CHECK(value.find("hunter2") == std::string::npos);
  }
  CHECK(log.title.find("hunter2") == std::string::npos);
  for (const auto& warning : log.warnings) CHECK(warning.source_line.find("hunter2") == std::string::npos);
}

TEST_CASE("nccl-tests JSON that breaks off keeps its complete results") {
  const auto log = table_of(k_nccl.substr(0, k_nccl.find("\"size\":1048576") + 40));
  REQUIRE(log.rows.size() == 1);
  CHECK(log.header.num_ranks == 2);
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].message == "the file breaks off; its complete results are kept");
}

TEST_CASE("perftest JSON has its unit inferred from the message rate, with a warning") {
  // 65,536 B x 0.751972 M/s = 49.28 GB/s = 394.25 Gb/s
  const auto log = table_of(
      R"({"test_info":{"test":"RDMA_Write BW Test","Device":"mlx5_0","Mtu":4096,"TX_depth":128,"Number_of_qps":1},
          "results":{"MsgSize":65536,"n_iterations":5000,"BW_peak":394.31,"BW_average":394.25,"MsgRate":0.751972}})");
  CHECK(log.format == LogFormat::perftest_json);
  CHECK(log.benchmark == Benchmark::ib_write_bw);
  CHECK(log.header.unit == "Gb/sec");
  CHECK(log.header.tx_depth == 128);
  REQUIRE(log.rows.size() == 1);
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(394.25e9 / 8));
  CHECK(log.rows[0].time.seconds() == test::approx(65536 / (394.25e9 / 8)));
  REQUIRE(log.warnings.size() == 2);
  CHECK(log.warnings[0].message == "the file names no unit of bandwidth; its message rate fits Gb/sec");
}

TEST_CASE("perftest JSON without a message rate is read as MiB/s, with a warning") {
  const auto log =
      table_of(R"({"results":{"MsgSize":65536,"n_iterations":5000,"BW_average":1000.0}})", "ib_read_bw.json");
  CHECK(log.benchmark == Benchmark::ib_read_bw);
  CHECK(log.rows[0].bandwidth->bytes_per_s == test::approx(1000.0 * 1048576));
  CHECK(log.warnings[0].message == "the file names no unit of bandwidth; MiB/sec is assumed");
}

TEST_CASE("perftest JSON of a latency test gives the average and its spread") {
  const auto log = table_of(
      R"({"test_info":{"test":"Send Latency Test"},"results":{"MsgSize":2,"n_iterations":1000,"t_min":1.02,"t_max":11.76,
          "t_typical":1.07,"t_avg":1.11,"t_stdev":0.30,"t_99%":1.68,"t_99.9%":5.0}})");
  CHECK(log.benchmark == Benchmark::ib_send_lat);
  CHECK(log.rows[0].time == 1.11_us);
  CHECK(log.rows[0].typical_time == 1.07_us);
  CHECK(log.rows[0].percentiles.size() == 2);
}

TEST_CASE("JSON of another program is no log") {
  CHECK_FALSE(read_logs_text(R"({"a":[1,2,{"b":3}]})", "x.json").has_value());
  CHECK_FALSE(read_logs_text("{", "x.json").has_value());
  CHECK_FALSE(read_logs_text(std::string(100'000, '{'), "x.json").has_value());
  CHECK_FALSE(read_logs_text("{\"a\":" + std::string(100'000, '['), "x.json").has_value());
}

// Events as iperf3 3.17 prints them [iperf_api.c, JSONStream_Output]; a summary as one of 3.12 counted it.
TEST_CASE("iperf3 --json-stream is read as the JSON it is the parts of, cut off too") {
  const std::string start =
      R"({"event":"start","data":{"version":"iperf 3.17.1","test_start":{"protocol":"TCP","num_streams":4,"blksize":131072}}})";
  const std::string intervals =
      R"({"event":"interval","data":{"sum":{"seconds":1,"bytes":1797914624,"omitted":true}}}
{"event":"interval","data":{"sum":{"seconds":1.5,"bytes":3000000000,"omitted":false}}}
{"event":"interval","data":{"sum":{"seconds":0.5,"bytes":1000000000,"omitted":false}}})";
  const std::string end =
      R"({"event":"end","data":{"sum_sent":{"bits_per_second":14372164192.5},"sum_received":{"bits_per_second":14316557955.9}}})";
  const auto rate = [](const MeasuredLog& log) { return log.rows.at(0).bandwidth->bytes_per_s * 8; };
  const auto whole = start + "\n" + intervals + "\n" + end + "\n";
  const auto log = table_of(whole);
  CHECK(log.benchmark == Benchmark::iperf3);
  CHECK(log.header.streams == 4);
  CHECK(log.rows.size() == 1);
  CHECK(rate(log) == test::approx(14316557955.9));
  CHECK(log.warnings.empty());
  const auto cut = table_of(start + "\n" + intervals + "\n");
  CHECK(rate(cut) == test::approx(16e9));
  CHECK(cut.warnings.size() == 1);
  const auto twice = read_logs_text(whole + whole, "log.json");
  REQUIRE(twice.has_value());
  std::size_t rows = 0;
  for (const auto& one : *twice) rows += one.rows.size();
  CHECK(rows == 2);
  const auto failed = table_of(start + "\n" + R"({"event":"error","data":"the server has terminated"})" + "\n");
  REQUIRE(failed.warnings.size() == 1);
  CHECK(failed.warnings[0].message.find("the server has terminated") != std::string::npos);
}
