// SPDX-License-Identifier: Apache-2.0
// What MPI libraries pick, by ranks in order on hosts with as many each.
#pragma once

#include <cstdint>

#include "models/mpi/decisions.hpp"

namespace fabricast::test {

inline models::mpi::Collective pick(models::mpi::Library library, Benchmark benchmark, int ranks, std::int64_t size,
                                    int ranks_per_host = 1) {
  models::mpi::Collective asked;
  asked.benchmark = benchmark;
  asked.num_ranks = ranks;
  asked.size = Bytes{size};
  for (int r = 0; r < ranks; ++r) asked.hosts.push_back(r / ranks_per_host);
  return models::mpi::choose(library, asked);
}

inline models::mpi::CollectiveAlgorithm algorithm(models::mpi::Library library, Benchmark benchmark, int ranks,
                                                  std::int64_t size) {
  return pick(library, benchmark, ranks, size).algorithm;
}

}  // namespace fabricast::test
