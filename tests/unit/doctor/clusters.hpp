// SPDX-License-Identifier: Apache-2.0
// Clusters that faults are planted on, and the logs taken there.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "doctor/case.hpp"
#include "tests/unit/doctor/logs.hpp"

namespace fabricast::test {

struct Cluster {
  std::string name, yaml;
  int hosts = 2, per_host = 8;
};

inline const std::vector<Cluster>& clusters() {
  const auto head = [](const char* name) { return fmt::format("schema: fabricast/topology/1\nname: {}\n", name); };
  static const std::vector<Cluster> all{
      {"rails",
       head("rails") +
           "hosts: [{name: n, count: 2, type: dgx-a100}]\nfabric: {rail_optimized: {switch: qm8700, rails: 8}}\n",
       2, 8},
      {"cubes",
       head("cubes") + "hosts: [{name: n, count: 2, type: dgx-1-v100}]\nfabric: {single_switch: {switch: sb7800}}\n", 2,
       8},
      {"leaves",
       head("leaves") + "hosts: [{name: n, count: 4, type: server-1v100-cx4-100g}]\n"
                        "fabric: {leaf_spine: {switch: sn2700, leaf_ports: 4, spines: 1, lossless: {pfc: [3]}}}\n",
       4, 1},
      {"guests",
       head("guests") + "hosts: [{name: n, count: 2, type: kvm-a100-2hdr, virtualization: {mode: passthrough, "
                        "hypervisor: kvm, ats: on, numa: on}}]\n"
                        "fabric: {single_switch: {switch: qm8700}}\n",
       2, 8},
  };
  return all;
}

/// The list of causes, by the beginnings of their names.
inline const std::vector<std::string> k_list{
    "gpudirect-off", "acs-redirect", "ats-off",      "hca-narrow",      "hca0-narrow", "gpu-narrow",
    "gpu0-narrow",   "pcie-gen3",    "wrong-socket", "p2p-off",         "shm-off",     "rail-down",
    "crossed-rails", "mtu-",         "tcp",          "protocol-",       "channels-",   "slow-gpu-",
    "slow-launch",   "leaf-uplinks", "congested-",   "hidden-topology", "numa-off",    "numa-balancing",
    "nv-peer-mem",   "pfc-off"};

struct Log {
  Planted planted;
  doctor::Case healthy;
  std::vector<Bytes> sizes;
};

inline doctor::Case case_of(const std::string& topology, const std::string& workload, std::vector<Bytes>& sizes) {
  return test::case_of_text(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{{}, sizes: "
                  "{{from: 8 B, to: 128 MiB, factor: 16}}}}\n",
                  topology, workload),
      sizes);
}

/// All hosts together; each host with several GPUs, or each pair of neighbours, alone.
inline std::vector<Log> logs_of(const Cluster& cluster, const std::string& topology) {
  std::vector<Log> out;
  const int all = cluster.hosts * cluster.per_host;
  const auto add = [&](const std::string& workload, int ranks, int first) {
    Log one{{workload, ranks, first, cluster.per_host}, {}, {}};
    one.healthy = case_of(topology, workload, one.sizes);
    out.push_back(std::move(one));
  };
  add("benchmark: all_reduce_perf", all, 0);
  add("benchmark: sendrecv_perf", all, 0);
  const int width = cluster.per_host > 1 ? 1 : 2;
  for (int host = 0; host + width <= cluster.hosts; ++host) {
    std::string devices;
    for (int i = 0; i < width * cluster.per_host; ++i)
      devices += fmt::format("{}n{}.gpu{}", i == 0 ? "" : ", ", host + i / cluster.per_host, i % cluster.per_host);
    add(fmt::format("benchmark: all_reduce_perf, devices: [{}]", devices), width * cluster.per_host, host);
  }
  return out;
}

inline std::string write_cluster(const Cluster& cluster) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("fabricast-planted-{}-{}.yaml", getpid(), cluster.name);
  std::ofstream(path) << cluster.yaml;
  return path.string();
}

inline constexpr double k_scatter = 0.03;

/// What a cluster is like in truth, beside what its description says.
struct Truth {
  std::string name = "planted";        ///< of the files
  std::map<Benchmark, double> longer;  ///< than described: factor on times
  double scatter = k_scatter;
};

struct Draw {
  std::string cause, place, cluster;
  bool differs = false;
  std::vector<std::string> paths;
};

/// Writes the logs of one fault; nothing where the cluster cannot have it.
inline std::optional<Draw> plant(const std::vector<Log>& logs, const Cluster& cluster, const doctor::Cause& cause,
                                 std::mt19937_64& random, const Truth& truth = {}) {
  Draw out{cause.id, cause.place, cluster.name, false, {}};
  double sum = 0;
  std::size_t rows = 0;
  bool applies = false;
  for (std::size_t k = 0; k < logs.size(); ++k) {
    auto sick = logs[k].healthy;
    const auto benchmark = sick.scenario.workloads.front().benchmark;
    const bool here = cause.apply(sick);
    applies = applies || here;
    const auto healthy = doctor::forecast(logs[k].healthy, logs[k].sizes);
    auto times = here ? doctor::forecast(sick, logs[k].sizes) : healthy;
    if (times.empty()) times = healthy;
    const auto longer = truth.longer.find(benchmark);
    for (std::size_t i = 0; i < times.size(); ++i, ++rows) {
      sum += std::abs(std::log(times[i].seconds() / healthy[i].seconds()));
      if (longer != truth.longer.end()) times[i] = from_seconds(times[i].seconds() * longer->second);
    }
    const auto path =
        std::filesystem::temp_directory_path() / fmt::format("fabricast-{}-{}-{}.log", truth.name, getpid(), k);
    std::ofstream(path) << nccl_tests_log(benchmark, logs[k].sizes, times, "n", logs[k].planted, truth.scatter, random);
    out.paths.push_back(path.string());
  }
  out.differs = sum > k_scatter * static_cast<double>(rows);
  return applies ? std::optional(out) : std::nullopt;
}

inline doctor::Cause no_cause() {
  return {"", "", "", "", 1, [](doctor::Case&) { return true; }, -1};
}

inline bool is_named(const Finding& first, const doctor::Cause& cause) {
  return first.cause == cause.id ||
         std::ranges::any_of(first.alike, [&](const auto& other) { return other.starts_with(cause.title); });
}

/// The first finding's place, or one of those that have the same forecast.
inline bool is_placed(const Finding& first, const doctor::Cause& cause) {
  const auto place = fmt::format("({})", cause.place);
  return first.place == cause.place ||
         std::ranges::any_of(first.alike, [&](const auto& other) { return other.ends_with(place); });
}

}  // namespace fabricast::test
