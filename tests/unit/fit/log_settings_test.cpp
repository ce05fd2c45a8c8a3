// SPDX-License-Identifier: Apache-2.0
// What logs print of how they were taken fills what a scenario leaves open, and nothing else.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fabricast/setting_hints.hpp"
#include "tests/support/folder.hpp"

using namespace fabricast;
using test::Folder;

namespace {

constexpr const char* k_old_table =
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
    "#\n# Using devices\n"
    "#   Rank  0 Pid 10 on node0 device  0 [0x00] A100-SXM4-80GB\n"
    "#   Rank  1 Pid 10 on node0 device  1 [0x00] A100-SXM4-80GB\n"
    "#   Rank  2 Pid 10 on node0 device  2 [0x00] A100-SXM4-80GB\n"
    "#   Rank  3 Pid 10 on node0 device  3 [0x00] A100-SXM4-80GB\n"
    "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
    "           8             2   float     sum    14.73    0.00    0.00  0e+00    14.66    0.00    0.00  0e+00\n"
    "          16             4   float     sum    14.66    0.00    0.00  0e+00    14.66    0.00    0.00  0e+00\n";

// A collector's lines.
constexpr const char* k_from = "# source: a test\n";
constexpr const char* k_below = "# ---- raw output below ----\n";

/// The same as later releases print it.
std::string new_table() {
  std::string text = k_old_table;
  text.replace(text.find("  error"), 7, " #wrong");
  text.replace(text.find("  error"), 7, " #wrong");
  return text;
}

std::string scenario_text(const std::string& rest, const char* topology) {
  return fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}/topologies/{}.yaml\n{}\n",
                     FABRICAST_SOURCE_DIR, topology, rest);
}

LoadedScenario loaded(const std::string& rest, const char* topology = "hgx-a100", std::vector<Setting> settings = {}) {
  const auto text = scenario_text(rest, topology);
  auto scenario = load_scenario_text("s.yaml", text, {}, settings);
  if (!scenario) MESSAGE(render(scenario.error()));
  REQUIRE(scenario.has_value());
  return std::move(*scenario);
}

std::vector<MeasuredLog> logs_of(const std::vector<std::string>& texts) {
  const Folder folder("log_settings");
  std::vector<MeasuredLog> logs;
  for (const auto& text : texts) {
    const auto read = read_logs(folder.write(fmt::format("log{}.txt", logs.size()), text));
    REQUIRE(read.has_value());
    REQUIRE(read->size() == 1);
    logs.push_back(read->front());
  }
  return logs;
}

std::string said(const LoadedScenario& scenario, const std::vector<std::string>& texts) {
  const auto settings = settings_of_logs(scenario, logs_of(texts));
  std::string out;
  for (const auto& one : settings) out += fmt::format("{}{}={}", out.empty() ? "" : " ", one.path, one.value);
  return out;
}

}  // namespace

