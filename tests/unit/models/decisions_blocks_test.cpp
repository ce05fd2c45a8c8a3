// SPDX-License-Identifier: Apache-2.0
// What each release picks for gathers and scatters, where it changes its mind.
#include "models/mpi/decisions.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "models/mpi/schedule.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/mpi_choices.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;

using fabricast::test::algorithm;
using fabricast::test::pick;

TEST_CASE("gathers and scatters of Open MPI 4.1 go by ranks and block, those of MPICH's family by a tree") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size) {
    const auto one = pick(Library::open_mpi_4_1, benchmark, ranks, size);
    CHECK(one.segment.value == 0);
    return one.algorithm;
  };
  using enum CollectiveAlgorithm;
  struct Change {
    int ranks;
    std::int64_t size;
    CollectiveAlgorithm below, from;
  };
  for (const auto& change :
       {Change{3, 2, linear_sync, linear}, Change{3, 4, linear, binomial}, Change{2, 32'768, binomial, linear},
        Change{3, 65'536, linear, binomial}, Change{3, 131'072, binomial, linear_sync},
        Change{4, 1'024, binomial, linear}, Change{7, 8'192, linear, binomial}, Change{7, 32'768, binomial, linear},
        Change{7, 262'144, linear, linear_sync}, Change{256, 2'048, binomial, linear},
        Change{511, 8'192, linear, binomial}}) {
    CAPTURE(change.ranks);
    CAPTURE(change.size);
    CHECK(at(Benchmark::osu_gather, change.ranks, change.size - 1) == change.below);
    CHECK(at(Benchmark::osu_gather, change.ranks, change.size) == change.from);
  }
  for (const int ranks : {8, 255, 512, 5000}) CHECK(at(Benchmark::osu_gather, ranks, 4'096) == binomial);
  for (const auto& change :
       {Change{3, 2, linear_nb, linear}, Change{3, 131'072, linear, linear_nb}, Change{2, 262'144, linear_nb, linear},
        Change{4, 2'048, binomial, linear}, Change{7, 4'096, linear, binomial}, Change{7, 8'192, binomial, linear},
        Change{7, 32'768, linear, linear_nb}, Change{7, 1 << 20, linear_nb, linear},
        Change{15, 16'384, binomial, linear_nb}, Change{8, 1 << 20, linear_nb, linear},
        Change{31, 16'384, binomial, linear}, Change{16, 32'768, linear, linear_nb},
        Change{32, 512, binomial, linear_nb}, Change{63, 8'192, linear_nb, binomial},
        Change{63, 16'384, binomial, linear_nb}, Change{64, 512, binomial, linear_nb},
        Change{5000, 512, binomial, linear_nb}}) {
    CAPTURE(change.ranks);
    CAPTURE(change.size);
    CHECK(at(Benchmark::osu_scatter, change.ranks, change.size - 1) == change.below);
    CHECK(at(Benchmark::osu_scatter, change.ranks, change.size) == change.from);
  }
  for (const auto library : {Library::mpich_3, Library::mpich_4, Library::cray_mpich, Library::intel_mpi})
    for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter})
      for (const int per_host : {1, 4})
        for (const std::int64_t size : {1, 4'096, 1 << 20})
          CHECK(pick(library, benchmark, 16, size, per_host).algorithm == binomial);
}

TEST_CASE("Cray MPICH keeps several messages of an all-to-all under way where MPICH exchanges by pairs") {
  const auto of = [](Library library, std::int64_t size) {
    return choose(library, {.benchmark = Benchmark::osu_alltoall, .num_ranks = 16, .size = Bytes{size}}).algorithm;
  };
  for (const auto library : {Library::mpich_3, Library::mpich_4, Library::cray_mpich}) {
    CHECK(of(library, 256) == CollectiveAlgorithm::bruck);
    CHECK(of(library, 32'768) == CollectiveAlgorithm::linear);
    CHECK(of(library, 32'769) ==
          (library == Library::cray_mpich ? CollectiveAlgorithm::linear : CollectiveAlgorithm::pairwise));
    CHECK(of(library, 4 << 20) ==
          (library == Library::cray_mpich ? CollectiveAlgorithm::linear : CollectiveAlgorithm::pairwise));
  }
}

TEST_CASE("HAN gathers and scatters through the first ranks of hosts, by tuned's rules on both levels") {
  using enum CollectiveAlgorithm;
  for (const int hosts : {2, 6, 40}) {
    for (const int per_host : {2, 4, 48}) {
      for (const std::int64_t size : {8, 1'024, 65'536, 1 << 20}) {
        CAPTURE(hosts);
        CAPTURE(per_host);
        CAPTURE(size);
        for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter}) {
          const auto one = pick(Library::open_mpi_5_0, benchmark, hosts * per_host, size, per_host);
          REQUIRE(one.algorithm == two_level);
          CHECK(one.segment.value == 0);
          CHECK(one.parts[1].algorithm == algorithm(Library::open_mpi_4_1, benchmark, hosts, per_host * size));
          const auto& inside = one.parts[benchmark == Benchmark::osu_gather ? 0 : 2];
          CHECK(inside.algorithm == algorithm(Library::open_mpi_4_1, benchmark, per_host, size));
        }
      }
    }
  }
}

TEST_CASE("a gather and a broadcast bring the root the others' blocks, and every other rank all of them") {
  for (const auto library : {Library::cray_mpich, Library::open_mpi_4_1}) {
    for (const int ranks : {2, 3, 8, 33, 100}) {
      CAPTURE(ranks);
      Collective asked{.benchmark = Benchmark::osu_allgather, .num_ranks = ranks, .size = Bytes{100}};
      for (int r = 0; r < ranks; ++r) asked.hosts.push_back(r / 4);
      const auto rounds = make_schedule(choose(library, asked, CollectiveAlgorithm::gather_broadcast));
      std::vector<double> got(static_cast<std::size_t>(ranks), 0);
      double gathered = 0;
      for (const auto& round : rounds) {
        for (const auto& step : round.steps) {
          got[static_cast<std::size_t>(step.to)] += step.bytes * static_cast<double>(round.repeat);
          gathered += step.to == 0 ? step.bytes : 0;
        }
      }
      CHECK(gathered == test::approx(100.0 * (ranks - 1)));
      CHECK(got[0] == test::approx(100.0 * (ranks - 1)));
      for (std::size_t r = 1; r < got.size(); ++r) CHECK(got[r] >= test::approx(100.0 * ranks));
    }
  }
}
