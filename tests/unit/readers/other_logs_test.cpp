// SPDX-License-Identifier: Apache-2.0
// Logs that calibration needs beside benchmark tables: P2P matrices, bandwidthTest, copy timings, NCCL's tuning lines.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/measurement.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

MeasuredLog table_of(const std::string& text) {
  const auto log = read_log_text(text, "log.txt");
  REQUIRE(log.has_value());
  return *log;
}

}  // namespace

TEST_CASE("p2pBandwidthLatencyTest gives a matrix for each title and each clock") {
  const auto log = table_of(
      "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
      "Device: 0, Tesla V100-SXM2-16GB, pciBusID: 3d, pciDeviceID: 0, pciDomainID:0\n"
      "Device: 1, Tesla V100-SXM2-16GB, pciBusID: 3e, pciDeviceID: 0, pciDomainID:0\n"
      "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"
      "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 778.36   9.55 \n     1   9.58 "
      "781.25 \n"
      "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   1.82   1.89 \n     1   N/A   1.82 "
      "\n\n"
      "   CPU     0      1 \n     0   2.48   2.08 \n     1   2.22   2.58 \n");
  CHECK(log.format == LogFormat::p2p_matrix);
  CHECK(log.header.num_ranks == 2);
  CHECK(log.header.ranks[1].bus_id == "3e");
  REQUIRE(log.matrices.size() == 3);
  CHECK(log.matrices[0].is_bidirectional);
  CHECK_FALSE(log.matrices[0].is_p2p);
  CHECK(log.matrices[0].value[0][1] == test::approx(9.55e9));
  CHECK(log.matrices[1].is_p2p);
  CHECK(log.matrices[1].is_write);
  CHECK(log.matrices[1].row_kind == "GPU");
  CHECK(log.matrices[1].value[0][1] == test::approx(1.89e-6));
  CHECK(std::isnan(log.matrices[1].value[1][0]));
  CHECK(log.matrices[2].row_kind == "CPU");
  CHECK(log.matrices[2].row_devices == std::vector<int>{0, 1});
}

TEST_CASE("a matrix row with a value too many is reported by line") {
  const auto log = table_of(
      "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 1 2 3\n     1   9.58 781.25 "
      "\n");
  REQUIRE(log.matrices.size() == 1);
  CHECK(log.matrices[0].row_devices == std::vector<int>{1});
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].location.line == 3);
}

TEST_CASE("bandwidthTest CSV gives times from bandwidths, copies inside a device counted twice") {
  const auto log = table_of(
      "bandwidthTest-H2D-Pinned, Bandwidth = 2.0 GB/s, Time = 0.00000 s, Size = 6000 bytes, NumDevsUsed = 1\n"
      "bandwidthTest-D2D, Bandwidth = 4.0 GB/s, Time = 0.00000 s, Size = 6000 bytes, NumDevsUsed = 1\n"
      "bandwidthTest-D2D, Bandwidth = 0.0 GB/s, Time = 0.00000 s, Size = 6000 bytes, NumDevsUsed = 1\n");
  REQUIRE(log.copies.size() == 2);
  CHECK(log.copies[0].kind == "H2D Pinned");
  CHECK(log.copies[0].time == 3_us);  // 6,000 B / 2 GB/s
  CHECK(log.copies[1].time == 3_us);  // 2 x 6,000 B / 4 GB/s
  CHECK(log.warnings.size() == 1);
}

TEST_CASE("bandwidthTest text is read by its direction and memory") {
  const auto log = table_of(
      " Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
      "   32000000\t\t\t12.5\n\n Device to Host Bandwidth, 1 Device(s)\n PAGEABLE Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(MB/s)\n   32000000\t\t\t1000.0\n\nResult = PASS\n");
  REQUIRE(log.copies.size() == 2);
  CHECK(log.copies[0].kind == "H2D pinned");
  CHECK(log.copies[0].bandwidth->bytes_per_s == test::approx(12.5e9));
  CHECK(log.copies[1].kind == "D2H pageable");
  CHECK(log.copies[1].bandwidth->bytes_per_s == test::approx(1000.0 * 1048576));
}

TEST_CASE("bandwidthTest's MB is one rule for text and CSV: by the NOTE line of its release") {
  const std::string note =
      "\nNOTE: The CUDA Samples are not meant for performance measurements. Results may vary when GPU Boost is "
      "enabled.\n";
  const std::vector<std::pair<std::string, double>> ends{{"Result = PASS\n" + note, 1.024e6},
                                                         {"Result = PASS\n", 1048576},
                                                         {"&&&& Test PASSED\n", 1048576},
                                                         {"", 1048576}};
  for (const auto& one : ends) {
    const auto& end = one.first;
    const double bytes_per_mb = one.second;
    CAPTURE(end);
    const auto text = table_of(
        "[CUDA Bandwidth Test] - Starting...\n Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n   "
        "Transfer Size (Bytes)\tBandwidth(MB/s)\n   33554432\t\t\t12000.0\n\n" +
        end);
    const auto csv = table_of(
        "bandwidthTest-H2D-Pinned, Bandwidth = 12000.0 MB/s, Time = 0.00267 s, Size = 33554432 bytes, NumDevsUsed = "
        "1\n" +
        end);
    REQUIRE(text.copies.size() == 1);
    REQUIRE(csv.copies.size() == 1);
    CHECK(text.copies[0].time == csv.copies[0].time);
    CHECK(text.copies[0].bandwidth->bytes_per_s == test::approx(12000 * bytes_per_mb));
    CHECK(text.warnings.size() == (end.empty() ? 1 : 0));
    CHECK(csv.warnings.size() == text.warnings.size());
  }
}

