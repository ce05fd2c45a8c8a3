// SPDX-License-Identifier: Apache-2.0
// First calibration files from logs: what headers, environments and names say ends up in keys, what nobody says in
// comments, and every suggested file runs as it is.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "fabricast/calibration.hpp"
#include "fabricast/nccl_variables.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;
using test::Folder;

namespace {

namespace fs = std::filesystem;

std::string topology(const std::string& name) {
  return (fs::path(FABRICAST_SOURCE_DIR) / "topologies" / (name + ".yaml")).string();
}

/// Rows of nccl-tests: start + bytes / rate, enough to be fitted.
std::string rows(double start_us, double bytes_per_us) {
  std::string out;
  for (std::int64_t size = 1024; size <= std::int64_t{1} << 27; size *= 4) {
    const double us = start_us + static_cast<double>(size) / bytes_per_us;
    const double algbw = static_cast<double>(size) / us * 1e-3;
    const auto half = fmt::format("{:.3f} {:.2f} {:.2f} 0", us, algbw, algbw);
    out += fmt::format("{:>12} {:>12} float sum -1 {} {}\n", size, size / 4, half, half);
  }
  return out;
}

std::string nccl_log(const std::string& before, const std::string& devices, double bytes_per_us = 200e3) {
  return before +
         "# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n"
         "# Collective test starting: all_reduce_perf\n"
         "# nThread 1 nGpus 2 minBytes 1024 maxBytes 134217728 step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1 "
         "validation: 1 graph: 0\n" +
         devices + rows(16, bytes_per_us);
}

const std::string k_two_gpus =
    "#  Rank  0 Group  0 Pid 1 on node0 device  0 [0000:00:06] NVIDIA H200\n"
    "#  Rank  1 Group  0 Pid 1 on node0 device  1 [0000:00:07] NVIDIA H200\n";

const std::string k_two_more =
    "#  Rank  2 Group  0 Pid 1 on node0 device  2 [0000:00:08] NVIDIA H200\n"
    "#  Rank  3 Group  0 Pid 1 on node0 device  3 [0000:00:09] NVIDIA H200\n";

std::string suggestion(const Folder& folder, const std::string& cluster, const std::vector<std::string>& logs) {
  const auto text = suggest_calibration(topology(cluster), logs, folder.path.string());
  if (!text) MESSAGE(render(text.error()));
  REQUIRE(text.has_value());
  return *text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The suggested file, read and fitted without a change.
CalibrationReport run(const Folder& folder, const std::string& text) {
  const auto calibration = load_calibration(folder.write("suggested.yaml", text));
  if (!calibration) MESSAGE(render(calibration.error()));
  REQUIRE(calibration.has_value());
  const auto report = calibrate(*calibration, {.with_leave_out = false, .progress = {}, .stop = nullptr});
  if (!report) MESSAGE(render(report.error()));
  REQUIRE(report.has_value());
  return *report;
}

std::string logs_part(const std::string& text) {
  const auto begin = text.find("logs:\n");
  return text.substr(begin, text.find("fit:\n") - begin);
}

}  // namespace

TEST_CASE("what the environment forces becomes keys of the suggested entry, and the file runs") {
  const Folder folder("suggest-environment");
  const auto log =
      folder.write("a.txt", nccl_log("$ mpirun -x NCCL_ALGO=Ring -x NCCL_PROTO=Simple -x NCCL_MIN_NCHANNELS=4 -x "
                                     "NCCL_MAX_NCHANNELS=4 -x NCCL_BUFFSIZE=8388608 ./all_reduce_perf -g 2\n",
                                     k_two_gpus, 100e3));
  const auto text = suggestion(folder, "h200-8gpu-vm", {log});
  CHECK(logs_part(text) ==
        "logs:\n"
        "  # the log also sets NCCL_BUFFSIZE=8388608: write a size under 'parameters' of the topology: "
        "'nccl.buffer_size'\n"
        "  - file: a.txt\n"
        "    workload: {benchmark: all_reduce_perf, gpus: 2, launch: one_thread, algorithm: ring, protocol: simple, "
        "channels: 4}\n"
        "    software: {nccl: {version: \"2.28.9\"}}\n");
  const auto report = run(folder, text);
  CHECK(report.points.size() == 9);
  // Only what a forced ring over Simple rests on is fitted.
  for (const auto& parameter : report.parameters) {
    CAPTURE(parameter.parameter.name);
    CHECK_FALSE(has(parameter.parameter.name, ".ll"));
    CHECK_FALSE(has(parameter.parameter.name, "tree"));
  }
}

TEST_CASE("a variable that becomes a key is not said to have none") {
  const Folder folder("suggest-keys");
  for (const auto& [variable, key] :
       std::vector<std::pair<std::string, std::string>>{{"NCCL_CROSS_NIC=1", "cross_nic: 1"},
                                                        {"NCCL_PXN_DISABLE=1", "pxn: off"},
                                                        {"NCCL_SOCKET_NTHREADS=4", "socket_nthreads: 4"},
                                                        {"NCCL_NSOCKS_PERTHREAD=4", "nsocks_perthread: 4"},
                                                        {"NCCL_IB_QPS_PER_CONNECTION=4", "ib_qps_per_connection: 4"},
                                                        {"NCCL_IB_SPLIT_DATA_ON_QPS=1", "ib_split_data_on_qps: on"},
                                                        {"NCCL_P2P_PXN_LEVEL=0", "p2p_pxn_level: 0"},
                                                        {"NCCL_COLLNET_ENABLE=1", "collnet: on"},
                                                        {"NCCL_NET=Socket", "transport: tcp"},
                                                        {"NCCL_P2P_DISABLE=1", "p2p: off"}}) {
    const auto log = folder.write(
        "a.txt", nccl_log("$ mpirun -x " + variable + " -x NCCL_IB_SL=1 ./all_reduce_perf -g 2\n", k_two_gpus));
    const auto text = suggestion(folder, "h200-8gpu-vm", {log});
    CAPTURE(text);
    CHECK(has(text, key));
    CHECK(has(text, "the log also sets NCCL_IB_SL=1: no key stands for it"));
    CHECK_FALSE(has(text, "also sets " + variable));
  }
}

TEST_CASE("a variable that becomes no key is told as under software.nccl, unless it changes no time") {
  const Folder folder("suggest-no-keys");
  const auto told = [&](const std::string& variable) {
    const auto log =
        folder.write("a.txt", nccl_log("$ mpirun -x " + variable + " ./all_reduce_perf -g 2\n", k_two_gpus));
    return suggestion(folder, "h200-8gpu-vm", {log});
  };
  const std::set<std::string_view> flags{"p2p_disable", "shm_disable", "pxn_disable", "ib_disable", "collnet_enable"};
  for (const auto& one : nccl_variables()) {
    std::string name = "nccl_" + std::string(one.name);
    std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::toupper(letter); });
    const auto text = told(name + "=none");
    CAPTURE(text);
    const auto hint = one.hint.empty() ? "no value of '" + std::string(one.name) + "'" : std::string(one.hint);
    const bool is_said = !one.is_timeless && !flags.contains(one.name);
    CHECK(has(text, "the log also sets " + name + "=none: " + hint) == is_said);
  }
  for (const auto* value : {"NCCL_ALGO=^NVLS", "NCCL_PROTO=^LL128", "NCCL_MIN_NCHANNELS=24", "NCCL_MAX_CTAS=8",
                            "NCCL_P2P_LEVEL=NVL", "NCCL_CROSS_NIC=3", "NCCL_IB_HCA=mlx5_0"}) {
    CAPTURE(value);
    CHECK(has(told(value), "the log also sets " + std::string(value) + ": "));
  }
  CHECK(has(told("NCCL_MIN_NCHANNELS=24"), "write 'channels' in the workload"));
  CHECK_FALSE(has(told("NCCL_DEBUG=INFO -x NCCL_CROSS_NIC=2 -x NCCL_IB_TIMEOUT=22"), "also sets"));
}

