// SPDX-License-Identifier: Apache-2.0
// What the one core of a rank does in collectives between hosts: blocking sends stay eager longer, copies of both
// directions follow each other, memory is slower than caches, pages of large temporaries are new; trees share a link.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

LoadedScenario scenario_of(const std::string& workload, int hosts, const std::string& sizes,
                           const std::string& software = "mpi: open-mpi-ucx") {
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: cores\ntopology:\n  schema: fabricast/topology/1\n  name: cores\n"
      "  hosts:\n    - name: n\n      count: {}\n      host:\n        processor: xeon-icelake\n"
      "        devices:\n          - {{name: hca0, type: connectx-6-hdr, below: socket0, pcie: gen4 x16}}\n"
      "  fabric:\n    {}\nsoftware: {{{}}}\n"
      "workload: {{{}, ranks: {}, ranks_per_host: 1, buffers: [host, host], sizes: [{}]}}\n",
      hosts, hosts > 40 ? "fat_tree: {switch: qm8700, tiers: 2}" : "single_switch: {switch: qm8700}", software,
      workload, hosts, sizes));
}

void set(LoadedScenario& scenario, const std::string& name, double value) {
  auto parameter = scenario.parameters.at(name);
  parameter.value = parameter.low = parameter.high = value;
  scenario.parameters.set(parameter);
}

Row row_of(const LoadedScenario& scenario) { return test::run(scenario).workloads[0].rows[0]; }

double time_us(const std::string& workload, int hosts, const std::string& size) {
  return row_of(scenario_of(workload, hosts, size)).time.us();
}

}  // namespace

TEST_CASE("the slowest rank's time is when the last one returns: of trees later than the mean, of exchanges the same") {
  for (const auto* size : {"8 B", "4 KiB", "1 MiB"}) {
    CAPTURE(size);
    const auto both = [&](const std::string& workload) {
      return std::pair{time_us(workload + ", statistic: mean", 16, size),
                       time_us(workload + ", statistic: max", 16, size)};
    };
    for (const auto* tree : {"osu_bcast, algorithm: binomial", "osu_reduce, algorithm: binomial"}) {
      CAPTURE(tree);
      const auto [mean, slowest] = both("benchmark: " + std::string(tree));
      CHECK(mean <= slowest);
      if (std::string_view(size) == "8 B") CHECK(mean < 0.8 * slowest);
    }
    const auto [mean, slowest] = both("benchmark: osu_allreduce, algorithm: recursive_doubling");
    CHECK(mean == slowest);
  }
}