TEST_CASE("copy timings: launches, sizes, pairs and copies at once") {
  const auto log = table_of(
      "# gpus 8\n## launch (us)\nlaunch_async\t4.156\n## copy gpu4: "
      "bytes\th2d_pinned_us\td2h_pageable_us\n4096\t8.192\t16.384\n"
      "## peer copy p2p=1: src\tdst\tlat16B_us\tbw_256MiB_GBps\n0\t1\t7.120\t390.83\n"
      "## concurrent pinned copies: dir\tk_gpus\tper_gpu_GBps...\nh2d\t2\t55.11\t55.13\nh2d\t3\t55.11\n");
  REQUIRE(log.copies.size() == 7);
  CHECK(log.copies[0].kind == "launch_async");
  CHECK(log.copies[0].time->us() == test::approx(4.156));
  CHECK(log.copies[1].kind == "h2d pinned");
  CHECK(log.copies[1].size == 4096_B);
  CHECK(log.copies[1].devices == std::vector<int>{4});
  CHECK(log.copies[1].bandwidth->bytes_per_s == test::approx(0.5e9));
  CHECK(log.copies[3].size == 16_B);
  CHECK(log.copies[4].size == 256_MiB);
  CHECK(log.copies[4].devices == std::vector<int>{0, 1});
  CHECK(log.copies[6].num_concurrent == 2);
  CHECK(log.copies[6].devices == std::vector<int>{1});
  REQUIRE(log.warnings.size() == 1);
  CHECK(log.warnings[0].location.line == 10);
}

TEST_CASE("NCCL's table and choices are read from its debug lines, once though every rank prints them") {
  const auto log = table_of(
      "n0:1:2 [0] NCCL INFO   Algorithm   |          Tree          |          Ring          |\n"
      "n0:1:2 [0] NCCL INFO   Protocol    | LL | LL128 | Simple | LL | LL128 | Simple |\n"
      "n0:1:2 [0] NCCL INFO  Max NThreads | 512 | 640 | 512 | 512 | 640 | 512 |\n"
      "n0:1:2 [0] NCCL INFO     AllReduce | 15.2/ 43.6 | 31.5/ 128.8 | 64.4/ 165.6 | 15.0/ 80.6 | 0.0/ 0.0 | 56.0/ "
      "205.7 |\n"
      "n0:1:2 [0] NCCL INFO AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
      "n0:1:3 [1] NCCL INFO AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
      "n0:1:3 [1] NCCL INFO AllReduce: 1024 Bytes -> Algo 0 proto 2 time 12.5\n");
  CHECK(log.format == LogFormat::nccl_tuning);
  REQUIRE(log.tuning.table.size() == 5);
  CHECK(log.tuning.table[2].operation == "AllReduce");
  CHECK(log.tuning.table[2].algorithm == "tree");
  CHECK(log.tuning.table[2].protocol == "simple");
  CHECK(log.tuning.table[2].latency.us() == test::approx(64.4));
  CHECK(log.tuning.table[2].bandwidth.bytes_per_s == test::approx(165.6e9));
  REQUIRE(log.tuning.choices.size() == 2);
  CHECK(log.tuning.choices[0].algorithm == "ring");
  CHECK(log.tuning.choices[0].protocol == "ll");
  CHECK(log.tuning.choices[0].channels_to == 1);
  CHECK(log.tuning.choices[1].algorithm == "tree");
  CHECK(log.tuning.choices[1].predicted_time == 12.5_us);
}

TEST_CASE("NCCL's older table names algorithm and protocol in one cell") {
  const auto log = table_of(
      "NCCL INFO Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Ring/Simple |\n"
      "NCCL INFO     AllReduce |  10.5/  1.2 |  20.5/  2.4 |  30.5/  4.8 |\n");
  REQUIRE(log.tuning.table.size() == 3);
  CHECK(log.tuning.table[1].protocol == "ll128");
  CHECK(log.tuning.table[2].algorithm == "ring");
  CHECK(log.tuning.table[2].bandwidth.bytes_per_s == test::approx(4.8e9));
}

