// SPDX-License-Identifier: Apache-2.0
// How fast a rank's core sums what it received: from another host by its cache, from a rank of its host between cores.
#include <fmt/format.h>

#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

LoadedScenario all_reduce(const std::string& algorithm, int per_host, const std::string& size,
                          const std::string& mpi = "open-mpi-ucx") {
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                  "  hosts: [{{name: node, count: 8, type: leonardo-booster}}]\n"
                  "  fabric: {{single_switch: {{switch: qm8700, rate: 100 Gb/s, cable: 5 m}}}}\n"
                  "software: {{mpi: {}}}\n"
                  "workload: {{benchmark: osu_allreduce, algorithm: {}, ranks: 8, ranks_per_host: {}, sizes: [{}]}}\n",
                  mpi, algorithm, per_host, size));
}

/// B/s at which a call of eight ranks sums.
double sum_rate(const LoadedScenario& loaded) {
  const auto row = test::run(loaded, {.with_terms = true}).workloads[0].rows[0];
  double seconds = 0;
  for (const auto& term : row.terms) seconds += term.name == "reduction on the host" ? term.time.seconds() : 0;
  return static_cast<double>(row.size.value) * (row.algorithm == "ring" ? 7.0 / 8 : 3) / seconds;
}

}  // namespace

TEST_CASE("a core sums what came from another host by its own cache while the call fits it, by the last level beyond") {
  for (const auto* mpi : {"open-mpi-ucx", "mpich", "cray-mpich", "open-mpi-ucx, mpi_version: \"4.0\""}) {
    CAPTURE(mpi);
    const auto small = all_reduce("recursive_doubling", 1, "4 KiB", mpi);
    const double own = small.parameters.number("mpi.reduction_bandwidth.core_cache");
    const double last_level = small.parameters.number("mpi.reduction_bandwidth.last_level");
    CHECK(sum_rate(small) == test::approx(own).epsilon(1e-3));
    // An adapter writes 8 MiB to the last level, and the vector lies there.
    CHECK(sum_rate(all_reduce("recursive_doubling", 1, "8 MiB", mpi)) == test::approx(last_level).epsilon(0.01));
  }
  // Eager blocks of 128 KiB lie in the core's cache, the vector that they come from does not.
  const double swept = sum_rate(all_reduce("ring", 1, "1 MiB"));
  CHECK(swept < 30e9);
  CHECK(swept > 20e9);
}

TEST_CASE("ranks of a host sum what the other has written at the rate between cores, whatever the size") {
  for (const auto* size : {"1 KiB", "16 KiB", "512 KiB", "8 MiB"}) {
    CAPTURE(size);
    const auto loaded = all_reduce("recursive_doubling", 8, size);
    CHECK(sum_rate(loaded) == test::approx(loaded.parameters.number("mpi.reduction_bandwidth")).epsilon(1e-2));
  }
}
