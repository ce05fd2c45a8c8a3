// SPDX-License-Identifier: Apache-2.0
// Tables for a workload: copies and matrices as rows, settings from command lines, NCCL's choices beside forecasts.
#include <doctest/doctest.h>

#include "fabricast/measurement.hpp"
#include "fabricast/validation.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

const std::string k_copies =
    "# gpus 4\n## copy gpu0: "
    "bytes\th2d_pinned_us\td2h_pinned_us\th2d_pageable_us\n4096\t8\t9\t10\n1048576\t28\t29\t78\n"
    "## copy gpu1: bytes\th2d_pinned_us\td2h_pinned_us\th2d_pageable_us\n4096\t18\t19\t10\n"
    "## peer copy p2p=1: src\tdst\tlat16B_us\tbw_256MiB_GBps\n0\t1\t7\t400\n0\t2\t6.5\t390\n"
    "## peer copy p2p=0: src\tdst\tlat16B_us\tbw_256MiB_GBps\n0\t1\t15\t40\n"
    "## concurrent pinned copies: dir\tk_gpus\tper_gpu_GBps...\nd2h\t3\t20\t20.2\t50\nh2d\t2\t50\t50\n";

const std::string k_matrix =
    "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nUnidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     "
    "0  "
    "    1 \n     0 800.00  10.00 \n     1  11.00 800.00 \n"
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n     0 800.00  80.00 \n   "
    "  "
    "1  80.00 800.00 \n"
    "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 800.00 100.00 \n     1 100.00 "
    "800.00 \n";

Scenario copies(int gpus, CopyDirection direction, bool p2p = true) {
  Scenario scenario;
  scenario.software.nccl_p2p = p2p;
  scenario.workloads.resize(1);
  scenario.workloads[0].benchmark = Benchmark::host_copies;
  scenario.workloads[0].gpus = gpus;
  scenario.workloads[0].direction = direction;
  return scenario;
}

std::vector<MeasuredLog> tables_of(const std::string& text) {
  const auto logs = read_logs_text(text, "log.txt");
  REQUIRE(logs.has_value());
  return *logs;
}

}  // namespace

TEST_CASE("one GPU's pinned copies become rows by size, pageable ones and other GPUs stay out") {
  const auto table = table_for(tables_of(k_copies), copies(1, CopyDirection::to_host));
  REQUIRE(table.has_value());
  REQUIRE(table->rows.size() == 2);
  CHECK(table->rows[0].time == 9_us);
  CHECK(table->rows[1].size == 1_MiB);
  auto second = copies(1, CopyDirection::to_device);
  second.workloads[0].devices = {"node.gpu1"};
  const auto other = table_for(tables_of(k_copies), second);
  REQUIRE(other.has_value());
  REQUIRE(other->rows.size() == 1);
  CHECK(other->rows[0].time == 18_us);
}

TEST_CASE("copies at once are compared by the slowest group of GPUs") {
  // 20 and 20.2 GB/s share a socket, 50 does not: 1 GiB at 20.2 (the upper median of the two).
  const auto table = table_for(tables_of(k_copies), copies(3, CopyDirection::to_host));
  REQUIRE(table.has_value());
  REQUIRE(table->rows.size() == 1);
  CHECK(table->rows[0].size == 1_GiB);
  CHECK(table->rows[0].time.us() == test::approx(1073741824 / 20.2e3));
  CHECK_FALSE(table_for(tables_of(k_copies), copies(4, CopyDirection::to_host)).has_value());
}

TEST_CASE("peer copies follow the pair and peer access") {
  const auto on = table_for(tables_of(k_copies), copies(2, CopyDirection::to_peer));
  REQUIRE(on.has_value());
  REQUIRE(on->rows.size() == 2);
  CHECK(on->rows[0].size == Bytes{16});
  CHECK(on->rows[0].time == 7_us);
  const auto off = table_for(tables_of(k_copies), copies(2, CopyDirection::to_peer, false));
  REQUIRE(off.has_value());
  CHECK(off->rows[0].time == 15_us);
}

TEST_CASE("an entry of p2pBandwidthLatencyTest is a copy of 160 MB, both ways at once it counts each direction") {
  const auto tables = tables_of(k_matrix);
  const auto on = table_for(tables, copies(2, CopyDirection::to_peer));
  REQUIRE(on.has_value());
  REQUIRE(on->rows.size() == 1);
  CHECK(on->rows[0].size == Bytes{160'000'000});
  CHECK(on->rows[0].time.us() == test::approx(2000));  // 160 MB at 80 GB/s
  const auto off = table_for(tables, copies(2, CopyDirection::to_peer, false));
  REQUIRE(off.has_value());
  CHECK(off->rows[0].time.us() == test::approx(16000));
  auto both = copies(2, CopyDirection::to_peer);
  both.workloads[0].is_bidirectional = true;
  const auto each_way = table_for(tables, both);
  REQUIRE(each_way.has_value());
  CHECK(each_way->rows[0].time.us() == test::approx(3200));  // 50 GB/s each way
}

