// SPDX-License-Identifier: Apache-2.0
// Faults planted in simulated logs with 3 % scatter are found; healthy logs are left alone; pairs give up their groups.
#include "tests/unit/doctor/logs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

struct Fault {
  std::string cause;
  std::vector<Setting> settings;
};

std::string all_of(const std::string& kind, int count, const std::string& keys) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}{{name: {}{}, {}}}", i == 0 ? "" : ", ", kind, i, keys);
  return out;
}

const std::vector<Fault>& faults() {
  static const std::string hosts = "topology.hosts.dgx.";
  static const std::vector<Fault> all{
      {"gpudirect-off", {{"software.gpudirect_rdma", "off"}}},
      {"acs-redirect", {{"virtualization", "{mode: bare-metal, acs: redirect}"}}},
      {"hca-narrow", {{hosts + "devices", "[" + all_of("hca", 8, "pcie: gen4 x8") + "]"}}},
      {"hca0-narrow", {{hosts + "devices", "[{name: hca0, pcie: gen4 x8}]"}}},
      {"gpu-narrow", {{hosts + "devices", "[" + all_of("gpu", 8, "pcie: gen4 x8") + "]"}}},
      {"pcie-gen3",
       {{hosts + "devices", "[" + all_of("hca", 8, "pcie: gen3 x16") + ", " + all_of("gpu", 8, "pcie: gen3 x16") +
                                ", " + all_of("sw", 4, "pcie: gen3 x16") + "]"}}},
      {"p2p-off", {{"software.nccl.p2p", "off"}}},
      {"p2p-shm-off", {{"software.nccl.p2p", "off"}, {"software.nccl.shm", "off"}}},
      {"tcp", {{"software.transport", "tcp"}}},
      {"rails-half", {{hosts + "remove", "[hca1, hca3, hca5, hca7]"}}},
      {"protocol-ll", {{"workload.protocol", "ll"}}},
      {"protocol-ll128", {{"workload.protocol", "ll128"}}},
      {"protocol-simple", {{"workload.protocol", "simple"}}},
      {"algorithm-tree", {{"workload.algorithm", "tree"}}},
      {"algorithm-ring", {{"workload.algorithm", "ring"}}},
      {"channels-1", {{"workload.channels", "1"}}},
      {"channels-2", {{"workload.channels", "2"}}},
      {"channels-4", {{"workload.channels", "4"}}},
      {"channels-8", {{"workload.channels", "8"}}},
      {"nv-peer-mem-missing", {{"software.nv_peer_mem", "not loaded"}}},
  };
  return all;
}

const std::vector<Planted> k_logs{{"benchmark: all_reduce_perf", 16, 0},
                                  {"benchmark: all_reduce_perf, gpus: 8", 8, 0},
                                  {"benchmark: sendrecv_perf", 16, 0}};

}  // namespace

TEST_CASE("of twenty faults planted with 3 % scatter the right one comes first in sixteen or more") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  int right = 0;
  unsigned seed = 1;
  for (const auto& fault : faults()) {
    const auto logs = planted_logs(topology, "dgx", k_logs, fault.settings, 0.03, seed++);
    const auto diagnosis = diagnose(topology, logs);
    REQUIRE(diagnosis);
    std::string found = diagnosis->findings.empty() ? "nothing" : diagnosis->findings.front().cause;
    bool is_right = found == fault.cause;
    // Of causes with one forecast the others' titles stand beside the first's: off and missing, adapters or GPUs on
    // half their lanes.
    if (!is_right && !diagnosis->findings.empty()) {
      const auto& alike = diagnosis->findings.front().alike_causes;
      is_right = std::ranges::find(alike, fault.cause) != alike.end();
    }
    if (!is_right)
      MESSAGE(fmt::format("{}: found {} (healthy error {:.3f})", fault.cause, found, diagnosis->error_healthy));
    right += is_right ? 1 : 0;
    if (is_right && !diagnosis->findings.empty()) {
      const auto& first = diagnosis->findings.front();
      CHECK(!first.evidence.empty());
      CHECK(!first.fix.empty());
      CHECK(!first.place.empty());
      CHECK(first.error_after < first.error_before);
    }
  }
  // Slots of half the lanes and of an older generation differ by less than the scatter, most where lines of LL are
  // sent; those wait for a core now, not for the slot, and fewer bytes of them for thread blocks. Five draws of the
  // scatter: 16, 17, 18, 19, 18.
  CHECK(right >= 16);
}

TEST_CASE("healthy logs are left alone") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  for (unsigned seed = 100; seed < 105; ++seed) {
    const auto diagnosis = diagnose(topology, planted_logs(topology, "dgx", k_logs, {}, 0.03, seed));
    REQUIRE(diagnosis);
    CHECK(diagnosis->is_healthy);
    CHECK(diagnosis->findings.empty());
    CHECK(diagnosis->num_rows == 39);
    CHECK(diagnosis->num_causes > 20);
  }
}

