// SPDX-License-Identifier: Apache-2.0
// Host buffers between ranks of one host: what each core copies, what is read from one process, what stays in a cache.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

LoadedScenario inside(const std::string& workload, int ranks, const std::string& sizes,
                      const std::string& software = "") {
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: inside\ntopology:\n  schema: fabricast/topology/1\n  name: inside\n"
      "  hosts:\n    - {{name: n, count: 1, host: {{processor: xeon-emeraldrapids, sockets: 1, devices: []}}}}\n"
      "software: {{{}}}\n"
      "workload: {{{}, ranks: {}, ranks_per_host: {}, buffers: [host, host], sizes: [{}]}}\n",
      software, workload, ranks, ranks, sizes));
}

double value(const std::string& name) { return inside("benchmark: osu_latency", 2, "8 B").parameters.at(name).value; }

double time_us(const std::string& workload, int ranks, const std::string& size) {
  return test::run(inside(workload, ranks, size)).workloads[0].rows[0].time.us();
}

}  // namespace

TEST_CASE("every rank of an all-to-all inside a host copies what it gets with one core") {
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  const double attach = value("mpi.shared_memory.attach_bandwidth");
  for (std::uint64_t seed = 0; seed < test::draws(30); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const int ranks = random.pick<int>({2, 3, 4, 6, 8, 16, 48});
    const auto bytes = static_cast<double>(std::int64_t{1} << random.pick<int>({8, 11, 14, 16, 18, 20, 22}));
    CAPTURE(ranks);
    CAPTURE(bytes);
    const auto algorithm = random.pick<std::string>({"auto", "linear", "pairwise"});
    const double time = time_us("benchmark: osu_alltoall, algorithm: " + algorithm, ranks, fmt::format("{} B", bytes));
    CHECK(time >= (ranks - 1) * bytes / std::max(copy, attach) * 1e6);
  }
  // Posted at once, messages that the cores of both sides copy take their turns: twice as many, twice as long.
  const auto bytes_us = [](int ranks) { return time_us("benchmark: osu_alltoall, algorithm: linear", ranks, "2 MiB"); };
  CHECK(bytes_us(9) / bytes_us(5) == test::approx(2).epsilon(0.02));
}

TEST_CASE("what the children of a root read from its memory they read in turn") {
  const double attach = value("mpi.shared_memory.attach_bandwidth");
  for (const int ranks : {3, 5, 9, 17}) {
    CAPTURE(ranks);
    const double bytes = 1 << 20;
    const double time = time_us("benchmark: osu_bcast, algorithm: linear", ranks, "1 MiB");
    CHECK(time == test::approx((ranks - 1) * bytes / attach * 1e6).epsilon(0.05));
  }
}

TEST_CASE("a larger message inside a host is never faster in OSU's tests of pairs") {
  for (const std::string benchmark : {"osu_latency", "osu_bw", "osu_bibw"}) {
    for (const std::string library :
         {"", "mpi: open-mpi-openib", "mpi: cray-mpich", "mpi: open-mpi-ucx, ucx: \"1.7\""}) {
      CAPTURE(benchmark);
      CAPTURE(library);
      double before = 0;
      const auto rows = test::run(inside("benchmark: " + benchmark, 2,
                                         "1 B, 8 B, 100 B, 129 B, 1 KiB, 4 KiB, 8191 B, 16 KiB, 64 KiB, 128 KiB, "
                                         "262143 B, 1 MiB, 2 MiB, 4 MiB, 64 MiB",
                                         library))
                            .workloads[0]
                            .rows;
      for (const auto& row : rows) {
        CAPTURE(row.size.value);
        CHECK(row.time.us() >= before);
        before = row.time.us();
      }
    }
  }
}

TEST_CASE("copies of both sides overlap in a window, not in one message, and one core makes them both ways") {
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  const double bytes = 8192;
  const double one = time_us("benchmark: osu_latency", 2, "8 KiB") - time_us("benchmark: osu_latency", 2, "129 B");
  CHECK(one == test::approx(2 * (bytes - 129) / copy * 1e6).epsilon(0.01));
  const auto of_window = [&](const std::string& benchmark) {
    return test::run(inside("benchmark: " + benchmark, 2, "8 KiB")).workloads[0].rows[0].algbw.bytes_per_s;
  };
  CHECK(of_window("osu_bw") == test::approx(copy).epsilon(0.03));
  CHECK(of_window("osu_bibw") == test::approx(copy).epsilon(0.03));
}

TEST_CASE("buffers that nobody writes stay in the core's cache while they fit in it") {
  const double memory = value("mpi.core_memory_bandwidth");
  const auto slope = [](double from, double to) {
    return (to - from) /
           (time_us("benchmark: osu_latency", 2, fmt::format("{} B", to)) -
            time_us("benchmark: osu_latency", 2, fmt::format("{} B", from))) *
           1e6;
  };
  CHECK(slope(524288, 1048576) == test::approx(memory).epsilon(0.01));
  CHECK(slope(64 << 20, 128 << 20) == test::approx(memory / 2).epsilon(0.01));
}
