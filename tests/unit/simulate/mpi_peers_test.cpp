// SPDX-License-Identifier: Apache-2.0
// A rank and many peers: connections that they share, buffers copied once instead of message by message, and elements
// that are fewer than ranks.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

LoadedScenario among(int hosts, int per_host, const std::string& workload, const std::string& library,
                     const std::string& hca = "connectx-6-hdr") {
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: peers\ntopology:\n  schema: fabricast/topology/1\n  name: peers\n"
      "  hosts:\n    - {{name: n, count: {}, host: {{processor: xeon-icelake, sockets: 1, devices: [{{name: gpu0, "
      "type: a100-pcie-40, below: socket0}}, {{name: hca0, type: {}, below: socket0}}]}}}}\n"
      "  fabric: {{fat_tree: {{switch: qm8700, tiers: 2, oversubscription: 1}}}}\n"
      "software: {{mpi: {}}}\n"
      "workload: {{{}, ranks: {}, ranks_per_host: {}}}\n",
      hosts, hca, library, workload, hosts * per_host, per_host));
}

Row row_of(const LoadedScenario& loaded) { return test::run(loaded).workloads[0].rows[0]; }

using test::us;

const std::string k_connection = "a connection to the peer";

}  // namespace

TEST_CASE("beyond 60 ranks a root's eight connections serve one peer each until its adapter has answered") {
  const std::string scatter =
      "benchmark: osu_scatter, algorithm: linear_nb, buffers: [host, host], statistic: max, sizes: [8 B]";
  CHECK(us(row_of(among(60, 1, scatter, "open-mpi-ucx")), k_connection) == 0);
  const auto shared = row_of(among(61, 1, scatter, "open-mpi-ucx"));
  const auto round_trip = [](const Row& row) {
    return 2 * (us(row, "HCA processing, both sides") + us(row, "links and switches"));
  };
  // The last of 60 messages waits for seven others on its connection.
  CHECK(us(shared, k_connection) == test::approx(7 * round_trip(shared)));
  const auto twice = row_of(among(121, 1, scatter, "open-mpi-ucx"));
  CHECK(us(twice, k_connection) == test::approx(14 * round_trip(twice)));
  // Each of 61 ranks sends to one peer after the other, or no library of UCX's, or an adapter without such connections.
  CHECK(us(row_of(among(61, 1, "benchmark: osu_allgather, algorithm: ring, buffers: [host, host], sizes: [8 B]",
                        "open-mpi-ucx")),
           k_connection) == 0);
  CHECK(us(row_of(among(61, 1, "benchmark: osu_bcast, algorithm: binomial, buffers: [host, host], sizes: [8 B]",
                        "open-mpi-ucx")),
           k_connection) == 0);
  CHECK(us(row_of(among(61, 1, scatter, "mvapich2-gdr")), k_connection) == 0);
  CHECK(us(row_of(among(61, 1, scatter, "open-mpi-ucx", "connectx-3-fdr")), k_connection) == 0);
}

TEST_CASE("who sends to many and receives from many looks for acknowledgements after it has handled what arrived") {
  const auto at = [](const std::string& benchmark) {
    return row_of(among(64, 1,
                        benchmark + ", algorithm: linear_nb, buffers: [host, host], statistic: max, sizes: [8 B]",
                        "open-mpi-ucx"));
  };
  const auto scatter = at("benchmark: osu_scatter");
  const auto loaded =
      among(64, 1, "benchmark: osu_alltoall, algorithm: linear, buffers: [host, host], sizes: [8 B]", "open-mpi-ucx");
  const double handled = 62 * loaded.parameters.at("mpi.open-mpi-ucx.message_gap").value * 1e6;
  const double apart = row_of(loaded).time.us() - scatter.time.us();
  CHECK(apart > 0.7 * handled);
  CHECK(apart < 1.3 * handled);
}

