// SPDX-License-Identifier: Apache-2.0
// PAT: all-gather and reduce-scatter among hosts of one GPU, on defaults and by name.
#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

struct Case {
  int hosts = 16;
  int gpus_per_host = 1;
  std::string benchmark = "all_gather_perf";
  std::string workload;
  std::string nccl = "version: \"2.28\"";
  std::string host = "server-1a100-cx6dx";
  std::string parameters;
};

LoadedScenario scenario(const Case& one) {
  const auto topology = test::write_file(
      "pat-topology.yaml",
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: " + std::to_string(one.hosts) +
          ", type: " + one.host + "}]\nfabric: {" +
          (one.host.ends_with("cx6dx") ? "single_switch: {switch: sn4600" : "fat_tree: {switch: qm8700, tiers: 2") +
          ", cable: 5 m}}\n" + (one.parameters.empty() ? "" : "parameters: {" + one.parameters + "}\n"));
  return test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {nccl: {" +
                        one.nccl + "}}\nworkload: {benchmark: " + one.benchmark +
                        ", gpus: " + std::to_string(one.hosts * one.gpus_per_host) +
                        ", ranks_per_host: " + std::to_string(one.gpus_per_host) +
                        ", sizes: [16 KiB, 256 KiB, 4 MiB, 64 MiB, 1 GiB]" + one.workload + "}\n");
}

Prediction run(const Case& one) { return test::run(scenario(one)); }

const std::string k_forced = ", algorithm: pat";

}  // namespace

TEST_CASE("many hosts of one GPU gather and scatter a little by PAT from 2.23 on, much by rings") {
  for (const auto* benchmark : {"all_gather_perf", "reduce_scatter_perf"}) {
    CAPTURE(std::string(benchmark));
    const auto prediction = run({.benchmark = benchmark});
    CHECK(row_at(prediction, 256_KiB).algorithm == "pat");
    CHECK(row_at(prediction, 256_KiB).protocol == "simple");
    CHECK(row_at(prediction, 64_MiB).algorithm == "ring");
    CHECK(row_at(run({.benchmark = benchmark, .nccl = "version: \"2.22\""}), 256_KiB).algorithm == "ring");
    CHECK(row_at(run({.gpus_per_host = 8, .benchmark = benchmark, .host = "dgx-a100"}), 256_KiB).algorithm == "ring");
  }
  CHECK(row_at(run({.benchmark = "all_reduce_perf"}), 256_KiB).algorithm != "pat");
  const auto says = [](const Case& one) {
    const auto lines = run(one).workloads[0].assumptions;
    return std::ranges::any_of(lines, [](const auto& line) { return line.find("PAT") != line.npos; });
  };
  CHECK(says({}));
  CHECK_FALSE(says({.nccl = "version: \"2.22\""}));
}

TEST_CASE("PAT makes a hop for every doubling of the hosts and has a time for each, a ring makes one for each") {
  const auto small = [](int hosts, const std::string& workload) {
    return us(run({.hosts = hosts, .workload = workload + ", protocol: simple, channels: 1"}), 16_KiB);
  };
  const double rank_us = scenario({}).parameters.number("nccl.pat_rank_time") * 1e6;
  const auto hop_us = [&](int hosts) { return small(2 * hosts, k_forced) - small(hosts, k_forced) - hosts * rank_us; };
  CHECK(hop_us(2) > 5);
  CHECK(hop_us(8) == test::approx(hop_us(16)).epsilon(0.02));
  CHECK(hop_us(16) == test::approx(hop_us(32)).epsilon(0.02));
  const double ring_hop_us = (small(64, ", algorithm: ring") - small(32, ", algorithm: ring")) / 32;
  CHECK(hop_us(32) == test::approx(ring_hop_us).epsilon(0.1));
  for (const int hosts : {4, 16, 64}) CHECK(small(hosts, k_forced) < small(hosts, ", algorithm: ring"));
  const std::string twice = "nccl.pat_rank_time: {value: 5.6 us, source: test}";
  CHECK(us(run({.workload = k_forced, .parameters = twice}), 16_KiB) - us(run({.workload = k_forced}), 16_KiB) ==
        test::approx(16 * rank_us).epsilon(0.01));
}

TEST_CASE("PAT carries what a ring does, three quarters as fast as NCCL plans it, whatever the number of hosts") {
  for (const int hosts : {2, 3, 5, 8, 13}) {
    CAPTURE(hosts);
    const auto pat = row_at(run({.hosts = hosts, .workload = k_forced}), 1_GiB);
    const auto ring = row_at(run({.hosts = hosts, .workload = ", algorithm: ring, protocol: simple"}), 1_GiB);
    CHECK(pat.physical_bound.us() == test::approx(ring.physical_bound.us()).epsilon(0.01));
    CHECK(pat.time.us() / ring.time.us() == test::approx(4.0 / 3).epsilon(0.03));
    const std::string whole = "nccl.pat_network_share: {value: 1, source: test}";
    CHECK(row_at(run({.hosts = hosts, .workload = k_forced, .parameters = whole}), 1_GiB).time < pat.time);
  }
}

TEST_CASE("PAT by name is refused where NCCL has none") {
  const auto refusal = [](const Case& one) { return test::refusal_of(scenario(one)); };
  CHECK(refusal({.workload = k_forced}).empty());
  CHECK(refusal({.workload = k_forced, .nccl = "version: \"2.22\""}).find("came with 2.23") != std::string::npos);
  CHECK(refusal({.gpus_per_host = 2, .workload = k_forced, .host = "dgx-a100"}).find("32 GPUs in 16 hosts") !=
        std::string::npos);
  CHECK(refusal({.hosts = 1, .gpus_per_host = 8, .workload = k_forced, .host = "dgx-a100"}).find("8 GPUs in 1 host") !=
        std::string::npos);
  CHECK(refusal({.benchmark = "all_reduce_perf", .workload = k_forced}).find("has no algorithm 'pat'") !=
        std::string::npos);
  CHECK(refusal({.workload = k_forced + ", protocol: ll"}).find("PAT has no protocol 'll'") != std::string::npos);
  CHECK(refusal({.workload = k_forced, .host = "server-4k80-fdr"}).find("compute capability 6.0") != std::string::npos);
}
