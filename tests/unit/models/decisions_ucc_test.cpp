// SPDX-License-Identifier: Apache-2.0
// What UCC picks, at every size and number of ranks where it changes its mind, and hcoll.
#include "models/mpi/decisions.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "tests/support/mpi_choices.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;

using Algorithm = CollectiveAlgorithm;
using fabricast::test::pick;

TEST_CASE("UCC changes where its selection strings say, and keeps hosts together") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size) {
    return pick(Library::ucc, benchmark, ranks, size, 4).algorithm;
  };
  CHECK(at(Benchmark::osu_allreduce, 32, 4095) == Algorithm::knomial);
  CHECK(at(Benchmark::osu_allreduce, 32, 4096) == Algorithm::sra_knomial);
  CHECK(at(Benchmark::osu_bcast, 32, 32'767) == Algorithm::knomial);
  CHECK(at(Benchmark::osu_bcast, 32, 32'768) == Algorithm::sag_knomial);
  // Of all blocks together; neighbours need an even number of ranks.
  CHECK(at(Benchmark::osu_allgather, 32, 127) == Algorithm::knomial);
  CHECK(at(Benchmark::osu_allgather, 32, 128) == Algorithm::neighbor_exchange);
  CHECK(at(Benchmark::osu_allgather, 33, 128) == Algorithm::ring);
  CHECK(at(Benchmark::osu_alltoall, 32, 128) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_alltoall, 32, 129) == Algorithm::pairwise);
  auto device = Collective{.benchmark = Benchmark::osu_alltoall, .num_ranks = 32, .size = Bytes{8}};
  device.is_in_gpu_memory = true;
  CHECK(choose(Library::ucc, device).algorithm == Algorithm::pairwise);
  for (const auto benchmark :
       {Benchmark::osu_reduce, Benchmark::osu_gather, Benchmark::osu_scatter, Benchmark::osu_barrier})
    CHECK(at(benchmark, 32, 8) == Algorithm::knomial);
  CHECK(at(Benchmark::osu_reduce_scatter, 32, 8) == Algorithm::ring);
  Software software;
  CHECK(library_of("open-mpi-ucx", software) == Library::open_mpi_4_1);
  software.mpi_collectives = "ucc";
  CHECK(library_of("open-mpi-ucx", software) == Library::ucc);
}

TEST_CASE("hcoll goes by levels where hosts have several ranks, everything else is Open MPI's") {
  for (const std::int64_t size : {4, 4096, 1 << 20}) {
    for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_bcast, Benchmark::osu_barrier}) {
      const auto apart = pick(Library::hcoll, benchmark, 32, size, 8);
      CHECK(apart.algorithm == Algorithm::two_level);
      REQUIRE(apart.parts.size() == 3);
      CHECK(apart.parts[0].num_ranks == 8);
      CHECK(apart.parts[1].num_ranks == 4);
      CHECK(apart.parts[1].algorithm ==
            (benchmark == Benchmark::osu_bcast ? Algorithm::binomial : Algorithm::recursive_doubling));
      for (const int of_host : {1, 32})
        CHECK(pick(Library::hcoll, benchmark, 32, size, of_host).algorithm ==
              pick(Library::open_mpi_4_1, benchmark, 32, size, of_host).algorithm);
    }
    for (const auto benchmark : {Benchmark::osu_alltoall, Benchmark::osu_allgather, Benchmark::osu_reduce_scatter,
                                 Benchmark::osu_reduce, Benchmark::osu_gather})
      CHECK(pick(Library::hcoll, benchmark, 32, size, 4).algorithm ==
            pick(Library::open_mpi_4_1, benchmark, 32, size, 4).algorithm);
  }
  Software software;
  software.mpi_collectives = "hcoll";
  CHECK(library_of("open-mpi-ucx", software) == Library::hcoll);
}