TEST_CASE("a variable that the log's release does not read becomes no key that refuses it") {
  const Folder folder("suggest-too-new");
  auto text = nccl_log(
      "$ mpirun -x NCCL_IB_QPS_PER_CONNECTION=4 -x NCCL_IB_SPLIT_DATA_ON_QPS=1 -x NCCL_P2P_PXN_LEVEL=2 "
      "./all_reduce_perf -g 2\n",
      k_two_gpus);
  while (text.find("22809") != std::string::npos) text.replace(text.find("22809"), 5, "20903");
  const auto suggested = suggestion(folder, "h200-8gpu-vm", {folder.write("a.txt", text)});
  CAPTURE(suggested);
  CHECK(has(suggested, "software: {nccl: {version: \"2.9.3\"}}"));
  CHECK(has(suggested, "the log also sets NCCL_IB_QPS_PER_CONNECTION=4: NCCL reads it from 2.10 on"));
  CHECK(run(folder, suggested).logs.size() == 1);
}

TEST_CASE("NCCL's own lines name forced settings too") {
  const Folder folder("suggest-info");
  const auto log = folder.write("a.txt", nccl_log("node0:7:7 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
                                                  "node0:7:7 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n",
                                                  k_two_gpus));
  const auto text = suggestion(folder, "h200-8gpu-vm", {log});
  CHECK(has(text, "algorithm: tree"));
  CHECK(has(text, "p2p: off"));
}

