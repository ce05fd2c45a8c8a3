// SPDX-License-Identifier: Apache-2.0
// The same run gives the same times whatever its launcher or collector puts before the lines: every prefix with every
// format.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fabricast/measurement.hpp"

using namespace fabricast;

namespace {

/// Samples of what each program prints.
const std::map<std::string, std::string>& samples() {
  static const std::map<std::string, std::string> all{
      {"nccl-tests",
       "# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n"
       "# Collective test starting: all_reduce_perf\n"
       "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: "
       "1 graph: 0\n"
       "#  Rank  0 Group  0 Pid 1 on node0 device  0 [0000:00:06] NVIDIA H200\n"
       "#  Rank  1 Group  0 Pid 1 on node0 device  1 [0000:00:07] NVIDIA H200\n#\n"
       "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw "
       " "
       "#wrong\n"
       "     8388608       2097152     float     sum      -1    80.00  104.86  104.86       0    82.00  102.30  102.30 "
       "  "
       "    0\n"},
      {"nccl-tests with columns cut", "#  size  time  algbw  busbw\n 8388608  80.00  104.86  104.86\n"},
      {"nccl-tests -I 1",
       "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1\n"
       "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min "
       "i_max i_p99 i_cv%\n"
       " 8388608 2097152 float sum -1 80.00 104.86 104.86 0 79.00 90.00 88.00 1.5 82.00 102.30 102.30 0 79.00 90.00 "
       "88.00 1.5\n"},
      {"OSU latency", "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0 1.50\n8388608 900.25\n"},
      {"OSU bandwidth", "# OSU MPI Bandwidth Test v7.1\n# Size      Bandwidth (MB/s)\n1048576    10000.00\n"},
      {"OSU collective",
       "# OSU MPI Allreduce Latency Test v7.1\n# Datatype: MPI_CHAR.\n"
       "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n1 174.36 135.35 221.55 1000\n"},
      {"perftest bandwidth",
       "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
       " Number of qps   : 4\t\tTransport type : IB\n TX depth        : 128\n"
       " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
       " 65536      5000             394.31             394.25\t\t     0.751972\n"},
      {"perftest latency",
       " RDMA_Write Latency Test\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
       "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
       " 2       1000          0.90           3.00         1.01     1.02     0.10   1.20   2.00\n"},
      {"p2pBandwidthLatencyTest",
       "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, NVIDIA A100, pciBusID: 7, pciDeviceID: 0, "
       "pciDomainID:0\nDevice: 1, NVIDIA A100, pciBusID: f, pciDeviceID: 0, pciDomainID:0\n"
       "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n     0 1290.00 274.50\n"
       "     1 275.00 1291.00\n"},
      {"bandwidthTest text",
       "[CUDA Bandwidth Test] - Starting...\n Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
       "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t25.1\n\nResult = PASS\n"},
      {"bandwidthTest CSV",
       "bandwidthTest-H2D-Pinned, Bandwidth = 25.1 GB/s, Time = 0.00127 s, Size = 32000000 bytes, NumDevsUsed = 1\n"},
      {"copies", "# gpus 1\n## copy gpu0: bytes h2d_pinned_us d2h_pinned_us\n1024 5.10 5.20\n4096 5.90 6.00\n"},
      {"training table",
       "gpus\tmodel\tprecision\tbatch_per_gpu\tstep_us\n2\tvgg16\tfp32\t32\t51000\n4\tvgg16\tfp32\t32\t"
       "52000\n"},
      {"Horovod", "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 4\nTotal img/sec on 4 GPU(s): 1200.5 +-3.1\n"},
      {"aiconfigurator",
       "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n"
       "TRTLLM,2.29.2,NVIDIA B200,all_gather,NCCL,half,8,65536,0.0191\n"},
      {"NCCL tuning", "node0:7:9 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}\n"},
  };
  return all;
}

const std::map<std::string, std::string>& prefixes() {
  static const std::map<std::string, std::string> all{
      {"Open MPI 4 --tag-output", "[1,0]<stdout>:"},
      {"Open MPI 4 --timestamp-output", "Mon Jul 20 10:11:12 2026<stdout>:"},
      {"Open MPI 4, both", "Mon Jul  6 10:11:12 2026[1,0]<stdout>:"},
      {"Open MPI 5 tag", "[1,0]<stdout>: "},
      {"Open MPI 5 tag-fullname", "[prterun-host-12@1,0]<stdout>: "},
      {"Open MPI 5 tag-detailed", "[1,0][host-12:4711]<stdout>: "},
      {"Open MPI 5 rank", "[0]<stdout>: "},
      {"Open MPI 5 timestamp", "[Mon Jul 20 10:11:12 2026]<stdout>: "},
      {"Open MPI 5 timestamp and tag", "[Mon Jul 20 10:11:12 2026][1,0]<stdout>: "},
      {"host, no colon", "[host:1,0]<stdout>"},
      {"MPICH -prepend-rank", "[0] "},
      {"torchrun", "[default0]:"},
      {"srun -l", "0: "},
      {"srun -l, two digits", " 12: "},
      {"pdsh", "gpu-node0.cluster: "},
      {"PALS", "gpu-node0 0: "},
      {"compose", "launcher-1  | "},
      {"kubectl --timestamps", "2026-07-20T10:11:12.123456789Z "},
      {"kubectl --prefix", "[pod/launcher-xyz/mpi] "},
      {"kubectl, both", "[pod/launcher-xyz/mpi] 2026-07-20T10:11:12.123456789Z "},
      {"ISO with zone", "2026-07-20T10:11:12+02:00 "},
      {"a logger's time", "2026-07-20 10:11:12,123 "},
      {"ts", "Jul 20 10:11:12 "},
      {"kubectl over srun", "2026-07-20T10:11:12Z 0: "},
  };
  return all;
}

std::string by_line(const std::string& text, const std::function<std::string(const std::string&)>& change) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    out += change(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return out;
}

std::string xml(std::string line) {
  const std::map<char, std::string> codes{{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}};
  std::string out;
  for (const char c : line) out += codes.contains(c) ? codes.at(c) : std::string(1, c);
  return "<stdout rank=\"0\">" + out + "&#010;</stdout>";
}

/// All that a forecast is compared with.
std::string measured(const std::string& text) {
  const auto tables = read_logs_text(text, "log.txt");
  if (!tables) return "no table";
  std::string out;
  for (const auto& table : *tables) {
    out += fmt::format("{} {} ranks {}:", to_string(table.format), table.benchmark ? to_string(*table.benchmark) : "-",
                       table.header.num_ranks.value_or(0));
    for (const auto& row : table.rows)
      out += fmt::format(" {}={}/{}", row.size.value, row.time.ps, row.in_place_time.value_or(Duration{0}).ps);
    for (const auto& copy : table.copies) out += fmt::format(" {}={}", copy.kind, copy.time ? copy.time->ps : 0);
    for (const auto& matrix : table.matrices)
      for (const auto& row : matrix.value)
        for (const double value : row) out += fmt::format(" {}", value);
    for (const auto& step : table.steps)
      out += fmt::format(" {} GPUs {} {}", step.gpus.value_or(0), step.step.value_or(Duration{0}).ps,
                         step.samples_per_s.value_or(0));
    for (const auto& choice : table.tuning.choices)
      out += fmt::format(" {} {} {}", choice.size.value, choice.algorithm, choice.channels_to.value_or(-1));
    out += fmt::format(" {} warnings\n", table.warnings.size());
  }
  return out;
}

}  // namespace

