// SPDX-License-Identifier: Apache-2.0
// What `calibrate --suggest` makes of logs: of every held one, and of heads that say more or less of how they were
// taken.
#include <algorithm>
#include <array>
#include <filesystem>

#include "fabricast/calibration.hpp"
#include "fabricast/measurement.hpp"
#include "fit/suggest_log.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

Topology built(const std::string& name) {
  const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
  REQUIRE(loaded);
  return loaded->topology;
}

std::string entries_of(const std::vector<MeasuredLog>& logs, const Topology& topology) {
  std::string out;
  for (const auto& log : logs) {
    if (!log.benchmark && log.matrices.empty() && log.copies.empty()) continue;
    for (const auto& entry : fit::suggest_entries(log, topology)) {
      out += fmt::format("  {} software {}\n", fit::flow_mapping(entry.workload), fit::software_text(entry));
      for (const auto& comment : entry.comments) out += "    # " + comment + "\n";
    }
  }
  return out;
}

constexpr auto k_raw = "# ---- raw output below ----\n";
constexpr auto k_nccl_table =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "     1048576        262144     float     sum      -1   100.00   10.49   18.35      0   100.00   10.49   18.35     "
    " 0\n";
constexpr auto k_osu_table = "# Size       Avg Latency(us)\n1024 10.0\n2048 12.0\n";
constexpr auto k_perftest_table =
    " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n 65536 5000 11000 10990.5 0.17\n";

}  // namespace

TEST_CASE("of every held log the same entry of a calibration is suggested as before") {
  const std::filesystem::path source = FABRICAST_SOURCE_DIR;
  const std::array topologies{built("h200-8gpu-vm"), built("hgx-a100-4gpu-hdr-pair")};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / "calibration/data"))
    if (entry.is_regular_file() && entry.path().extension() != ".yaml" && entry.path().extension() != ".xml")
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::string out;
  for (const auto& file : files) {
    const auto logs = read_logs(file.string());
    if (!logs) continue;
    for (const auto& topology : topologies)
      out += fmt::format("{} on {}\n{}", file.lexically_relative(source).generic_string(), topology.name(),
                         entries_of(*logs, topology));
  }
  test::check_kept("suggestions", out);
}