TEST_CASE("counts of sockets and queue pairs are taken where they are legal") {
  const Folder folder("suggest-counts");
  const auto with = [&](const std::string& variable, const std::string& value) {
    const auto log = folder.write(
        "a.txt",
        nccl_log("node0:7:7 [0] NCCL INFO " + variable + " set by environment to " + value + ".\n", k_two_gpus));
    return suggestion(folder, "h200-8gpu-vm", {log});
  };
  CHECK(has(with("NCCL_SOCKET_NTHREADS", "4"), "socket_nthreads: 4"));
  CHECK(has(with("NCCL_NSOCKS_PERTHREAD", "8"), "nsocks_perthread: 8"));
  CHECK(has(with("NCCL_IB_QPS_PER_CONNECTION", "2"), "ib_qps_per_connection: 2"));
  CHECK_FALSE(has(with("NCCL_IB_QPS_PER_CONNECTION", "500"), "ib_qps_per_connection:"));
  CHECK_FALSE(has(with("NCCL_SOCKET_NTHREADS", "-2"), "socket_nthreads:"));
}

TEST_CASE("how far GPUDirect RDMA may reach is named by word or by the number of older releases") {
  const Folder folder("suggest-gdr-level");
  const auto level = [&](const std::string& value) {
    const auto log = folder.write(
        "a.txt",
        nccl_log("node0:7:7 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to " + value + ".\n", k_two_gpus));
    return suggestion(folder, "h200-8gpu-vm", {log});
  };
  CHECK(has(level("PHB"), "gdr_level: phb"));
  CHECK(has(level("5"), "gdr_level: sys"));
  CHECK(has(level("0"), "gpudirect_rdma: off"));
}

TEST_CASE("a log without an environment asks for what may have been forced, its name is a hint to check") {
  const Folder folder("suggest-name");
  const auto plain = folder.write("run.txt", nccl_log("", k_two_gpus));
  const auto named = folder.write("run-ring-ll128.txt", nccl_log("", k_two_gpus, 190e3));
  const auto text = suggestion(folder, "h200-8gpu-vm", {plain, named});
  CHECK(has(text, "# no environment in the log: was an algorithm, protocol or transport forced"));
  CHECK(has(text, "# from the file's name, check: algorithm: ring, protocol: ll128\n  - file: run-ring-ll128.txt"));
  CHECK(run(folder, text).logs.size() == 2);
}

TEST_CASE("a log far off is compared with settings it may have been measured under") {
  // 28 GB/s between two GPUs with 18 NVLinks: the bytes went through host memory.
  const Folder folder("suggest-off");
  const auto source = fs::path(FABRICAST_SOURCE_DIR) /
                      "calibration/data/h200-8gpu-nvswitch-passthrough-vm/nccl-tests/h200vm-2gpu-all_reduce-p2poff.txt";
  fs::copy_file(source, folder.path / "a.txt");
  const auto text = suggestion(folder, "h200-8gpu-vm", {(folder.path / "a.txt").string()});
  CHECK(has(text, "with {software.nccl.p2p: off}"));
  CHECK_FALSE(has(text, "\n    software: {nccl: {version: \"2.28.9\", p2p: off}}"));
}

TEST_CASE("GPUs other than the first are named as devices") {
  const Folder folder("suggest-devices");
  const auto log =
      folder.write("a.txt", nccl_log("",
                                     "#  Rank  0 Group  0 Pid 1 on n device  4 [0000:00:0a] NVIDIA H200\n"
                                     "#  Rank  1 Group  0 Pid 1 on n device  5 [0000:00:0b] NVIDIA H200\n"));
  CHECK(has(suggestion(folder, "h200-8gpu-vm", {log}), "devices: [node.gpu4, node.gpu5]"));
}

TEST_CASE("JSON of nccl-tests gives an entry with its environment's settings and nothing else of it") {
  const Folder folder("suggest-json");
  std::string results;
  for (std::int64_t size = 1024; size <= 1 << 24; size *= 4) {
    const double us = 16 + static_cast<double>(size) / 200e3;
    results += fmt::format(R"({}{{"size":{},"type":"float","redop":"sum","out_of_place":{{"time":{:.3f}}}}})",
                           results.empty() ? "" : ",", size, us);
  }
  const auto log = folder.write(
      "a.json",
      R"({"args":["./all_reduce_perf"],"env":["SECRET_TOKEN=hunter2","NCCL_ALGO=Ring","HOME=/root"],"nccl_version":22809,
      "config":{"nthreads":1,"ngpus":2,"devices":[{"rank":0,"hostname":"n","device":0},{"rank":1,"hostname":"n","device":1}]},
      "results":[)" +
          results + "]}");
  const auto text = suggestion(folder, "h200-8gpu-vm", {log});
  CHECK(has(text, "workload: {benchmark: all_reduce_perf, gpus: 2, launch: one_thread, algorithm: ring}"));
  CHECK_FALSE(has(text, "hunter2"));
  CHECK(run(folder, text).points.size() == 8);
}

