// SPDX-License-Identifier: Apache-2.0
// Broadcasts in segments: their period is what the library's ranks do for one segment (Open MPI 4.0 over UCX).
#include <fmt/format.h>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Cluster {
  int hosts = 1;
  std::string type = "abci-a100";
};

/// us of the last two rows of a benchmark, by `workload`.
std::pair<double, double> times(const Cluster& cluster, const std::string& software, const std::string& workload,
                                const std::string& parameter = "") {
  const auto file = test::write_file(
      "parameters.yaml", fmt::format("schema: fabricast/parameters/1\nname: x\nparameters: {{{}}}\n", parameter));
  const auto loaded = test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                  "  hosts: [{{name: node, count: {}, type: {}}}]\n"
                  "  fabric: {{single_switch: {{switch: qm8700, cable: 5 m}}}}\n{}"
                  "software: {{mpi: open-mpi-ucx, mpi_version: '4.0', gpudirect_rdma: on, gdrcopy: on, {}}}\n"
                  "workload: {{{}}}\n",
                  cluster.hosts, cluster.type, parameter.empty() ? "" : fmt::format("parameters: [\"{}\"]\n", file),
                  software, workload));
  const auto rows = test::run(loaded).workloads[0].rows;
  REQUIRE(rows.size() >= 2);
  return {rows[rows.size() - 2].time.us(), rows.back().time.us()};
}

/// us from one segment to the next: two sizes that differ by `segments`.
double period(const Cluster& cluster, const std::string& software, const std::string& workload, int segments,
              const std::string& parameter = "") {
  const auto [less, more] = times(cluster, software, workload, parameter);
  return (more - less) / segments;
}

}  // namespace

TEST_CASE("a rendezvous segment is sent before the next one is: its period is no less than the message alone") {
  for (const std::string buffers : {"host", "device"}) {
    CAPTURE(buffers);
    const Cluster cluster{3};
    const std::string rendezvous = "ucx: '1.9', eager_limit: 1 KiB, device_eager_limit: 1 KiB";
    const double alone =
        times(cluster, rendezvous,
              fmt::format("benchmark: osu_latency, sizes: [64 KiB, 128 KiB], buffers: [{0}, {0}]", buffers))
            .second;
    // Three ranks: a chain of 128 KiB.
    const auto broadcast = fmt::format(
        "benchmark: osu_bcast, ranks: 3, ranks_per_host: 1, sizes: [32 MiB, 64 MiB], buffers: [{0}, {0}]", buffers);
    CHECK(period(cluster, rendezvous, broadcast, 256) > alone);
  }
}

TEST_CASE("segments inside a host are posted: UCX makes them a rendezvous above 8 KiB, from 8 KiB on before 1.8") {
  const Cluster cluster{1};
  const auto slower = [&](const std::string& ucx, const std::string& sizes, int segments) {
    const auto workload =
        fmt::format("benchmark: osu_bcast, ranks: 16, ranks_per_host: 16, sizes: {}, buffers: [host, host]", sizes);
    const auto software = fmt::format("ucx: '{}'", ucx);
    return period(cluster, software, workload, segments, "mpi.shared_memory.rendezvous: {value: 12 us, source: test}") -
           period(cluster, software, workload, segments, "mpi.shared_memory.rendezvous: {value: 2 us, source: test}");
  };
  CHECK(slower("1.9", "[3 MiB, 4 MiB]", 64) > 9);                  // chain of 16 KiB
  CHECK(slower("1.9", "[1 MiB, 2 MiB]", 128) == test::approx(0));  // of 8 KiB
  CHECK(slower("1.7", "[1 MiB, 2 MiB]", 128) > 9);
}

TEST_CASE("a rank's core loads device data once for each child of a tree, and stores what arrives") {
  const Cluster cluster{1};
  // Two halves down a binary tree in segments of 1 KiB.
  const std::string workload = "benchmark: osu_bcast, gpus: 8, sizes: [128 KiB, 256 KiB], buffers: [device, device]";
  const auto of_rate = [&](double gbps) {
    return period(cluster, "ucx: '1.9'", workload, 64,
                  fmt::format("mpi.shared_memory.gdrcopy_read_bandwidth: {{value: {} GB/s, source: test}}", gbps));
  };
  const double fast = of_rate(0.5);
  const double slow = of_rate(0.25);
  CHECK(fast > 2 * 1.024 / 0.5);
  CHECK(slow - fast == test::approx(2 * (1.024 / 0.25 - 1.024 / 0.5)).epsilon(0.25));
}
