// SPDX-License-Identifier: Apache-2.0
#include "mpi/decisions_hcoll.hpp"

#include <fmt/format.h>

namespace fabricast::models::mpi {

bool hcoll_takes(Benchmark benchmark) {
  return benchmark == Benchmark::osu_allreduce || benchmark == Benchmark::osu_bcast ||
         benchmark == Benchmark::osu_barrier;
}

GivenUsed hcoll_setting() {
  return {"mpi_collectives", "hcoll", "hcoll", "ranks of a host first, one of each host between them"};
}

void choose_between_hosts_of_hcoll(Collective& between) {
  const bool is_rooted = between.benchmark == Benchmark::osu_bcast || between.benchmark == Benchmark::osu_reduce;
  between.algorithm = is_rooted ? CollectiveAlgorithm::binomial : CollectiveAlgorithm::recursive_doubling;
}

Diagnostics faults_of_collectives(const Software& software, const Workload& workload,
                                  const std::string& implementation) {
  const auto& other = software.mpi_collectives;
  if (other == "library" || implementation.starts_with("open-mpi")) return {};
  return {make_error_at(workload.location,
                        fmt::format("{} runs collectives of Open MPI, the library here is '{}'",
                                    other == "ucc" ? "UCC" : other, implementation),
                        "write `software: {mpi: open-mpi-ucx}`, or leave `mpi_collectives` out")};
}

}  // namespace fabricast::models::mpi