TEST_CASE("an exchange of everybody with everybody is never faster for more ranks, connections shared or not") {
  const std::string exchange = "benchmark: osu_alltoall, algorithm: linear, buffers: [host, host], sizes: [16 B]";
  double before = 0;
  for (const int hosts : {8, 59, 60, 61, 62, 70, 96}) {
    CAPTURE(hosts);
    const double now = row_of(among(hosts, 1, exchange, "open-mpi-ucx")).time.us();
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("MVAPICH2 copies device buffers whole: the host's time and a copy each way, up to its limits") {
  struct Limits {
    std::string benchmark;
    std::int64_t most;     ///< B of a block, of 8 ranks
    std::int64_t out, in;  ///< blocks that a rank copies
  };
  constexpr int k_ranks = 8;
  const Limits all[] = {{"osu_alltoall", 262'144, k_ranks, k_ranks},
                        {"osu_allgather", 131'072, 1, k_ranks},
                        {"osu_bcast", 2'097'152, 1, 1}};
  for (std::uint64_t seed = 0; seed < test::draws(12); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const auto& limits = all[random.next(3)];
    const auto& benchmark = limits.benchmark;
    const auto most = limits.most;
    CAPTURE(benchmark);
    const auto timed = [&](std::int64_t size, const std::string& buffers, const std::string& library) {
      return row_of(among(
          k_ranks, 1, fmt::format("benchmark: {}, buffers: [{}, {}], sizes: [{} B]", benchmark, buffers, buffers, size),
          library));
    };
    const auto size = 8193 + static_cast<std::int64_t>(random.next(static_cast<std::uint64_t>(most - 8192)));
    CAPTURE(size);
    const auto device = timed(size, "device", "mvapich2-gdr");
    const double copies = us(device, "the buffer copied to the host") + us(device, "the buffer copied to the GPU");
    CHECK(device.protocol == "staged");
    CHECK(device.time.us() == test::approx(timed(size, "host", "mvapich2-gdr").time.us() + copies));
    CHECK(copies > static_cast<double>((limits.out + limits.in) * size) / 32e3);  // no more than 32 GB/s of PCIe
    CHECK(us(timed(most + 1, "device", "mvapich2-gdr"), "the buffer copied to the host") == 0);
    CHECK(us(timed(8192, "device", "mvapich2-gdr"), "the buffer copied to the host") == 0);
    CHECK(us(timed(size, "device", "open-mpi-ucx"), "the buffer copied to the host") == 0);
  }
}

TEST_CASE("that MVAPICH2 copies buffers whole is said of collectives of which it does") {
  const auto is_said = [](const std::string& benchmark, const std::string& library) {
    const auto result = test::run(
        among(4, 1, fmt::format("benchmark: {}, buffers: [device, device], sizes: [64 KiB]", benchmark), library));
    const auto& all = result.workloads[0].assumptions;
    return std::any_of(all.begin(), all.end(), [](const auto& line) { return line.starts_with("MVAPICH2 copies"); });
  };
  CHECK(is_said("osu_alltoall", "mvapich2-gdr"));
  CHECK_FALSE(is_said("osu_alltoall", "open-mpi-ucx"));
  CHECK_FALSE(is_said("osu_scatter", "mvapich2-gdr"));
}

TEST_CASE("a reduce-scatter of fewer elements than ranks: most ranks return before the first ones have their element") {
  for (const std::string library : {"open-mpi-ucx", "mpich"}) {
    CAPTURE(library);
    const auto timed = [&](const std::string& statistic, const std::string& size) {
      return row_of(
                 among(16, 8,
                       fmt::format("benchmark: osu_reduce_scatter, buffers: [host, host], statistic: {}, sizes: [{}]",
                                   statistic, size),
                       library))
          .time.us();
    };
    CHECK(timed("mean", "4 B") < 0.7 * timed("max", "4 B"));
    // A root of Open MPI's hands out what there is: one element, not 127 messages.
    CHECK(timed("max", "4 B") < timed("max", "512 B") * 1.5);
    CHECK(timed("mean", "4 KiB") > 0.9 * timed("max", "4 KiB"));
  }
}