TEST_CASE("sends that block stay eager up to their own limit, posted ones up to the usual one") {
  const std::string gather = "benchmark: osu_allgather, algorithm: ring";
  const std::string tree = "benchmark: osu_bcast, algorithm: binomial";
  for (std::uint64_t seed = 0; seed < test::draws(20); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto between = fmt::format("{} B", 32768 + random.next(262143 - 32768));
    CHECK(row_of(scenario_of(gather, 4, between)).protocol == "eager");
    CHECK(row_of(scenario_of(tree, 4, between)).protocol == "rendezvous");
    const auto above = fmt::format("{} B", 262144 + random.next(1 << 24));
    CHECK(row_of(scenario_of(gather, 4, above)).protocol == "rendezvous");
    const auto below = fmt::format("{} B", random.next(19'000));  // UCX's plan of HDR: 19.7 kB
    CHECK(row_of(scenario_of(tree, 4, below)).protocol == "eager");
  }
  // MPICH's family has one limit.
  const auto cray = scenario_of(gather, 4, "128 KiB", "mpi: cray-mpich");
  CHECK(row_of(cray).protocol == "rendezvous");
}

TEST_CASE("a core that sends and receives an eager message of several segments copies one after the other") {
  const double rate =
      scenario_of("benchmark: osu_latency", 2, "8 B").parameters.at("mpi.open-mpi-ucx.eager_bandwidth").value;
  for (const double kib : {16, 32, 64, 128, 200}) {
    CAPTURE(kib);
    const auto size = fmt::format("{} KiB", kib);
    const double one_way = time_us("benchmark: osu_latency", 2, size);
    const double both = time_us("benchmark: osu_allgather, algorithm: ring", 2, size) -
                        time_us("benchmark: osu_allgather, algorithm: ring", 2, "1 B");
    const double copies = 2 * (kib * 1024 - 8256) / rate * 1e6;
    CHECK(both >= copies);
    CHECK(both <= one_way + copies);
  }
  // One segment is copied before and after the wire, not while another one is.
  const auto small = scenario_of("benchmark: osu_allgather, algorithm: ring", 2, "8 KiB");
  auto slow = small;
  set(slow, "mpi.open-mpi-ucx.eager_bandwidth", 1e9);
  CHECK(row_of(small).time == row_of(slow).time);
}

TEST_CASE("whole messages of a binomial broadcast share the links of their senders: k (k + 1) / 2 transfers") {
  const std::string mean = "benchmark: osu_bcast, algorithm: binomial";
  const std::string tree = mean + ", statistic: max";
  const double one = time_us(tree, 2, "256 MiB");
  for (const int k : {2, 3, 4, 5}) {
    CAPTURE(k);
    CHECK(time_us(tree, 1 << k, "256 MiB") == test::approx(k * (k + 1) / 2.0 * one).epsilon(0.02));
  }
  // The root and the child without children return before the last two.
  CHECK(time_us(mean, 4, "256 MiB") == test::approx((2 + 2 + 3 + 3) / 4. * one).epsilon(0.02));
  // MPICH sends to one child after the other: a level a transfer.
  const auto levels = [&](int hosts) {
    return row_of(scenario_of(tree, hosts, "256 MiB", "mpi: cray-mpich")).time.us();
  };
  CHECK(levels(8) == test::approx(3 * levels(2)).epsilon(0.02));
}

TEST_CASE("pages of temporaries cost what each page costs, from the threshold on") {
  const auto pages_us = [](const std::string& workload, const std::string& size, int hosts = 8) {
    auto scenario = scenario_of(workload, hosts, size);
    const double shipped = row_of(scenario).time.us();
    set(scenario, "mpi.fresh_page_time", 0);
    return shipped - row_of(scenario).time.us();
  };
  const double page = scenario_of("benchmark: osu_latency", 2, "8 B").parameters.at("mpi.fresh_page_time").value * 1e6;
  const double mib = 256;  // pages
  const std::string scatter = "benchmark: osu_reduce_scatter, algorithm: ";
  CHECK(row_of(scenario_of(scatter + "auto", 64, "64 MiB")).algorithm == "butterfly");
  CHECK(pages_us(scatter + "auto", "16 MiB", 64) == 0);
  CHECK(pages_us(scatter + "auto", "64 MiB", 64) == test::approx(2 * 64 * mib * page));
  CHECK(pages_us(scatter + "ring", "64 MiB") == test::approx(64 * mib * page));
  CHECK(pages_us("benchmark: osu_allreduce, algorithm: ring", "64 MiB") == 0);
  CHECK(pages_us("benchmark: osu_allreduce, algorithm: recursive_doubling", "64 MiB") == test::approx(64 * mib * page));
  CHECK(pages_us("benchmark: osu_bcast, algorithm: binomial", "64 MiB") == 0);
}

TEST_CASE("sums beyond the cache take what one core reads and writes, those in it do not") {
  const auto sum_us = [](const std::string& size, double rate) {
    auto scenario = scenario_of("benchmark: osu_allreduce, algorithm: recursive_doubling", 2, size);
    set(scenario, "mpi.core_memory_bandwidth", rate);
    return row_of(scenario).time.us();
  };
  CHECK(sum_us("128 KiB", 5e9) == sum_us("128 KiB", 50e9));
  // One round: a sum of 3 bytes for each and 1.5 copies of 2.
  const double bytes = 1 << 30;
  CHECK(sum_us("1 GiB", 5e9) - sum_us("1 GiB", 10e9) ==
        test::approx((3 + 3) * bytes * (1 / 5e9 - 1 / 10e9) * 1e6).epsilon(0.01));
  double before = 0;
  for (const double rate : {100e9, 20e9, 14e9, 5e9}) {
    const double time = sum_us("256 MiB", rate);
    CHECK(time > before);
    before = time;
  }
}

TEST_CASE("a rank sums every message that a round of a tree brings") {
  const auto sums_us = [](const std::string& algorithm, int hosts) {
    auto scenario = scenario_of("benchmark: osu_reduce, statistic: max, algorithm: " + algorithm, hosts, "1 MiB");
    const double shipped = row_of(scenario).time.us();
    for (const std::string rate : {"mpi.reduction_bandwidth.core_cache", "mpi.reduction_bandwidth.last_level"})
      set(scenario, rate, 1e18);
    return shipped - row_of(scenario).time.us();
  };
  const double one = sums_us("binomial", 2);
  CHECK(one > 0);
  for (int depth = 1; depth < 4; ++depth) {
    CHECK(sums_us("binary", (2 << depth) - 1) == test::approx(2 * depth * one).epsilon(0.05));
    CHECK(sums_us("binomial", 1 << depth) == test::approx(depth * one).epsilon(0.05));
    CHECK(sums_us("chain", 1 + depth) == test::approx(depth * one).epsilon(0.05));
    CHECK(sums_us("linear", 1 + depth) == test::approx(depth * one).epsilon(0.05));
  }
}