TEST_CASE("OSU and perftest logs become entries that run") {
  const Folder folder("suggest-mpi");
  std::string latency = "# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n";
  std::string bandwidth =
      "                    RDMA_Write BW Test\n Number of qps   : 1\n TX depth        : 128\n Device : mlx4_0\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
  for (std::int64_t size = 2; size <= 1 << 20; size *= 4) {
    latency += fmt::format("{} {:.2f}\n", size, 1.5 + static_cast<double>(size) / 3200);
    const double us = 0.3 + static_cast<double>(size) / 3500;
    bandwidth += fmt::format(" {} 5000 0.00 {:.2f} {:.6f}\n", size, static_cast<double>(size) / us / 1.048576, 1 / us);
  }
  const auto text =
      suggestion(folder, "qdr-cx3-pair", {folder.write("lat.txt", latency), folder.write("bw.txt", bandwidth)});
  CHECK(has(text, "# the log does not name the MPI library: set software.mpi"));
  CHECK(has(text, "- file: lat.txt\n    workload: {benchmark: osu_latency, buffers: [host, host]}\n"));
  CHECK(has(text, "- file: bw.txt\n    workload: {benchmark: ib_write_bw, window: 128}\n"));
  const auto report = run(folder, text);
  CHECK(report.logs.size() == 2);
  CHECK(std::any_of(report.parameters.begin(), report.parameters.end(),
                    [](const FittedParameter& p) { return p.determination == Determination::determined; }));
}

TEST_CASE("an MPI log whose name says TCP is forecast over TCP, and asks to check") {
  const Folder folder("suggest-tcp");
  std::string text = "# OSU MPI Bandwidth Test v5.8\n# Size Bandwidth (MB/s)\n";
  for (std::int64_t size = 1; size <= 1 << 22; size *= 4)
    text += fmt::format("{} {:.2f}\n", size, static_cast<double>(size) / (1.0 + static_cast<double>(size) / 2500));
  const auto found = suggestion(folder, "cx4-edr-pair", {folder.write("osu_bw-tcp.txt", text)});
  CHECK(has(found, "# from the file's name, check: transport: tcp"));
  CHECK(has(found, "    software: {transport: tcp}"));
  CHECK(run(folder, found).logs.size() == 1);
}

TEST_CASE("copy timings become entries by direction, number of GPUs and peer access") {
  const Folder folder("suggest-copies");
  const auto log =
      (fs::path(FABRICAST_SOURCE_DIR) / "calibration/data/h200-8gpu-nvswitch-passthrough-vm/host-and-peer-copies.txt")
          .string();
  const auto text = suggestion(folder, "h200-8gpu-vm", {log});
  CHECK(has(text, "workload: {benchmark: host_copies, gpus: 8, direction: to_host}"));
  CHECK(has(text, "workload: {benchmark: host_copies, gpus: 2, direction: to_peer}\n    software: {nccl: {p2p: off}}"));
  const auto report = run(folder, text);
  const auto single = std::find_if(report.logs.begin(), report.logs.end(),
                                   [](const CalibrationLogReport& one) { return has(one.name, "1 GPUs to_host"); });
  REQUIRE(single != report.logs.end());
  CHECK(single->summary.num_points == 15);
  CHECK(single->summary.median_abs_error < 0.05);
}

TEST_CASE("a log that the topology cannot run is left out with the reason, none left is a fault") {
  const Folder folder("suggest-left-out");
  std::string devices;
  for (int rank = 0; rank < 4; ++rank)
    devices += fmt::format("#  Rank  {0} Group  0 Pid 1 on n device  {0} [0000:00:0{0}] NVIDIA H200\n", rank);
  const auto four = folder.write("four.txt", nccl_log("", devices));
  const auto two = folder.write("two.txt", nccl_log("", k_two_gpus));
  const auto text = suggestion(folder, "h200-2gpu-vm", {four, two});
  CHECK(has(text, "  # left out: "));
  CHECK(has(text, "4 GPUs asked for, topology 'h200-2gpu-vm' has 2"));
  CHECK(run(folder, text).logs.size() == 1);
  const auto none = suggest_calibration(topology("h200-2gpu-vm"), {four});
  REQUIRE_FALSE(none.has_value());
  CHECK(has(render(none.error()), "4 GPUs asked for"));
}