TEST_CASE("tuning lines inside an nccl-tests log are a table of their own") {
  const auto logs = read_logs_text(
      "# nThread 1 nGpus 2\n# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "n0:1:2 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..23}\n"
      "1048576 262144 float sum -1 20.29 51.68 51.68 0 15.95 65.73 65.73 0\n",
      "log.txt");
  REQUIRE(logs.has_value());
  REQUIRE(logs->size() == 2);
  CHECK((*logs)[0].rows.size() == 1);
  CHECK((*logs)[1].tuning.choices.size() == 1);
}

namespace {

constexpr std::string_view k_columns =
    "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n";

std::vector<MeasuredLog> communication(const std::string& rows, std::string_view columns = k_columns) {
  const auto tables = read_logs_text(std::string(columns) + rows, "nccl_perf.txt");
  REQUIRE(tables.has_value());
  return *tables;
}

}  // namespace

TEST_CASE("aiconfigurator's times of NCCL: elements and milliseconds, a table per operation, GPUs and release") {
  const auto tables = communication(
      "TRTLLM,2.29.2,NVIDIA B200,all_gather,NCCL,half,8,512,0.02\n"
      "TRTLLM,2.29.2,NVIDIA B200,all_gather,NCCL,int8,8,256,0.01\n"
      "TRTLLM,2.29.2,NVIDIA B200,all_gather,NCCL,half,4,512,0.03\n"
      "TRTLLM,2.27.3,NVIDIA B200,all_gather,NCCL,half,8,512,0.04\n"
      "TRTLLM,2.29.2,NVIDIA B200,all_reduce,NCCL,half,8,512,0.05\n");
  REQUIRE(tables.size() == 4);
  const auto& first = tables[0];
  CHECK(first.format == LogFormat::nccl_tests);
  CHECK(first.benchmark == Benchmark::all_gather_perf);
  CHECK(first.header.num_ranks == 8);
  CHECK(first.header.num_hosts == 1);
  CHECK(first.header.nccl_version == "2.29.2");
  CHECK(first.header.launch == LaunchMode::thread_per_gpu);
  CHECK(first.header.device_names == std::vector<std::string>{"NVIDIA B200"});
  REQUIRE(first.rows.size() == 2);
  CHECK(first.rows[0].size == 256_B);
  CHECK(first.rows[0].time == 10_us);
  CHECK(first.rows[1].size == 1_KiB);
  CHECK(first.rows[1].time == 20_us);
  CHECK(first.rows[1].busbw->bytes_per_s == test::approx(1024.0 / 20e-6 * 7 / 8));
  CHECK(tables[1].header.num_ranks == 4);
  CHECK(tables[2].header.nccl_version == "2.27.3");
  CHECK(tables[3].benchmark == Benchmark::all_reduce_perf);
}

TEST_CASE("aiconfigurator's columns go by their names, a damaged row is lost with its line and a reason") {
  const auto moved = communication("0.02,8,NCCL,512,half,all_reduce,NVIDIA B200,2.29.2\n",
                                   "latency,num_gpus,kernel_source,message_size,nccl_dtype,op_name,device,version\n");
  REQUIRE(moved.size() == 1);
  CHECK(moved[0].rows.at(0).time == 20_us);
  const std::string good = "T,2.29.2,B200,all_reduce,NCCL,half,8,512,0.02\n";
  for (const auto& [damaged, reason] : std::vector<std::pair<std::string, std::string>>{
           {"T,2.29.2,B200,all_reduce,NCCL,half,8,512\n", "its cells do not fit the columns"},
           {"T,2.29.2,B200,all_reduce,TRTLLM,half,8,512,0.02\n", "its kernels are not NCCL's"},
           {"T,2.29.2,B200,moe_dispatch,NCCL,half,8,512,0.02\n", "its operation is none of nccl-tests"},
           {"T,2.29.2,B200,all_reduce,NCCL,fp4,8,512,0.02\n", "its type of elements is unknown"},
           {"T,2.29.2,B200,all_reduce,NCCL,half,0,512,0.02\n", "its number of GPUs is none"},
           {"T,2.29.2,B200,all_reduce,NCCL,half,8,-2,0.02\n", "its size is none"},
           {"T,2.29.2,B200,all_reduce,NCCL,half,8,512,nan\n", "its latency is no time, or cut"},
           {"T,2.29.2,B200,all_reduce,NCCL,half,8,512,0\n", "its latency is no time, or cut"},
           {"T,2.29.2,B200,all_reduce,NCCL,half,8,512,0.0", "its latency is no time, or cut"}}) {
    const std::string row = damaged;
    CAPTURE(row);
    const auto tables = communication(good + row);
    REQUIRE(tables.size() == 1);
    CHECK(tables[0].rows.size() == 1);
    REQUIRE(tables[0].warnings.size() == 1);
    CHECK(tables[0].warnings[0].location.line == 3);
    CHECK(tables[0].warnings[0].message == "row lost: " + reason);
  }
}
