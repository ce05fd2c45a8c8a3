// SPDX-License-Identifier: Apache-2.0
// Tests of several pairs as OSU starts them: rank i exchanges with rank i + ranks / 2, ranks fill hosts in order; and
// more ranks than a host has hardware threads.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;

namespace {

std::string cluster(int hosts, const std::string& workload) {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: pairs\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
      "  hosts: [{{name: n, count: {}, type: azure-hc}}]\n  fabric: {{single_switch: {{switch: sb7800}}}}\n"
      "workload: {{{}, buffers: [host, host]}}\n",
      hosts, workload);
}

WorkloadPrediction forecast(int hosts, const std::string& workload) {
  return test::run(test::scenario(cluster(hosts, workload))).workloads[0];
}

std::string fault(int hosts, const std::string& workload) {
  const auto loaded = load_scenario(test::write_file("pairs.yaml", cluster(hosts, workload)));
  if (!loaded) return test::shown(loaded.error());
  const auto done = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  return done ? std::string() : test::shown(done.error());
}

void check_alike(const WorkloadPrediction& one, const WorkloadPrediction& other) {
  REQUIRE(one.rows.size() == other.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) CHECK(one.rows[i].time == other.rows[i].time);
  CHECK(one.devices == other.devices);
}

}  // namespace

TEST_CASE("who counts ranks of a test of pairs gets half as many pairs, on the hosts that the ranks fill") {
  for (std::uint64_t seed = 0; seed < test::draws(20); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto benchmark = random.pick<std::string>({"osu_multi_lat", "osu_mbw_mr"});
    const int hosts = random.pick<int>({1, 2, 4});
    const int per_host = random.pick<int>({1, 2, 4, 20, 40});
    const int pairs = static_cast<int>(1 + random.next(static_cast<std::uint64_t>(hosts * per_host)));
    CAPTURE(benchmark);
    CAPTURE(hosts);
    CAPTURE(per_host);
    CAPTURE(pairs);
    if (hosts == 1 && per_host < 2) continue;
    const auto head = fmt::format("benchmark: {}, sizes: [8 B, 64 KiB], ranks_per_host: {}, ", benchmark, per_host);
    if (2 * pairs > hosts * per_host && pairs > 1) {
      const auto said = fault(hosts, head + fmt::format("ranks: {}", 2 * pairs));
      CHECK(said.find(fmt::format("{} pairs are {} ranks, topology 't' does not hold them", pairs, 2 * pairs)) !=
            std::string::npos);
      continue;
    }
    const auto counted = forecast(hosts, head + fmt::format("ranks: {}", 2 * pairs));
    CHECK(counted.num_ranks == 2 * pairs);
    CHECK(counted.num_hosts == (2 * pairs + per_host - 1) / per_host);
    check_alike(counted, forecast(hosts, head + fmt::format("pairs: {}", pairs)));
    check_alike(counted, forecast(hosts, head + fmt::format("pairs: {}, ranks: {}", pairs, 2 * pairs)));
  }
}

TEST_CASE("pairs of OSU cross hosts as its ranks do") {
  // 80 ranks, 40 on each host: as 40 pairs whose ends are told apart.
  const std::string work = "benchmark: osu_mbw_mr, sizes: [8 B, 64 KiB], ";
  const auto two = forecast(2, work + "ranks: 80, ranks_per_host: 40");
  CHECK(two.num_ranks == 80);
  CHECK(two.num_hosts == 2);
  check_alike(two, forecast(2, work + "pairs: 40"));
  // One rank on each of four hosts: two adapters send, each by itself.
  const auto four = forecast(4, work + "ranks: 4, ranks_per_host: 1");
  CHECK(four.num_hosts == 4);
  const auto one = forecast(2, work + "ranks: 2, ranks_per_host: 1");
  for (std::size_t i = 0; i < one.rows.size(); ++i)
    CHECK(four.rows[i].algbw.bytes_per_s == test::approx(2 * one.rows[i].algbw.bytes_per_s).epsilon(0.01));
  // All on one host: nothing crosses the network.
  CHECK(forecast(2, work + "ranks: 8, ranks_per_host: 8").num_hosts == 1);
  // Without a count there is one pair.
  CHECK(forecast(2, work + "window: 64").num_ranks == 2);
  CHECK(fault(2, work + "ranks: 7").find("osu_mbw_mr pairs its ranks, of 7 one is left over") != std::string::npos);
}

TEST_CASE("more ranks than a host has hardware threads are refused, with what would help") {
  const double cores = test::scenario(cluster(2, "benchmark: osu_bw")).parameters.at("xeon-skylake.cores").value;
  const int threads = static_cast<int>(2 * 2 * cores);  // of two sockets
  for (const std::string benchmark : {"osu_allreduce", "osu_alltoall", "osu_mbw_mr", "osu_multi_lat"}) {
    CAPTURE(benchmark);
    const auto with = [&](int per_host) {
      return fault(2, fmt::format("benchmark: {}, sizes: [8 B], ranks: {}, ranks_per_host: {}", benchmark, 2 * per_host,
                                  per_host));
    };
    CHECK(with(threads).empty());
    const auto said = with(threads + 2);
    CHECK(said.find(fmt::format("{} ranks on host 'n0', whose {:.0f} cores (xeon-skylake) have {} hardware threads",
                                threads + 2, 2 * cores, threads)) != std::string::npos);
    CHECK(said.find("xeon-skylake.cores") != std::string::npos);
  }
  // Spread over hosts without a word about how many each takes.
  CHECK(fault(2, "benchmark: osu_allreduce, sizes: [8 B], ranks: 2000").find("hardware threads") != std::string::npos);
  // Who names the cores is believed.
  auto told = cluster(2, "benchmark: osu_allreduce, sizes: [8 B], ranks: 352, ranks_per_host: 176");
  told.insert(told.find("  fabric:"), "  parameters: {xeon-skylake.cores: {value: 44, source: lscpu}}\n");
  CHECK(test::run(test::scenario(told)).workloads[0].num_ranks == 352);
}
