// SPDX-License-Identifier: Apache-2.0
// Faults drawn at random from the whole list of causes, on four kinds of clusters, at random hosts, in logs with 3 %
// scatter. What counts: draws whose logs differ from healthy ones by more than the scatter (mean |ln| over all rows
// above 3 %); what cannot be seen is not to be found, but must stand among the causes that these logs do not show.
// Right: the cause is the first finding, or has the same forecast as it (listed with it).
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "doctor/case.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

constexpr double k_scatter = 0.03;
constexpr int k_most_unseen = 4;  ///< draws that are diagnosed though the logs cannot show them

// Sanitizers make a diagnosis take fifteen times as long: they look for faults of ours, not for rates.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FABRICAST_FEW_DRAWS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(FABRICAST_FEW_DRAWS)
constexpr int k_draws = 3;
constexpr int k_least_right = 2;
#else
constexpr int k_draws = 20;
constexpr int k_least_right = 18;
#endif

struct Cluster {
  std::string name, yaml;
  int hosts = 2, per_host = 8;
};

const std::vector<Cluster>& clusters() {
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
const std::vector<std::string> k_list{
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

doctor::Case case_of(const std::string& topology, const std::string& workload, std::vector<Bytes>& sizes) {
  return test::case_of_text(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{{}, sizes: "
                  "{{from: 8 B, to: 128 MiB, factor: 16}}}}\n",
                  topology, workload),
      sizes);
}

/// All hosts together; each host with several GPUs, or each pair of neighbours, alone.
std::vector<Log> logs_of(const Cluster& cluster, const std::string& topology) {
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

struct Draw {
  std::string cause, place, cluster;
  bool differs = false;
  std::vector<std::string> paths;
};

std::string write_cluster(const Cluster& cluster) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("fabricast-planted-{}-{}.yaml", getpid(), cluster.name);
  std::ofstream(path) << cluster.yaml;
  return path.string();
}

/// Writes the logs of one fault; nothing where the cluster cannot have it.
std::optional<Draw> plant(const std::vector<Log>& logs, const Cluster& cluster, const doctor::Cause& cause,
                          std::mt19937_64& random) {
  Draw out{cause.id, cause.place, cluster.name, false, {}};
  double sum = 0;
  std::size_t rows = 0;
  bool applies = false;
  for (std::size_t k = 0; k < logs.size(); ++k) {
    auto sick = logs[k].healthy;
    const bool here = cause.apply(sick);
    applies = applies || here;
    const auto healthy = doctor::forecast(logs[k].healthy, logs[k].sizes);
    auto times = here ? doctor::forecast(sick, logs[k].sizes) : healthy;
    if (times.empty()) times = healthy;
    for (std::size_t i = 0; i < times.size(); ++i, ++rows)
      sum += std::abs(std::log(times[i].seconds() / healthy[i].seconds()));
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-planted-{}-{}.log", getpid(), k);
    std::ofstream(path) << nccl_tests_log(logs[k].healthy.scenario.workloads.front().benchmark, logs[k].sizes, times,
                                          "n", logs[k].planted, k_scatter, random);
    out.paths.push_back(path.string());
  }
  out.differs = sum > k_scatter * static_cast<double>(rows);
  return applies ? std::optional(out) : std::nullopt;
}

bool is_named(const Finding& first, const doctor::Cause& cause) {
  return first.cause == cause.id ||
         std::ranges::any_of(first.alike, [&](const auto& other) { return other.starts_with(cause.title); });
}

/// The first finding's place, or one of those that have the same forecast.
bool is_placed(const Finding& first, const doctor::Cause& cause) {
  const auto place = fmt::format("({})", cause.place);
  return first.place == cause.place ||
         std::ranges::any_of(first.alike, [&](const auto& other) { return other.ends_with(place); });
}

}  // namespace

TEST_CASE("healthy logs of every cluster are as the doctor expects") {
  std::mt19937_64 random(7);
  const doctor::Cause nothing{"", "", "", "", 1, [](doctor::Case&) { return true; }, -1};
  for (const auto& cluster : clusters()) {
    const auto path = write_cluster(cluster);
    const auto draw = plant(logs_of(cluster, path), cluster, nothing, random);
    REQUIRE(draw);
    const auto diagnosis = diagnose(path, draw->paths);
    REQUIRE(diagnosis);
    CAPTURE(cluster.name);
    CHECK(diagnosis->is_healthy);
    CHECK(diagnosis->error_healthy < 0.04);
  }
}

TEST_CASE("of twenty faults drawn from the whole list the right one comes first in eighteen or more, with its place") {
  std::mt19937_64 random(20);
  int counted = 0, right = 0, placed = 0, right_place = 0, unseen = 0, told = 0;
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<Log>> logs;
  for (const auto& cluster : clusters()) {
    files[cluster.name] = write_cluster(cluster);
    logs[cluster.name] = logs_of(cluster, files[cluster.name]);
  }
  while (counted < k_draws) {
    const auto& cluster = clusters()[random() % clusters().size()];
    const auto& own = logs[cluster.name];
    const auto& wanted = k_list[random() % k_list.size()];
    auto causes = doctor::causes_for(own.front().healthy, true);
    std::erase_if(causes, [&](const auto& cause) { return !cause.id.starts_with(wanted); });
    if (causes.empty()) continue;
    const auto& cause = causes[random() % causes.size()];
    const auto draw = plant(own, cluster, cause, random);
    if (!draw) continue;
    if (!draw->differs && ++unseen > k_most_unseen) continue;
    const auto diagnosis = diagnose(files[cluster.name], draw->paths);
    REQUIRE(diagnosis);
    if (!draw->differs) {
      const bool is_told =
          std::ranges::any_of(diagnosis->hidden, [&](const auto& one) { return one.cause == cause.id; });
      told += is_told || !diagnosis->is_healthy ? 1 : 0;
      continue;
    }
    ++counted;
    const bool is_right = !diagnosis->findings.empty() && is_named(diagnosis->findings.front(), cause);
    right += is_right ? 1 : 0;
    if (!is_right)
      MESSAGE(fmt::format("{} at {} of {}: found {} (healthy error {:.3f})", cause.id, cause.place, cluster.name,
                          diagnosis->findings.empty()
                              ? "nothing"
                              : diagnosis->findings.front().cause + " at " + diagnosis->findings.front().place,
                          diagnosis->error_healthy));
    if (!is_right || cause.host < 0) continue;
    ++placed;
    right_place += is_placed(diagnosis->findings.front(), cause) ? 1 : 0;
  }
  MESSAGE(
      fmt::format("{} of {} right; place right in {} of {} of one host; {} draws not to be seen, {} of them said so",
                  right, counted, right_place, placed, unseen, told));
  CHECK(right >= k_least_right);
  CHECK(right_place == placed);
}
