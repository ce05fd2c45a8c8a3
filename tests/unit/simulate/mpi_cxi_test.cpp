// SPDX-License-Identifier: Apache-2.0
// Cray MPICH over libfabric's CXI provider: the provider's limits, its acknowledgements and its rendezvous by adapters.
#include <fmt/format.h>

#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

LoadedScenario between_hosts(const std::string& workload, int hosts, std::int64_t bytes) {
  const bool is_of_gpus = workload.find("device") != std::string::npos;
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: cxi\ntopology:\n  schema: fabricast/topology/1\n  name: cxi\n"
      "  hosts: [{{name: n, count: {}, type: hpe-4a100-slingshot}}]\n  fabric: {{single_switch: {{switch: rosetta}}}}\n"
      "workload: {{{}{}, {}: {}, ranks_per_host: 1, sizes: [{} B]}}\n",
      hosts, workload, is_of_gpus ? "" : ", buffers: [host, host]", is_of_gpus ? "gpus" : "ranks", hosts, bytes));
}

Row row_of(const std::string& workload, int hosts, std::int64_t bytes) {
  return test::run(between_hosts(workload, hosts, bytes)).workloads[0].rows[0];
}

double time_us(const std::string& workload, int hosts, std::int64_t bytes) {
  return row_of(workload, hosts, bytes).time.us();
}

double way_us(std::int64_t bytes) { return time_us("benchmark: osu_latency", 2, bytes); }

/// What a message of no data takes without the software: adapters, links and switches.
double network_us() {
  const auto scenario = between_hosts("benchmark: osu_latency", 2, 0);
  return way_us(0) - scenario.parameters.at("mpi.cray-mpich-cxi.overhead").value * 1e6;
}

constexpr std::int64_t k_inline = 192, k_eager = 18'433;

}  // namespace

TEST_CASE("CXI sends up to its threshold and its least read at once, of host and of GPU memory") {
  for (const std::string buffers : {"", ", buffers: [device, device]"}) {
    CAPTURE(buffers);
    const auto protocol = [&](std::int64_t bytes) {
      return row_of("benchmark: osu_latency" + buffers, 2, bytes).protocol;
    };
    CHECK(protocol(k_eager).starts_with("eager"));
    CHECK(protocol(k_eager + 1).starts_with("rendezvous"));
    CHECK(protocol(64 << 20).starts_with("rendezvous"));  // nothing is staged
  }
}

TEST_CASE("adapters that make a rendezvous by themselves take two ways, without software") {
  CHECK(way_us(k_eager + 1) - way_us(k_eager) == test::approx(2 * network_us()).epsilon(0.01));
}

TEST_CASE("ranks that exchange data which do not travel inline wait for the acknowledgement: one way more") {
  const auto more_us = [](std::int64_t bytes) {
    const auto row = row_of("benchmark: osu_allgather, algorithm: ring", 2, bytes);
    double own = 0;
    for (const auto& term : row.terms) own += term.parameter == "mpi.core_copy_bandwidth" ? term.time.us() : 0;
    CHECK(own > 0);
    return row.time.us() - own - way_us(bytes);
  };
  const double software = more_us(k_inline);
  for (std::uint64_t seed = 0; seed < test::draws(20); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto bytes = k_inline + 1 + static_cast<std::int64_t>(random.next(k_eager - k_inline));
    CHECK(more_us(bytes) - software == test::approx(network_us()).epsilon(0.05));
  }
  CHECK(more_us(1) == test::approx(software).epsilon(0.05));
  CHECK(more_us(k_eager + 1) < software + 0.5 * network_us());  // a rendezvous ends later at the receiver
}

TEST_CASE("who sends to several waits for each acknowledgement, who sends once and is done holds nobody up") {
  const auto level_us = [](const std::string& benchmark, std::int64_t bytes) {
    const auto of = [&](int hosts) {
      return time_us("algorithm: binomial, statistic: max, benchmark: " + benchmark, hosts, bytes);
    };
    return of(8) - of(4);
  };
  CHECK(level_us("osu_bcast", 4096) == test::approx(way_us(4096) + network_us()).epsilon(0.02));
  CHECK(level_us("osu_bcast", 128) == test::approx(way_us(128)).epsilon(0.02));
  CHECK(level_us("osu_reduce", 4096) < way_us(4096) + 0.7 * network_us());  // and what is summed
}