TEST_CASE("healthy logs of single hosts are healthy, whichever host comes first") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const auto healthy = planted_logs(
      topology, "dgx", {{"benchmark: all_reduce_perf, gpus: 8", 8, 1}, {"benchmark: all_reduce_perf, gpus: 8", 8, 0}},
      {}, 0.03, 7);
  const auto diagnosis = diagnose(topology, healthy);
  REQUIRE(diagnosis);
  CHECK(diagnosis->is_healthy);
}

TEST_CASE("words of a log count beside its numbers") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const auto logs = planted_logs(topology, "dgx", {{"benchmark: all_reduce_perf, gpus: 8", 8, 0}},
                                 {{"software.nccl.p2p", "off"}}, 0.03, 9);
  std::ifstream in(logs[0]);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  in.close();
  std::ofstream(logs[0]) << "NCCL_P2P_DISABLE=1\n" << text;
  const auto diagnosis = diagnose(topology, logs);
  REQUIRE(diagnosis);
  REQUIRE(!diagnosis->is_healthy);
  CHECK(diagnosis->findings.front().cause == "p2p-off");
}

TEST_CASE("a fifth of the pairs gives the groups of hosts, and the slow host") {
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::mt19937_64 random(seed);
    std::vector<PairValue> pairs;
    const int k_hosts = 64, k_leaf = 16;
    for (int a = 0; a < k_hosts; ++a) {
      for (int b = 0; b < a; ++b) {
        if (random() % 5 != 0) continue;
        const double noise = 1 + 0.03 * (static_cast<double>(random() % 2001) / 1000 - 1);
        const double base = a / k_leaf == b / k_leaf ? 1.6 : 2.1;
        const double slow = a == 37 || b == 37 ? 1.6 : 1;
        pairs.push_back({fmt::format("n{:02}", a), fmt::format("n{:02}", b), base * slow * noise});
      }
    }
    const auto found = group_pairs(pairs);
    REQUIRE(found.groups.size() == 4);
    CHECK(found.slow_hosts == std::vector<std::string>{"n37"});
    for (const auto& group : found.groups) {
      std::set<int> leaves;
      for (const auto& host : group) leaves.insert(std::stoi(host.substr(1)) / k_leaf);
      CHECK(leaves.size() == 1);
    }
    CHECK(found.near == test::approx(1.6).epsilon(0.02));
    CHECK(found.far == test::approx(2.1).epsilon(0.02));
  }
  std::vector<PairValue> flat;
  for (int i = 0; i < 40; ++i) flat.push_back({fmt::format("a{}", i % 9), fmt::format("b{}", i % 7), 1 + 0.001 * i});
  CHECK(group_pairs(flat).slow_hosts.empty());
  CHECK(read_pairs("host_a,host_b,us\nn0,n1,1.5\n# c\nn1 n2 2\n", "x"));
  CHECK(!read_pairs("n0,n1,1.5\nn1,n2,fast\n", "x"));
  CHECK(!read_pairs("", "x"));
}

TEST_CASE("a log slower than forecasts are ever off is not called healthy, whether or not a cause explains it") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-far-{}.log", getpid());
  std::vector<Bytes> sizes;
  std::vector<Duration> times;
  // All-reduce of 16 A100 takes 27 us to 2 ms at these sizes: three to three hundred times that, in no order.
  for (const auto& [size, us] : {std::pair(8L, 90.0), std::pair(4096L, 9000.0), std::pair(1L << 20, 700.0),
                                 std::pair(16L << 20, 90'000.0), std::pair(128L << 20, 9'000.0)}) {
    sizes.push_back(Bytes{size});
    times.push_back(from_seconds(us * 1e-6));
  }
  std::mt19937_64 random(3);
  std::ofstream(path) << nccl_tests_log(Benchmark::all_reduce_perf, sizes, times, "dgx", {"", 16, 0, 8}, 0, random);
  const auto diagnosis = diagnose(topology_file("dgx-a100-pair.yaml"), {path.string()});
  std::filesystem::remove(path);
  REQUIRE(diagnosis);
  CHECK(!diagnosis->is_healthy);
  CHECK(!diagnosis->is_explained);
  CHECK(diagnosis->slower > 1);
}

TEST_CASE("a log that does not say how many pairs took part is not diagnosed without a word") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-pairs-{}.txt", getpid());
  const auto warnings_of = [&](const std::string& provenance) {
    std::ofstream(path) << provenance
                        << "# OSU MPI Multi Latency Test v5.7\n# Size          Latency (us)\n8 1.50\n1048576 80.60\n";
    const auto found = diagnose(topology_file("dgx-a100-pair.yaml"), {path.string()});
    std::filesystem::remove(path);
    REQUIRE(found);
    return render(found->warnings);
  };
  CHECK(warnings_of("").find("does not say how many pairs took part") != std::string::npos);
  CHECK(warnings_of("# benchmark: osu_multi_lat, 4 pairs of ranks\n# ---- raw output below ----\n").empty());
}