TEST_CASE("the same run gives the same times behind every prefix, in every format") {
  for (const auto& sample : samples()) {
    const auto &format = sample.first, &text = sample.second;
    CAPTURE(format);
    const auto plain = measured(text);
    REQUIRE(plain != "no table");
    for (const auto& one : prefixes()) {
      const auto &launcher = one.first, &prefix = one.second;
      CAPTURE(launcher);
      CHECK(measured(by_line(text, [&](const std::string& line) { return prefix + line; })) == plain);
    }
    CHECK(measured(by_line(text, xml)) == plain);
    CHECK(measured(by_line(text, [](const std::string& line) { return "\x1b[32m" + line + "\x1b[0m\x1b(B\r"; })) ==
          plain);
    std::string from_page;  // copied from a web page
    for (const char c : text) from_page += c == ' ' ? "\xC2\xA0" : std::string(1, c);
    CHECK(measured(from_page) == plain);
  }
}

TEST_CASE("lines of other tasks and of the launcher between those of the program change nothing") {
  for (const auto& sample : samples()) {
    const auto &format = sample.first, &text = sample.second;
    CAPTURE(format);
    // Where a foreign line ends a table, or is a damaged row of it.
    if (format == "p2pBandwidthLatencyTest" || format == "copies" || format == "aiconfigurator") continue;
    const auto other = by_line(text, [](const std::string& line) { return "0: " + line + "\n1: node1 is ready"; });
    CHECK(measured(other) == measured(text));
  }
}

TEST_CASE("words before a colon that are the program's own stay") {
  const auto log = read_logs_text(samples().at("p2pBandwidthLatencyTest"), "log.txt");
  REQUIRE(log.has_value());
  CHECK(log->at(0).header.device_names == std::vector<std::string>{"NVIDIA A100"});
}

TEST_CASE("a compressed log is refused with what unpacks it") {
  for (const auto& [sign, program] : std::map<std::string, std::string>{
           {"\x1f\x8b\x08", "gunzip"}, {"\x28\xb5\x2f\xfd", "unzstd"}, {"BZh9", "bunzip2"}}) {
    const auto log = read_logs_text(sign + "xyz", "log.txt.gz");
    REQUIRE_FALSE(log.has_value());
    CHECK(log.error().front().message.find(program) != std::string::npos);
  }
}
