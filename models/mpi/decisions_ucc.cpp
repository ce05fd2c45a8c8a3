// SPDX-License-Identifier: Apache-2.0
#include "mpi/decisions_ucc.hpp"

namespace fabricast::models::mpi {

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr std::int64_t k_ucc_short = 4 << 10;  ///< all-reduce, and all-gather of all blocks together
constexpr std::int64_t k_ucc_short_broadcast = 32 << 10;
constexpr std::int64_t k_ucc_bruck_block = 129;  ///< all-to-all, per rank, of host memory

}  // namespace

void choose_of_ucc(Collective& out) {
  const std::int64_t size = out.size.value;
  switch (out.benchmark) {
    case Benchmark::osu_allreduce:
      out.algorithm = size < k_ucc_short ? Algorithm::knomial : Algorithm::sra_knomial;
      return;
    case Benchmark::osu_allgather:
      out.algorithm = (out.num_ranks * out.size).value < k_ucc_short ? Algorithm::knomial
                      : out.num_ranks % 2 != 0                       ? Algorithm::ring
                                                                     : Algorithm::neighbor_exchange;
      return;
    case Benchmark::osu_bcast:
      out.algorithm = size < k_ucc_short_broadcast ? Algorithm::knomial : Algorithm::sag_knomial;
      return;
    case Benchmark::osu_alltoall:
      out.algorithm = size < k_ucc_bruck_block && !out.is_in_gpu_memory ? Algorithm::bruck : Algorithm::pairwise;
      return;
    case Benchmark::osu_reduce_scatter:
      out.algorithm = Algorithm::ring;
      return;
    default:
      out.algorithm = Algorithm::knomial;
  }
}

}  // namespace fabricast::models::mpi
