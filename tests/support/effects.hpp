// SPDX-License-Identifier: Apache-2.0
// What a user sees of a scenario before and after one setting changes, for the tests that leave no key out.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

namespace fabricast::test {

struct TwoValues {
  std::string key;
  std::string base;  ///< the settings beside it
  std::string one, other;
};

/// One of every planner; the rest of a family reads what its first does.
inline const std::vector<std::string> k_workloads{
    "benchmark: osu_latency, buffers: device, sizes: [8 KiB]",
    "benchmark: osu_bw, sizes: [1 MiB]",
    "benchmark: all_reduce_perf, sizes: [1 MiB]",
    "benchmark: host_copies, gpus: 2, direction: to_peer, sizes: [64 MiB]",
    "benchmark: gpu_step, compute: 20 ms, sizes: [4 MiB]",
    "benchmark: iperf3",
    "benchmark: gpu_sharing, sharing: {clients: [{name: a, kernel: 1 ms, count: 2}]}",
    "benchmark: remote_gpu, sizes: [1 MiB], remote: {compute: 50 ms, calls: 1000}",
    "benchmark: vgpu_migration, sizes: [8 GiB], migration: {memory: 64 GiB}",
    "benchmark: traffic, pattern: incast, senders: 1, sizes: [1 MiB]",
    "benchmark: training, network: gpt-124m, batch_per_gpu: 1, parallel: {data: fsdp}"};

/// And those that differ in the software that they read.
inline const std::vector<std::string> k_further{
    "benchmark: osu_latency, sizes: [8 KiB]",
    "benchmark: osu_bw, buffers: device, sizes: [16 KiB, 1 MiB]",
    "benchmark: osu_allreduce, sizes: [8 B, 1 MiB]",
    "benchmark: osu_bcast, buffers: device, sizes: [1 KiB, 64 KiB]",
    "benchmark: osu_mbw_mr, pairs: 2, sizes: [64 KiB]",
    "benchmark: ib_write_bw, sizes: [64 KiB]",
    "benchmark: ib_send_lat, buffers: device, sizes: [8 KiB]",
    "benchmark: sockperf",
    "benchmark: all_reduce_perf, gpus: 2, ranks_per_host: 1, sizes: [1 KiB, 64 MiB]",
    "benchmark: all_reduce_perf, gpus: 2, sizes: [1 KiB, 64 MiB]",
    "benchmark: alltoall_perf, sizes: [1 KiB, 64 MiB]",
    "benchmark: broadcast_perf, sizes: [1 KiB, 64 MiB]",
    "benchmark: sendrecv_perf, sizes: [1 KiB, 64 MiB]",
    "benchmark: gpu_step, gpus: 1, compute: 20 ms, sizes: [0 B]",
    "benchmark: training, network: vgg-16, batch_per_gpu: 32",
    "benchmark: training, network: vgg-16, batch_per_gpu: 32, gpus: 1",
    "benchmark: training, network: resnet-50, batch_per_gpu: 8, parallel: {data: horovod, hierarchical: on, fusion: 64 "
    "KiB}"};

/// Everything a user sees of a scenario, but for the lines that say that a key changes no time.
struct Seen {
  std::string text;
  std::string idle;
  std::string times;
  bool is_refused = false;
};

inline Seen seen(const std::string& yaml) {
  Seen out;
  const auto loaded = load_scenario(write_file("effects.yaml", yaml));
  if (!loaded) return {shown(loaded.error()), "", "", true};
  out.text = shown(loaded->warnings) +
             render(check_virtualization(loaded->topology, loaded->parameters, loaded->device_types)) +
             render(check_scenario(loaded->topology, loaded->scenario, loaded->parameters));
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  if (!run) return {out.text + render(run.error()), "", "", true};
  for (const auto& row : run->workloads[0].rows) {
    out.times += std::to_string(row.time.ps) + " " + std::to_string(row.high_time.ps) + " " +
                 std::to_string(row.algbw.bytes_per_s) + "\n";
    out.text += row.algorithm + " " + row.protocol + "\n";
    for (const auto& figure : row.figures) out.times += std::to_string(figure.value) + " ";
  }
  for (const auto& line : run->workloads[0].assumptions)
    (line.find("changes no time") == std::string::npos ? out.text : out.idle) += line + "\n";
  return out;
}

inline std::string scenario_of(const std::string& settings, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
         "{name: n, count: 2, host: {processor: xeon-icelake, devices: [{name: sw0, kind: pcie_switch, below: socket0, "
         "pcie: gen4 x16}, {name: gpu0, type: a100-pcie-40, below: sw0}, {name: gpu1, type: a100-pcie-40, below: "
         "sw0}, {name: hca0, type: connectx-6-hdr, below: sw0}]}}\n  fabric:\n    single_switch: {switch: "
         "qm8700}\n" +
         settings + "\nworkload: {" + workload + "}\n";
}

inline std::vector<std::string> all_workloads() {
  auto all = k_workloads;
  all.insert(all.end(), k_further.begin(), k_further.end());
  return all;
}

inline std::set<std::string> keys_of_schema(const std::string& section) {
  const auto schema = nlohmann::json::parse(json_schema("scenario"));
  const auto dot = section.find('.');
  auto node = schema.at("properties").at(section.substr(0, dot));
  if (dot != std::string::npos) node = node.at("properties").at(section.substr(dot + 1));
  if (node.contains("anyOf")) node = node.at("anyOf").back();
  std::set<std::string> keys;
  for (const auto& [key, value] : node.at("properties").items()) keys.insert(key);
  return keys;
}

inline std::set<std::string> keys_of(const std::vector<TwoValues>& table) {
  std::set<std::string> keys;
  for (const auto& one : table) keys.insert(one.key);
  return keys;
}

}  // namespace fabricast::test