TEST_CASE("a log of other GPUs, or of more of them on a host, than the topology has is told so") {
  const Folder folder("suggest-others");
  const auto text = suggestion(folder, "hgx-a100", {folder.write("two.txt", nccl_log("", k_two_gpus))});
  const std::string other = "the log is of 'NVIDIA H200', the topology has a100-sxm4-80";
  CHECK(has(text, "  # " + other + "\n"));
  const auto warnings = run(folder, text).warnings;
  CHECK(std::ranges::any_of(warnings, [&](const auto& one) { return has(one.message, other); }));
  std::string dense;
  for (int rank = 0; rank < 12; ++rank)
    dense += fmt::format("#  Rank  {0} Group  0 Pid 1 on n device  {0} [0000:00:0{0}] A100-SXM4-40GB\n", rank);
  const auto none = suggest_calibration(topology("dgx-a100-pair"), {folder.write("dense.txt", nccl_log("", dense))});
  REQUIRE_FALSE(none.has_value());
  CHECK(has(render(none.error()), "the log has 12 GPUs on a host, hosts of topology 'dgx-a100-pair' have 8"));
}

TEST_CASE("a plain log is suggested by what its rows say, or by --benchmark where they leave it open") {
  const Folder folder("suggest-plain");
  std::string text = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" + k_two_gpus;
  const auto checked = folder.write("job-1.txt", text + rows(16, 200e3));
  CHECK(has(suggestion(folder, "h200-8gpu-vm", {checked}), "workload: {benchmark: all_reduce_perf, gpus: 2"));
  // Unchecked, two ranks: all-reduce and send-receive look alike.
  auto unchecked = rows(16, 200e3);
  for (auto at = unchecked.find(" 0\n"); at != std::string::npos; at = unchecked.find(" 0\n", at))
    unchecked.replace(at, 3, " N/A\n");
  for (auto at = unchecked.find(" 0 "); at != std::string::npos; at = unchecked.find(" 0 ", at))
    unchecked.replace(at, 3, " N/A ");
  const auto open = folder.write("job-2.txt", text + unchecked);
  const auto refused = suggest_calibration(topology("h200-8gpu-vm"), {open}, folder.path.string());
  REQUIRE_FALSE(refused.has_value());
  CHECK(has(render(refused.error()),
            "the log does not say which collective it is of, by its columns all_reduce_perf or "
            "sendrecv_perf; name it by --benchmark"));
  const auto named =
      suggest_calibration(topology("h200-8gpu-vm"), {open}, folder.path.string(), Benchmark::sendrecv_perf);
  REQUIRE(named.has_value());
  CHECK(has(*named, "workload: {benchmark: sendrecv_perf, gpus: 2"));
  run(folder, *named);
}

TEST_CASE("what NCCL's own lines say becomes keys, unless the environment says otherwise") {
  const Folder folder("suggest-seen");
  const auto suggested = [&](const std::string& lines) {
    const auto log = folder.write("a.txt", nccl_log(lines, k_two_gpus + k_two_more));
    return logs_part(suggestion(folder, "h200-8gpu-vm", {log}));
  };
  CHECK(has(suggested("n:1:1 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)\n"),
            "nvls: on"));
  CHECK(has(suggested("n:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"), "nvls: off"));
  CHECK(has(suggested("$ NCCL_NVLS_ENABLE=0 ./all_reduce_perf\n"), "nvls: off"));
  CHECK(has(
      suggested("$ NCCL_NVLS_ENABLE=0 ./all_reduce_perf\nn:1:1 [0] NCCL INFO NVLS multicast support is available\n"),
      "nvls: off"));
  // What the release does by itself anyway.
  CHECK_FALSE(has(suggested("$ NCCL_NVLS_ENABLE=1 ./all_reduce_perf\n"), "nvls"));
  CHECK_FALSE(has(suggested("$ NCCL_NVLS_ENABLE=2 ./all_reduce_perf\n"), "nvls"));
  CHECK(has(suggested("n:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"), "p2p: off"));
  CHECK_FALSE(has(suggested("n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                            "n:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via SHM/direct/direct\n"),
                  "p2p: off"));
  CHECK(has(suggested("n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"), "transport: tcp"));
  CHECK(has(suggested("n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"), "gpudirect_rdma: off"));
  CHECK_FALSE(
      has(suggested("n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"), "gpudirect_rdma"));
}
