// SPDX-License-Identifier: Apache-2.0
// Collectives that Open MPI leaves to UCC or hcoll (`software.mpi_collectives`).
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

LoadedScenario collective(const std::string& software, const std::string& workload) {
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                  "  hosts: [{{name: node, count: 4, type: dgx-1-v100}}]\n"
                  "  fabric: {{single_switch: {{switch: qm8700, cable: 5 m}}}}\n"
                  "software: {{mpi: {}}}\nworkload: {{{}}}\n",
                  software, workload));
}

/// us of a term of the first row; -1: there is none.
double term_us(const LoadedScenario& loaded, std::string_view name) {
  const auto prediction = test::run(loaded, {.with_terms = true});
  double found = -1;
  for (const auto& term : prediction.workloads[0].rows[0].terms)
    if (term.name.starts_with(name)) found = std::max(found, 0.0) + term.time.us();
  return found;
}

}  // namespace

TEST_CASE("UCC leaves device buffers on the GPUs: a kernel combines what each of its rounds brings") {
  const std::string workload = "benchmark: osu_allreduce, ranks: 32, buffers: [device, device], sizes: [1 KiB]";
  const auto own = collective("open-mpi-ucx, gdrcopy: off, gpudirect_rdma: off", workload);
  const auto ucc = collective("open-mpi-ucx, gdrcopy: off, gpudirect_rdma: off, mpi_collectives: ucc", workload);
  CHECK(term_us(own, "CUDA copies to and from host buffers") > 0);
  CHECK(term_us(own, "a kernel to combine") == -1);
  CHECK(term_us(ucc, "CUDA copies to and from host buffers") == -1);
  // Rounds of four, four and two ranks.
  CHECK(term_us(ucc, "a kernel to combine") == test::approx(3 * ucc.parameters.number("cuda.copy_overhead") * 1e6));
  // Seven copies of a GPU by its one core in a round of four cost more than one all-reduce on the host.
  CHECK(test::run(ucc).workloads[0].rows[0].time.us() > 2 * test::run(own).workloads[0].rows[0].time.us());
  const auto host = collective("open-mpi-ucx, mpi_collectives: ucc",
                               "benchmark: osu_allreduce, ranks: 32, buffers: [host, host], sizes: [1 KiB]");
  CHECK(term_us(host, "a kernel to combine") == -1);
  CHECK(term_us(host, "reduction on the host") > 0);
}

TEST_CASE("every collective runs by UCC, on both kinds of buffers, and longer messages take longer") {
  for (const auto* benchmark : {"osu_allreduce", "osu_allgather", "osu_bcast", "osu_reduce", "osu_reduce_scatter",
                                "osu_gather", "osu_scatter", "osu_alltoall", "osu_barrier"}) {
    for (const auto* buffers : {"host, host", "device, device"}) {
      CAPTURE(benchmark);
      CAPTURE(buffers);
      const auto sizes = std::string(benchmark) == "osu_barrier" ? "[0 B]" : "[1 MiB, 16 MiB]";
      const auto rows =
          test::run(collective("open-mpi-ucx, mpi_collectives: ucc",
                               fmt::format("benchmark: {}, ranks: 12, ranks_per_host: 3, buffers: [{}], sizes: {}",
                                           benchmark, buffers, sizes)))
              .workloads[0]
              .rows;
      CHECK(rows.front().time.us() > 1);
      if (rows.size() > 1) CHECK(rows.back().time.us() > 4 * rows.front().time.us());
    }
  }
}

TEST_CASE("UCC and hcoll are Open MPI's: other libraries refuse them, in words") {
  for (const auto& [key, name] : {std::pair{"ucc", "UCC"}, std::pair{"hcoll", "hcoll"}}) {
    const auto loaded = collective(fmt::format("mpich, mpi_collectives: {}", key),
                                   "benchmark: osu_bcast, ranks: 8, buffers: [host, host]");
    const auto made = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
    REQUIRE_FALSE(made);
    const std::string said = test::shown(made.error());
    CHECK(said.find(std::string(name) + " runs collectives of Open MPI, the library here is 'mpich'") !=
          std::string::npos);
  }
}

TEST_CASE(
    "by hcoll one rank of each host exchanges what all ranks exchange by doubling, and longer messages take longer") {
  const auto time_us = [](const char* who, int ranks_per_host, const char* size, const char* algorithm = "auto") {
    const auto workload = fmt::format(
        "benchmark: osu_allreduce, ranks: {}, ranks_per_host: {}, buffers: [host, host], sizes: [{}], algorithm: {}",
        4 * ranks_per_host, ranks_per_host, size, algorithm);
    return test::run(collective(fmt::format("open-mpi-ucx, mpi_collectives: {}", who), workload))
        .workloads[0]
        .rows[0]
        .time.us();
  };
  // Among all ranks two of five rounds go between hosts, where each of a host's eight ranks sends the whole vector.
  CHECK(time_us("hcoll", 8, "64 KiB") < time_us("library", 8, "64 KiB", "recursive_doubling"));
  CHECK(time_us("hcoll", 1, "64 KiB") == time_us("library", 1, "64 KiB"));
  double before = 0;
  for (const auto* size : {"8 B", "1 KiB", "16 KiB", "128 KiB", "1 MiB", "16 MiB"}) {
    CAPTURE(size);
    const double now = time_us("hcoll", 8, size);
    CHECK(now > before);
    before = now;
  }
}
