// SPDX-License-Identifier: Apache-2.0
// Collectives in which every rank has a block of its own: what its core copies, and gathers and scatters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

LoadedScenario between_hosts(const std::string& workload, int hosts, const std::string& size, int per_host = 1) {
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: blocks\ntopology:\n  schema: fabricast/topology/1\n  name: blocks\n"
      "  hosts:\n    - {{name: n, count: {}, host: {{processor: xeon-icelake, sockets: 1, devices: [{{name: gpu0, "
      "type: "
      "a100-pcie-40, below: socket0}}, {{name: hca0, type: connectx-6-hdr, below: socket0}}]}}}}\n"
      "  fabric: {{single_switch: {{switch: qm8700}}}}\n"
      "workload: {{{}, ranks_per_host: {}, sizes: [{}]}}\n",
      hosts, workload, per_host, size));
}

std::string host_buffers(const std::string& benchmark, int ranks) {
  return fmt::format("benchmark: {}, ranks: {}, buffers: [host, host]", benchmark, ranks);
}

Row row_of(const LoadedScenario& loaded) { return test::run(loaded).workloads[0].rows[0]; }

double own_us(const Row& row) { return test::us(row, "own part copied by the core"); }

double time_us(const std::string& benchmark, int hosts, const std::string& size) {
  return row_of(between_hosts(host_buffers(benchmark, hosts), hosts, size)).time.us();
}

}  // namespace

TEST_CASE("a core copies its rank's own part of an all-gather or all-to-all, in its cache faster than beyond it") {
  for (std::uint64_t seed = 0; seed < test::draws(12); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const auto benchmark = random.pick<std::string>({"osu_allgather", "osu_alltoall"});
    const int hosts = random.pick<int>({2, 3, 4, 8});
    const auto size = static_cast<double>(1 + random.next(std::uint64_t{1} << random.pick<int>({6, 12, 18, 22})));
    CAPTURE(benchmark);
    CAPTURE(size);
    auto loaded = between_hosts(host_buffers(benchmark, hosts), hosts, fmt::format("{} B", size));
    const auto row = row_of(loaded);
    const double fastest = size / loaded.parameters.at("mpi.core_copy_bandwidth").value * 1e6;
    const double slowest = 2 * size / loaded.parameters.at("mpi.core_memory_bandwidth").value * 1e6;
    constexpr double k_tick = 1.1e-6;  // a picosecond
    CHECK(own_us(row) >= fastest - k_tick);
    CHECK(own_us(row) <= slowest + k_tick);
    if (2 * size < 1e6) CHECK(std::abs(own_us(row) - fastest) < k_tick);
    if (2 * size > 8e6) CHECK(own_us(row) == test::approx(slowest).epsilon(0.05));
    auto slow = loaded.parameters.at("mpi.core_copy_bandwidth");
    slow.value = slow.low = slow.high = slow.value / 2;
    loaded.parameters.set(slow);
    // Bruck's temporaries are copied as its own part is.
    double copies = 0;
    for (const auto& term : row.terms) copies += term.parameter == "mpi.core_copy_bandwidth" ? term.time.us() : 0;
    if (2 * 3 * size < 1e6) CHECK(std::abs(row_of(loaded).time.us() - row.time.us() - copies) < 4 * k_tick);
  }
  CHECK(own_us(row_of(between_hosts(host_buffers("osu_allreduce", 4), 4, "1 MiB"))) == 0);
  CHECK(own_us(row_of(between_hosts(host_buffers("osu_bcast", 4), 4, "1 MiB"))) == 0);
}

TEST_CASE("of a gather the root alone copies, of an all-gather every rank of a host beside the others") {
  const auto own = [](const std::string& benchmark, int per_host) {
    return own_us(
        row_of(between_hosts(host_buffers(benchmark, 2 * per_host) + ", algorithm: binomial", 2, "16 MiB", per_host)));
  };
  CHECK(own("osu_gather", 16) == test::approx(own("osu_gather", 1)));
  const auto ring = [](int per_host) {
    return own_us(row_of(
        between_hosts(host_buffers("osu_allgather", 2 * per_host) + ", algorithm: ring", 2, "16 MiB", per_host)));
  };
  CHECK(ring(16) > 1.5 * ring(1));
}

TEST_CASE("device buffers of collectives cost no memory of the host, host buffers beyond its caches do") {
  const auto has_memory = [](const Row& row) {
    return std::ranges::any_of(row.terms, [](const auto& t) { return t.name == "memory beyond the last-level cache"; });
  };
  CHECK(has_memory(row_of(between_hosts(host_buffers("osu_allgather", 4), 4, "32 MiB"))));
  CHECK(!has_memory(row_of(between_hosts(host_buffers("osu_allgather", 4), 4, "1 MiB"))));
  CHECK(
      !has_memory(row_of(between_hosts("benchmark: osu_allgather, gpus: 4, buffers: [device, device]", 4, "32 MiB"))));
}