TEST_CASE("what heads, environments and names of logs say becomes the same entry as before") {
  const std::string osu = "# OSU MPI Allreduce Latency Test v7.2\n";
  const std::string pair =
      "# OSU MPI-CUDA Latency Test v7.2\n# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n";
  struct Log {
    std::string file, text;
  };
  std::vector<Log> logs;
  const auto add = [&](const std::string& file, const std::string& text) { logs.push_back({file, text}); };
  // OSU: ranks and hosts known, unknown, on one host; libraries; buffers; transports in names and settings.
  for (const auto* head : {"", "# gpus: 4\n", "# hosts: 2\n", "# gpus: 8\n# hosts: 2\n", "# gpus: 4\n# hosts: 1\n"})
    for (const auto* software : {"", "# software: MVAPICH2-GDR 2.3.7\n", "# software: Cray MPICH 8.1\n",
                                 "# software: Open MPI 4.1.5, UCX 1.14\n", "# software: Open MPI, openib\n",
                                 "# interconnect: EFA\n", "# software: Open MPI over libfabric\n"})
      add("osu_allreduce.txt", std::string(head) + software + k_raw + osu + k_osu_table);
  for (const auto* name :
       {"osu_latency-tcp.txt", "osu_latency-gdr0.txt", "osu_latency-nogdr-gdrcopy0.txt", "osu_latency.txt"}) {
    add(name, pair + k_osu_table);
    add(name, std::string("UCX_TLS=tcp,self\n") + pair + k_osu_table);
    add(name, std::string("# hosts: 2\n") + k_raw + pair + k_osu_table);
  }
  add("osu_bw.txt", "# OSU MPI Bandwidth Test v7.2\n# Size Bandwidth (MB/s)\n1024 1000\n");
  add("osu_mbw_mr.txt",
      "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n# [ pairs: 4 ] [ window size: 64 ]\n# Size MB/s "
      "Messages/s\n1024 1000 1000000\n");
  // nccl-tests: every variable, alone.
  for (const auto* variable : {"NCCL_ALGO=Tree",
                               "NCCL_ALGO=NVLSTree",
                               "NCCL_ALGO=CollnetDirect",
                               "NCCL_ALGO=Ring,Tree",
                               "NCCL_PROTO=LL128",
                               "NCCL_PROTO=^LL",
                               "NCCL_TREE_THRESHOLD=0",
                               "NCCL_MAX_NCHANNELS=1",
                               "NCCL_MAX_NCHANNELS=4",
                               "NCCL_MIN_NCHANNELS=4\nNCCL_MAX_NCHANNELS=4",
                               "NCCL_MIN_CTAS=8\nNCCL_MAX_CTAS=8",
                               "NCCL_P2P_DISABLE=1",
                               "NCCL_P2P_DISABLE=0",
                               "NCCL_P2P_LEVEL=LOC",
                               "NCCL_SHM_DISABLE=1",
                               "NCCL_PXN_DISABLE=1",
                               "NCCL_COLLNET_ENABLE=1",
                               "NCCL_SOCKET_NTHREADS=4",
                               "NCCL_SOCKET_NTHREADS=17",
                               "NCCL_NSOCKS_PERTHREAD=8",
                               "NCCL_NSOCKS_PERTHREAD=0",
                               "NCCL_IB_QPS_PER_CONNECTION=4",
                               "NCCL_IB_QPS_PER_CONNECTION=129",
                               "NCCL_NVLS_ENABLE=0",
                               "NCCL_NVLS_ENABLE=1",
                               "NCCL_IB_DISABLE=1",
                               "NCCL_NET=Socket",
                               "NCCL_NET_GDR_LEVEL=0",
                               "NCCL_NET_GDR_LEVEL=LOC",
                               "NCCL_NET_GDR_LEVEL=PXB",
                               "NCCL_NET_GDR_LEVEL=3",
                               "NCCL_NET_GDR_LEVEL=5",
                               "NCCL_NET_GDR_LEVEL=7",
                               "NCCL_DEBUG=INFO",
                               "NCCL_IB_HCA=mlx5_0",
                               "UCX_TLS=rc"})
    add("all_reduce.txt",
        std::string(variable) + "\n# nThread 1 nGpus 4 minBytes 1048576 maxBytes 1048576\n" + k_nccl_table);
  // nccl-tests: what names say; what NCCL's lines say; ranks and hosts.
  for (const auto* name : {"x-all_reduce-ring-ll128-ch4.txt", "x-all_reduce-tree-p2poff.txt", "x-all_reduce-nop2p.txt",
                           "x-all_reduce-socket.txt", "x-all_reduce-ch.txt", "x-all_reduce-chx.txt",
                           "x-all_reduce-nccl2.19.txt", "x-all_reduce-simple.txt"})
    add(name, std::string("# nThread 1 nGpus 2 minBytes 8 maxBytes 8\n") + k_nccl_table);
  for (const auto* lines :
       {"node:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n",
        "node:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n",
        "node:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n",
        "node:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n",
        "node:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", "NCCL version 2.21.5+cuda12.4\n"})
    add("all_reduce.txt", std::string(lines) + "# nThread 1 nGpus 2 minBytes 8 maxBytes 8\n" + k_nccl_table);
  for (const auto* ranks :
       {"", "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] H\n#  Rank  1 Group  0 Pid 2 on a device  1 [0x0a] H\n",
        "#  Rank  0 Group  0 Pid 1 on a device  2 [0x07] H\n#  Rank  1 Group  0 Pid 2 on a device  3 [0x0a] H\n",
        "#  Rank  0 Group  0 Pid 1 on a device  2 [0x07] H\n#  Rank  1 Group  0 Pid 2 on a device  2 [0x07] H\n",
        "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] H\n#  Rank  1 Group  0 Pid 2 on b device  0 [0x07] H\n",
        "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] H\n#  Rank  1 Group  0 Pid 2 on a device 17 [0x07] H\n"})
    add("all_reduce.txt",
        std::string("# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n# Using devices\n") + ranks + k_nccl_table);
  // perftest.
  for (const auto* head :
       {"", " Dual-port : OFF Device : mlx5_0\n Number of qps : 4 Transport type : IB\n Connection type : RC\n",
        " Connection type : UC\n", " TX depth : 64\n Mtu : 4096[B]\n Link type : IB\n"})
    add("ib_write_bw.txt", std::string("                    RDMA_Write BW Test\n") + head + k_perftest_table);
  const std::array topologies{built("h200-8gpu-vm"), built("hgx-a100-4gpu-hdr-pair")};
  std::string out;
  for (const auto& log : logs) {
    auto shown = log.text;
    std::ranges::replace(shown, '\n', '|');
    out += fmt::format("{}: {}\n", log.file, shown);
    auto read = read_logs_text(log.text, log.file);
    if (!read) {
      out += "  " + read.error().front().message + "\n";
      continue;
    }
    for (const auto& topology : topologies) out += entries_of(*read, topology);
  }
  test::check_kept("suggested_heads", out);
}

TEST_CASE("a fitted value of any size is written in units that give it back, with its interval") {
  struct Case {
    const char* name;
    Dimension dimension;
    double value;
  };
  for (const double scale : {1e-12, 3.3e-10, 9.99e-7, 1e-6, 2.5e-6, 1.0, 4.2})
    for (const auto& [name, dimension, value] :
         {Case{"host.scattered_threads", Dimension::number, scale},
          Case{"cuda.launch_interval", Dimension::time, scale},
          Case{"nccl.loopback_channel_bandwidth", Dimension::bandwidth, std::max(scale * 1e12, 2e3)}}) {
      CalibrationReport report;
      report.name = "x";
      Parameter one;
      one.name = name;
      one.dimension = dimension;
      one.value = value;
      one.low = value * 0.75;
      one.high = value * 1.5;
      one.source = "a fit";
      report.fitted.set(one);
      const auto text = parameters_yaml(report);
      CAPTURE(text);
      const auto loaded = load_parameters(test::write_file("fitted.yaml", text));
      REQUIRE(loaded);
      const auto& back = loaded->parameters.at(name);
      CHECK(back.value / value == test::approx(1).epsilon(1e-5));
      CHECK(back.low / one.low == test::approx(1).epsilon(1e-5));
      CHECK(back.high / one.high == test::approx(1).epsilon(1e-5));
    }
}