TEST_CASE("settings are read from command lines, exports and NCCL's lines, other names are not") {
  const auto tables = tables_of(
      "export NCCL_P2P_DISABLE=1\nSECRET_TOKEN=hunter2 mpirun -x NCCL_ALGO=Ring -x UCX_TLS=rc,cuda ./osu_latency\n"
      "NCCL INFO NCCL_PROTO set by environment to LL128.\n# OSU MPI Latency Test v5.8\n# Size Latency (us)\n8 1.5\n"
      "mpirun --mca pml ucx -mca btl ^openib --mca2 x y ./osu_bw\n# OSU MPI Bandwidth Test v5.8\n# Size Bandwidth "
      "(MB/s)\n8 15\n");
  REQUIRE(tables.size() == 2);
  const std::map<std::string, std::string> first{
      {"NCCL_ALGO", "Ring"}, {"NCCL_P2P_DISABLE", "1"}, {"NCCL_PROTO", "LL128"}, {"UCX_TLS", "rc,cuda"}};
  CHECK(tables[0].header.environment == first);
  // An export lasts; what stood before one command does not.
  CHECK(tables[1].header.environment == std::map<std::string, std::string>{{"NCCL_P2P_DISABLE", "1"},
                                                                           {"OMPI_MCA_pml", "ucx"},
                                                                           {"OMPI_MCA_btl", "^openib"}});
}

TEST_CASE("settings are read as launchers and shells give them, not where they are commented out") {
  const std::map<std::string, std::string> both{{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}};
  const auto environment = [](const std::string& line) {
    const auto tables = tables_of(line + "\n# OSU MPI Latency Test v5.8\n# Size Latency (us)\n8 1.5\n");
    REQUIRE(tables.size() == 1);
    return tables[0].header.environment;
  };
  for (const char* line :
       {"srun --export=ALL,NCCL_ALGO=Ring,NCCL_PROTO=Simple ./run", "#SBATCH --export=NCCL_ALGO=Ring,NCCL_PROTO=Simple",
        "qsub -v NCCL_ALGO=Ring,NCCL_PROTO=Simple job.sh", "docker run -e NCCL_ALGO=Ring --env=NCCL_PROTO=Simple image",
        "mpiexec.hydra -genv NCCL_ALGO Ring -genv NCCL_PROTO Simple ./run",
        "mpiexec -env NCCL_ALGO Ring -env NCCL_PROTO Simple ./run", "setenv NCCL_ALGO Ring\nsetenv NCCL_PROTO Simple"})
    CHECK_MESSAGE(environment(line) == both, std::string(line));
  CHECK(environment("export NCCL_IB_HCA=mlx5_0,mlx5_1") ==
        std::map<std::string, std::string>{{"NCCL_IB_HCA", "mlx5_0,mlx5_1"}});
  for (const char* line : {"#export NCCL_ALGO=Ring", "# export NCCL_ALGO=Ring", "the variable NCCL_ALGO Ring"})
    CHECK_MESSAGE(environment(line).empty(), std::string(line));
}

TEST_CASE("of several tables the one of the workload's benchmark and ranks is compared") {
  const auto row = [](int us) {
    return "8388608 2097152 float sum -1 " + std::to_string(us) + " " + std::to_string(8388.608 / us) + " 1 0\n";
  };
  const auto run = [&](int gpus, int us) {
    std::string text = "# nThread 1 nGpus " + std::to_string(gpus) + " minBytes 8 maxBytes 8\n";
    for (int rank = 0; rank < gpus; ++rank)
      text += "# Rank " + std::to_string(rank) + " Pid 1 on n device " + std::to_string(rank) + " [0x27] A100\n";
    return text + "# size count type redop root time algbw busbw #wrong\n" + row(us);
  };
  const auto tables = tables_of("all_reduce_perf\n" + run(2, 50) + run(4, 80));
  Scenario scenario;
  scenario.workloads.resize(1);
  scenario.workloads[0].benchmark = Benchmark::all_reduce_perf;
  scenario.workloads[0].gpus = 4;
  const auto table = table_for(tables, scenario);
  REQUIRE(table.has_value());
  CHECK(table->rows.at(0).time == 80_us);
}

TEST_CASE("NCCL's choices are set beside the forecast's, for its operation and its sizes") {
  const auto tables = tables_of(
      "NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
      "NCCL INFO AllReduce: 65536 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..3}\n"
      "NCCL INFO AllGather: 1024 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}\n"
      "NCCL INFO AllReduce: 99 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n");
  WorkloadPrediction prediction;
  prediction.benchmark = Benchmark::all_reduce_perf;
  for (const std::int64_t size : {1024, 65536}) {
    Row row;
    row.size = {size};
    row.algorithm = "ring";
    row.protocol = "ll";
    row.channels = 1;
    prediction.rows.push_back(row);
  }
  const auto choices = compare_choices(prediction, tables.at(0).tuning.choices);
  REQUIRE(choices.size() == 2);
  CHECK(choices[0].agrees());
  CHECK(choices[0].channels_agree());
  CHECK_FALSE(choices[1].agrees());
  CHECK(choices[1].logged_algorithm == "tree");
  CHECK(choices[1].logged_channels == 4);
}