TEST_CASE("what a log of NCCL says of itself fills what the scenario leaves open") {
  const auto open = loaded("workload: {benchmark: all_reduce_perf}");
  CHECK(said(open, {k_old_table}) == "software.nccl.version=\"2.8\" workload.gpus=4 workload.launch=one_thread");
  CHECK(said(open, {new_table()}) == "workload.gpus=4 workload.launch=one_thread");
  CHECK(said(open, {k_from + std::string("# software: NCCL 2.19.3, CUDA 12.2\n") + k_below + new_table()}) ==
        "software.nccl.version=\"2.19.3\" workload.gpus=4 workload.launch=one_thread");
  CHECK(said(open, {k_from + std::string("# software: NCCL 2.4-2.8 era\n") + k_below + new_table()}) ==
        "workload.gpus=4 workload.launch=one_thread");
  CHECK(said(open, {"+ export NCCL_ALGO=Ring NCCL_P2P_DISABLE=1\n" + new_table()}) ==
        "software.nccl.p2p=off workload.algorithm=ring workload.gpus=4 workload.launch=one_thread");
  // What the scenario cannot take is said and left: PXN came with 2.12.
  const auto note = [](const std::string& rest, const std::string& log) {
    const auto out = as_logged(loaded(rest), logs_of({log}), [&](const std::vector<Setting>& more) {
      return load_scenario_text("s.yaml", scenario_text(rest, "hgx-a100"), {}, more);
    });
    CHECK(out.scenario.has_value() == !out.settings.empty());
    return out.note;
  };
  const std::string all = "workload: {benchmark: all_reduce_perf}";
  CHECK(note(all, new_table()) == "the scenario leaves open, the log says: workload.gpus=4 workload.launch=one_thread");
  CHECK(note("software: {nccl: {pxn: on}}\n" + all, k_old_table) ==
        "the scenario leaves open, the log says: workload.gpus=4 workload.launch=one_thread; not "
        "software.nccl.version=\"2.8\": 'pxn: on' with NCCL 2.8, PXN came with 2.12");
  CHECK(note("workload: {benchmark: all_reduce_perf, gpus: 4, launch: one_thread}", new_table()).empty());
}

TEST_CASE("what the scenario gives stands, and a contradiction is said") {
  const auto given =
      loaded("software: {nccl: {version: \"2.20\"}}\nworkload: {benchmark: all_reduce_perf, gpus: 8, launch: graph}");
  CHECK(said(given, {k_old_table}).empty());
  const auto logs = logs_of({k_from + std::string("# software: NCCL 2.19.3\n") + k_below + new_table()});
  CHECK(
      text_of_contradictions(given, logs) ==
      "the scenario gives software.nccl.version=\"2.20\", the log says \"2.19.3\"; workload.launch=graph, the log says "
      "one_thread");
  const auto same =
      loaded("software: {nccl: {version: \"2.19\"}}\nworkload: {benchmark: all_reduce_perf, launch: one_thread}");
  CHECK(text_of_contradictions(same, logs).empty());
  // A column tells a time, not a release.
  CHECK(text_of_contradictions(given, logs_of({k_old_table})) ==
        "the scenario gives workload.launch=graph, the log says one_thread");
}

TEST_CASE("logs that disagree settle nothing, nor do logs of more GPUs than the topology has") {
  const auto open = loaded("workload: {benchmark: all_reduce_perf}");
  auto other = new_table();
  other.replace(other.find("nThread 1 nGpus 4"), 17, "nThread 4 nGpus 1");
  CHECK(said(open, {new_table(), other}) == "workload.gpus=4");
  CHECK(said(open, {new_table(), new_table()}) == "workload.gpus=4 workload.launch=one_thread");
  const auto named = k_from + std::string("# software: NCCL 2.4.2\n") + k_below + k_old_table;
  const auto later = k_from + std::string("# software: NCCL 2.11.4\n") + k_below + k_old_table;
  CHECK(said(open, {named, later}) == "workload.gpus=4 workload.launch=one_thread");
  // A log of another kind of benchmark says nothing.
  CHECK(said(loaded("workload: {benchmark: osu_allreduce}"), {k_old_table}).empty());
  const auto pair = loaded("workload: {benchmark: all_reduce_perf}", "h200-2gpu-vm");
  CHECK(said(pair, {new_table()}) == "workload.launch=one_thread");
}

TEST_CASE("OSU and perftest say buffers, windows and queue pairs") {
  const std::string osu =
      "# OSU MPI-CUDA Bandwidth Test v5.8\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
      "# Size      Bandwidth (MB/s)\n1 0.5\n2 1.0\n";
  const auto open = loaded("workload: {benchmark: osu_bw}", "hgx-a100-4gpu-hdr-pair");
  CHECK(said(open, {osu}) == "workload.buffers=[device, host]");
  const auto given = loaded("workload: {benchmark: osu_bw, buffers: [host, host]}", "hgx-a100-4gpu-hdr-pair");
  CHECK(said(given, {osu}).empty());
  CHECK(text_of_contradictions(given, logs_of({osu})) ==
        "the scenario gives workload.buffers=[host, host], the log says [device, host]");
}