TEST_CASE("the root waits for one rank after the other, or for all at once, and for its own core") {
  const auto max_us = [](const std::string& more, int hosts, const std::string& size) {
    return time_us(more + ", statistic: max", hosts, size);
  };
  for (const std::string benchmark : {"osu_gather", "osu_scatter"}) {
    CAPTURE(benchmark);
    // Large blocks all pass the root's adapter, each waited for; a tree passes them no faster.
    const auto linear = [&](int hosts) { return max_us(benchmark + ", algorithm: linear", hosts, "1 MiB"); };
    const double way = time_us("osu_latency", 2, "1 MiB");
    for (const int hosts : {3, 5, 9}) {
      CAPTURE(hosts);
      CHECK((linear(hosts) - linear(2)) == test::approx((hosts - 2) * way).epsilon(0.02));
      CHECK(max_us(benchmark + ", algorithm: binomial", hosts, "1 MiB") >= 0.95 * (hosts - 1) * (1 << 20) / 25e3);
    }
    // Short ones cost the root a gap each, a tree as many ways as it has levels, and up to as many again where ranks
    // wait for those that left the barrier last.
    const auto small = [&](const std::string& algorithm, int hosts) {
      return max_us(benchmark + ", algorithm: " + algorithm, hosts, "8 B");
    };
    const double level = small("binomial", 32) - small("binomial", 16);
    CHECK(level >= 0.9 * time_us("osu_latency", 2, "8 B"));
    CHECK(level <= 3 * time_us("osu_latency", 2, "8 B"));
    const double each = (small("linear", 40) - small("linear", 16)) / 24;
    CHECK(each >= 0.1 * time_us("osu_latency", 2, "8 B"));
    CHECK(each <= 0.4 * time_us("osu_latency", 2, "8 B"));
  }
  // Asked in turn each rank takes a message there and one back; all at once they take one way and the root's core.
  const double asked =
      max_us("osu_gather, algorithm: linear_sync", 9, "8 B") - max_us("osu_gather, algorithm: linear_sync", 5, "8 B");
  CHECK(asked == test::approx(4 * 2 * time_us("osu_latency", 2, "8 B")).epsilon(0.1));
  CHECK(max_us("osu_scatter, algorithm: linear_nb", 9, "1 MiB") < max_us("osu_scatter, algorithm: linear", 9, "1 MiB"));
}

TEST_CASE("what OSU prints of a gather of short blocks is far below the root's time, of large ones about half") {
  const auto share = [](const std::string& more, const std::string& size) {
    return time_us(more, 16, size) / time_us(more + ", statistic: max", 16, size);
  };
  CHECK(share("osu_gather, algorithm: linear", "8 B") < 0.3);
  CHECK(share("osu_gather, algorithm: binomial", "8 B") < 0.5);
  // One rank after the other, and the root to the end; before them, the root's own copy.
  for (const auto* in_turn :
       {"osu_gather, algorithm: linear", "osu_gather, algorithm: linear_sync", "osu_scatter, algorithm: linear"})
    CHECK(share(in_turn, "1 MiB") == test::approx(0.6).epsilon(0.07));
  CHECK(share("osu_scatter, algorithm: linear_nb", "1 MiB") > 0.9);
}

TEST_CASE("a root that scatters device memory posts its messages, receivers unpack theirs side by side") {
  // Slower unpacking by gdrcopy takes each receiver as much longer, and the root's last message no more than that.
  const auto time_of = [](double share, int hosts) {
    auto loaded = between_hosts(
        fmt::format("benchmark: osu_scatter, algorithm: linear_nb, gpus: {}, buffers: [device, device]", hosts), hosts,
        "8 KiB");
    auto rate = loaded.parameters.at("gdrcopy.write_bandwidth");
    rate.name = "xeon-icelake.gdrcopy_write_bandwidth";
    rate.value = rate.low = rate.high = rate.value * share;
    loaded.parameters.set(rate);
    return row_of(loaded).time.us();
  };
  const double one = 8192 / (9.59e9 / 4) * 1e6 - 8192 / 9.59e9 * 1e6;
  for (const int hosts : {4, 16, 32}) {
    CAPTURE(hosts);
    const double more = time_of(0.25, hosts) - time_of(1, hosts);
    CHECK(more > 0.4 * one);
    CHECK(more < 2.5 * one);
  }
}

TEST_CASE("the core that copies messages into its buffers posts them meanwhile") {
  // 64 KiB go eager over EFA; 31 of them are copied by one core, which is the time of all of them.
  const auto row = row_of(test::scenario(
      "schema: fabricast/scenario/1\nname: posted\ntopology:\n  schema: fabricast/topology/1\n  name: posted\n  hosts: "
      "[{name: n, count: 32, type: aws-p3dn}]\n  fabric: {single_switch: {switch: aws-srd}}\n"
      "workload: {benchmark: osu_scatter, algorithm: linear_nb, ranks: 32, ranks_per_host: 1, statistic: max, buffers: "
      "[host, host], sizes: [64 KiB]}\n"));
  REQUIRE(row.protocol == "eager");
  double copies = 0, posting = 0;
  for (const auto& term : row.terms) {
    copies += term.name.find("copies of later segments") != std::string::npos ? term.time.us() : 0;
    posting += term.name == "earlier messages of the round" ? term.time.us() : 0;
  }
  CHECK(copies > 0);
  CHECK(posting < 0.2 * copies);
}