TEST_CASE("once taken, a log leaves nothing open and contradicts nothing: all logs of the project") {
  int checked = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data")) {
    const auto file = entry.path().string();
    if (entry.path().extension() != ".txt" || file.find("nccl-tests") == std::string::npos) continue;
    CAPTURE(file);
    const auto logs = read_logs(file);
    REQUIRE(logs.has_value());
    if (logs->empty() || !logs->front().benchmark || logs->front().rows.empty()) continue;
    const auto text = fmt::format("workload: {{benchmark: {}}}", to_string(*logs->front().benchmark));
    const std::span<const MeasuredLog> one(logs->data(), 1);
    const auto settings = settings_of_logs(loaded(text, "h200-8gpu-vm"), one);
    CHECK_FALSE(settings.empty());
    const auto filled = loaded(text, "h200-8gpu-vm", settings);
    CHECK(settings_of_logs(filled, one).empty());
    CHECK(text_of_contradictions(filled, one).empty());
    ++checked;
  }
  CHECK(checked > 40);
}

TEST_CASE("a log of other GPUs or adapters than the topology's is told so") {
  const auto said_of = [](const char* topology, const std::string& benchmark, const std::string& text) {
    return text_of_contradictions(loaded("workload: {benchmark: " + benchmark + "}", topology), logs_of({text}));
  };
  const auto gpus = [&](const char* topology, const std::string& name) {
    constexpr std::string_view k_own = "A100-SXM4-80GB";
    auto text = new_table();
    for (auto at = text.find(k_own); at != std::string::npos; at = text.find(k_own, at + name.size()))
      text.replace(at, k_own.size(), name);
    return said_of(topology, "all_reduce_perf", text);
  };
  CHECK(gpus("hgx-a100", "NVIDIA H100 80GB HBM3") ==
        "the log is of 'NVIDIA H100 80GB HBM3', the topology has a100-sxm4-80");
  CHECK(gpus("hgx-a100", "NVIDIA A100-SXM4-40GB") ==
        "the log is of 'NVIDIA A100-SXM4-40GB', the topology has a100-sxm4-80");
  CHECK(gpus("hgx-a100", "NVIDIA A100 80GB PCIe") ==
        "the log is of 'NVIDIA A100 80GB PCIe', the topology has a100-sxm4-80");
  CHECK(gpus("h200-8gpu-vm", "NVIDIA H200 NVL") == "the log is of 'NVIDIA H200 NVL', the topology has h200-sxm");
  // Spellings of the same, and names that the catalogue has no model of.
  for (const char* name : {"A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB MIG 3g.20gb",
                           "NVIDIA H800", "Graphics Device"})
    CHECK_MESSAGE(gpus("hgx-a100", name).empty(), std::string(name));
  CHECK(gpus("h200-8gpu-vm", "NVIDIA H200").empty());
  CHECK(gpus("abci-v100", "Tesla V100-SXM2-16GB").empty());

  const auto link = [&](const char* topology, const std::string& type, const std::string& mtu = "4096") {
    return said_of(topology, "ib_write_lat",
                   "                    RDMA_Write Latency Test\n Transport type : IB\n Connection type : RC\n"
                   " Link type       : " +
                       type + "\n Mtu             : " + mtu +
                       "[B]\n Data ex. method : Ethernet\n"
                       " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n"
                       " 2       1000          0.80           2.00         0.90\n");
  };
  CHECK(link("abci-v100", "IB").empty());
  CHECK(link("abci-v100", "Ethernet") == "the log's link type is Ethernet, the topology has connectx-4-edr");
  CHECK(link("abci-v100", "IB", "1024") ==
        "the log's packets carry 1024 B (Mtu), the topology's 4096 B: `mtu` of its fabric");
}
