// SPDX-License-Identifier: Apache-2.0
// What each release picks, at every size and number of ranks where it changes its mind.
#include "models/mpi/decisions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/mpi_choices.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;

namespace {

using Algorithm = CollectiveAlgorithm;
using test::algorithm;
using test::pick;

}  // namespace

TEST_CASE("Open MPI 4.0 changes where its rules say, and not one byte or rank beside it") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size) {
    return algorithm(Library::open_mpi_4_0, benchmark, ranks, size);
  };
  CHECK(at(Benchmark::osu_allreduce, 8, 9'999) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 8, 10'000) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allreduce, 4000, 10'000) == Algorithm::recursive_doubling);  // fewer elements than ranks
  CHECK(at(Benchmark::osu_allgather, 8, 6'249) == Algorithm::recursive_doubling);      // 49,992 B in all
  CHECK(at(Benchmark::osu_allgather, 8, 6'250) == Algorithm::neighbor_exchange);
  CHECK(at(Benchmark::osu_allgather, 7, 10'000) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allgather, 7, 1'000) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_bcast, 8, 2'047) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_bcast, 8, 2'048) == Algorithm::split_binary);
  CHECK(at(Benchmark::osu_bcast, 12, 370'727) == Algorithm::split_binary);
  CHECK(pick(Library::open_mpi_4_0, Benchmark::osu_bcast, 12, 370'727).segment.value == 1 << 10);
  CHECK(pick(Library::open_mpi_4_0, Benchmark::osu_bcast, 12, 370'728).segment.value == 8 << 10);
  CHECK(at(Benchmark::osu_bcast, 16, 370'728) == Algorithm::chain);
  CHECK(pick(Library::open_mpi_4_0, Benchmark::osu_bcast, 16, 370'728).segment.value == 8 << 10);
  CHECK(pick(Library::open_mpi_4_0, Benchmark::osu_bcast, 16, 8 << 20).segment.value == 64 << 10);
  CHECK(at(Benchmark::osu_alltoall, 13, 199) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_alltoall, 12, 199) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 13, 200) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 13, 2'999) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 13, 3'000) == Algorithm::pairwise);
  CHECK(at(Benchmark::osu_reduce, 7, 511) == Algorithm::linear);
  CHECK(at(Benchmark::osu_reduce, 8, 511) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_reduce, 7, 512) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, 256 << 10) == Algorithm::recursive_halving);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, (256 << 10) + 1) == Algorithm::ring);
  CHECK(at(Benchmark::osu_reduce_scatter, 7, 12 << 10) == Algorithm::recursive_halving);
  CHECK(at(Benchmark::osu_reduce_scatter, 7, (12 << 10) + 1) == Algorithm::ring);
  CHECK(at(Benchmark::osu_barrier, 8, 0) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_barrier, 9, 0) == Algorithm::dissemination);
  CHECK(at(Benchmark::osu_gather, 10, 1'023) == Algorithm::linear);
  CHECK(at(Benchmark::osu_gather, 11, 1'023) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_gather, 60, 1'024) == Algorithm::linear);
  CHECK(at(Benchmark::osu_gather, 61, 6'000) == Algorithm::binomial);
  const auto first_part = [](std::int64_t size) {
    const auto one = pick(Library::open_mpi_4_0, Benchmark::osu_gather, 61, size);
    CHECK(one.algorithm == Algorithm::linear_sync);
    return one.segment.value;
  };
  CHECK(first_part(6'001) == 1'024);
  CHECK(first_part(92'160) == 1'024);
  CHECK(first_part(92'161) == 32'768);
  CHECK(at(Benchmark::osu_scatter, 11, 299) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_scatter, 11, 300) == Algorithm::linear);
  CHECK(at(Benchmark::osu_scatter, 10, 299) == Algorithm::linear);
}

TEST_CASE("Open MPI 4.1 reads its tables by ranks, then by size") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size) {
    return algorithm(Library::open_mpi_4_1, benchmark, ranks, size);
  };
  CHECK(at(Benchmark::osu_allreduce, 3, 7) == Algorithm::recursive_doubling);  // ring of fewer elements than ranks
  CHECK(at(Benchmark::osu_allreduce, 3, 4095) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 3, 4096) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allreduce, 3, 8192) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 3, 256 << 10) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_allreduce, 16, 4095) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 16, 4096) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_allreduce, 15, 8191) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 128, (128 << 10) - 1) == Algorithm::reduce_broadcast);
  CHECK(at(Benchmark::osu_allreduce, 128, 128 << 10) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 32, 128) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_bcast, 16, 4095) == Algorithm::knomial);
  CHECK(at(Benchmark::osu_bcast, 16, 4096) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_bcast, 16, 1 << 20) == Algorithm::scatter_doubling);
  CHECK(at(Benchmark::osu_bcast, 17, 1 << 20) == Algorithm::scatter_allgather);  // no power of two
  CHECK(at(Benchmark::osu_bcast, 600, 16 << 10) == Algorithm::split_binary);
  CHECK(at(Benchmark::osu_reduce, 8, (8 << 10) - 1) == Algorithm::binary);
  CHECK(at(Benchmark::osu_reduce, 8, 8 << 10) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, (256 << 10) - 1) == Algorithm::recursive_halving);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, 256 << 10) == Algorithm::ring);
  CHECK(at(Benchmark::osu_alltoall, 2, 1024) == Algorithm::pairwise);
  CHECK(at(Benchmark::osu_alltoall, 64, 1023) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_alltoall, 64, 1024) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 64, 256 << 10) == Algorithm::pairwise);
  CHECK(at(Benchmark::osu_allgather, 32, 1023) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allgather, 33, 1023) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_allgather, 32, 1024) == Algorithm::neighbor_exchange);
  CHECK(at(Benchmark::osu_allgather, 33, 1024) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allgather, 32, 64 << 10) == Algorithm::ring);
  CHECK(at(Benchmark::osu_barrier, 4, 0) == Algorithm::linear);
  CHECK(at(Benchmark::osu_barrier, 64, 0) == Algorithm::dissemination);
}

TEST_CASE("Open MPI 4.1 has tables for a thousand ranks, two and four thousand, of its own each") {
  // Of 1, 2, 4 ... B: B Bruck, L everything at once, D doubling, E neighbours.
  const auto read = [](Benchmark benchmark, int ranks) {
    std::string out;
    for (int power = 0; power < 20; ++power) {
      switch (algorithm(Library::open_mpi_4_1, benchmark, ranks, std::int64_t{1} << power)) {
        case Algorithm::bruck:
          out += 'B';
          break;
        case Algorithm::linear:
          out += 'L';
          break;
        case Algorithm::recursive_doubling:
          out += 'D';
          break;
        case Algorithm::neighbor_exchange:
          out += 'E';
          break;
        default:
          out += '?';
      }
    }
    return out;
  };
  // coll_tuned_decision_fixed.c of 4.1 and 5.0, read again.
  for (const int ranks : {1024, 1500, 2047}) {
    CHECK(read(Benchmark::osu_alltoall, ranks) == "BBBBBBBBBLLLLLLLLLLL");
    if (ranks == 1024) CHECK(read(Benchmark::osu_allgather, ranks) == "DDBDBDDDBDDDEEEEEEEE");
  }
  CHECK(read(Benchmark::osu_alltoall, 2048) == "BBBBBBBBBBLLLLLLLLLL");
  CHECK(read(Benchmark::osu_alltoall, 4095) == "BBBBBBBBBBLLLLLLLLLL");
  CHECK(read(Benchmark::osu_allgather, 2048) == "BBBBBDDBBDDDEEEEEEEE");
  CHECK(read(Benchmark::osu_alltoall, 4096) == "BBBBBBBBBBBLLLLLLLLL");
  CHECK(read(Benchmark::osu_alltoall, 100'000) == "BBBBBBBBBBBLLLLLLLLL");
  CHECK(read(Benchmark::osu_allgather, 4096) == "DBBDBBBBBDDDEEEEEEEE");
  // Doubling of no power of two is Bruck's.
  CHECK(read(Benchmark::osu_allgather, 1500) == "BBBBBBBBBBBBEEEEEEEE");
}

TEST_CASE(
    "a reduce and a broadcast that follow each other are picked each by its own table, for these ranks and this size") {
  for (const int ranks : {128, 200, 255, 300, 600, 2048, 5000}) {
    for (std::int64_t size = 4; size < (128 << 10); size *= 2) {
      const auto one = pick(Library::open_mpi_4_1, Benchmark::osu_allreduce, ranks, size);
      if (one.algorithm != Algorithm::reduce_broadcast) continue;
      CAPTURE(ranks);
      CAPTURE(size);
      REQUIRE(one.parts.size() == 2);
      CHECK(one.parts[0].benchmark == Benchmark::osu_reduce);
      CHECK(one.parts[0].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_reduce, ranks, size));
      CHECK(one.parts[1].benchmark == Benchmark::osu_bcast);
      CHECK(one.parts[1].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_bcast, ranks, size));
    }
  }
  // 128 ranks, 64 KiB: a binomial reduce, a broadcast of radix 4; 16 KiB: down a linear one.
  CHECK(pick(Library::open_mpi_4_1, Benchmark::osu_allreduce, 128, 64 << 10).parts[1].algorithm == Algorithm::knomial);
  CHECK(pick(Library::open_mpi_4_1, Benchmark::osu_allreduce, 128, 16 << 10).parts[1].algorithm == Algorithm::linear);
  // Blocks of a reduce-scatter: 5 ranks below 8 B, 100 below 256 B.
  CHECK(pick(Library::open_mpi_4_1, Benchmark::osu_reduce_scatter, 5, 4).parts[0].algorithm == Algorithm::binary);
  CHECK(pick(Library::open_mpi_4_1, Benchmark::osu_reduce_scatter, 100, 128).parts[0].algorithm == Algorithm::binomial);
  // 4.0 sends in segments.
  const auto old =
      choose(Library::open_mpi_4_0, {.benchmark = Benchmark::osu_allreduce, .num_ranks = 16, .size = Bytes{1 << 20}},
             Algorithm::reduce_broadcast);
  CHECK(old.parts[0].segment == pick(Library::open_mpi_4_0, Benchmark::osu_reduce, 16, 1 << 20).segment);
  CHECK(old.parts[1].segment.value > 0);
}

TEST_CASE("a forced algorithm that cannot work on so few elements or so many ranks is what the library makes of it") {
  const auto forced = [](Library library, Benchmark benchmark, Algorithm algorithm, int ranks, std::int64_t size) {
    return choose(library, {.benchmark = benchmark, .num_ranks = ranks, .size = Bytes{size}}, algorithm);
  };
  const auto ompi = [&](Benchmark benchmark, Algorithm algorithm, int ranks, std::int64_t size) {
    return forced(Library::open_mpi_4_1, benchmark, algorithm, ranks, size).algorithm;
  };
  CHECK(ompi(Benchmark::osu_allreduce, Algorithm::ring, 16, 60) == Algorithm::recursive_doubling);
  CHECK(ompi(Benchmark::osu_allreduce, Algorithm::ring, 16, 64) == Algorithm::ring);
  CHECK(ompi(Benchmark::osu_allgather, Algorithm::recursive_doubling, 12, 64) == Algorithm::bruck);
  CHECK(ompi(Benchmark::osu_allgather, Algorithm::neighbor_exchange, 13, 64) == Algorithm::ring);
  CHECK(ompi(Benchmark::osu_bcast, Algorithm::scatter_allgather, 16, 8) == Algorithm::linear);
  CHECK(ompi(Benchmark::osu_bcast, Algorithm::scatter_doubling, 16, 8) == Algorithm::linear);
  // Rabenseifner's of fewer elements than ranks: everything to the root and back (basic_linear).
  const auto few = forced(Library::open_mpi_4_1, Benchmark::osu_allreduce, Algorithm::rabenseifner, 16, 60);
  CHECK(few.algorithm == Algorithm::reduce_broadcast);
  CHECK(few.parts[0].algorithm == Algorithm::linear);
  CHECK(few.parts[1].algorithm == Algorithm::linear);
  CHECK(ompi(Benchmark::osu_allreduce, Algorithm::rabenseifner, 31, 64) == Algorithm::rabenseifner);
  CHECK(ompi(Benchmark::osu_reduce, Algorithm::rabenseifner, 16, 60) == Algorithm::linear);
  // MPICH takes its own choice instead; its rings work on any number of elements.
  const auto mpich = [&](Benchmark benchmark, Algorithm algorithm, int ranks, std::int64_t size) {
    return forced(Library::mpich_4, benchmark, algorithm, ranks, size).algorithm;
  };
  CHECK(mpich(Benchmark::osu_allreduce, Algorithm::ring, 16, 8) == Algorithm::ring);
  CHECK(mpich(Benchmark::osu_allreduce, Algorithm::rabenseifner, 16, 60) == Algorithm::recursive_doubling);
  CHECK(mpich(Benchmark::osu_reduce, Algorithm::rabenseifner, 16, 60) == Algorithm::binomial);
  CHECK(mpich(Benchmark::osu_allgather, Algorithm::recursive_doubling, 12, 64) == Algorithm::bruck);
  CHECK(mpich(Benchmark::osu_bcast, Algorithm::scatter_doubling, 12, 64) == Algorithm::binomial);
}

TEST_CASE("MPICH and Open MPI 5 treat hosts apart where several ranks share one, Open MPI 4 never") {
  for (const auto benchmark :
       {Benchmark::osu_allreduce, Benchmark::osu_reduce, Benchmark::osu_barrier, Benchmark::osu_bcast}) {
    CHECK(pick(Library::mpich_3, benchmark, 16, 1024, 4).algorithm == Algorithm::two_level);
    CHECK(pick(Library::open_mpi_5_0, benchmark, 16, 1024, 4).algorithm == Algorithm::two_level);
    CHECK(pick(Library::open_mpi_4_1, benchmark, 16, 1024, 4).algorithm != Algorithm::two_level);
    CHECK(pick(Library::open_mpi_5_0, benchmark, 16, 1024, 1).algorithm != Algorithm::two_level);
    CHECK(pick(Library::open_mpi_5_0, benchmark, 16, 1024, 16).algorithm != Algorithm::two_level);
  }
  // MPICH has no all-gather of two levels.
  for (const auto library : {Library::mpich_3, Library::open_mpi_4_1, Library::open_mpi_5_0})
    CHECK((pick(library, Benchmark::osu_allgather, 16, 1024, 4).algorithm == Algorithm::two_level) ==
          (library == Library::open_mpi_5_0));
  CHECK(pick(Library::open_mpi_5_0, Benchmark::osu_alltoall, 16, 1024, 4).algorithm != Algorithm::two_level);
  CHECK(pick(Library::open_mpi_5_0, Benchmark::osu_allreduce, 16, 1 << 20, 4).segment.value == 64 << 10);
}

TEST_CASE("Open MPI 5's HAN: tuned inside hosts, libnbc between them, both by what a segment has") {
  const auto parts = [](Benchmark benchmark, int hosts, int per_host, std::int64_t size) {
    const auto one = pick(Library::open_mpi_5_0, benchmark, hosts * per_host, size, per_host);
    REQUIRE(one.algorithm == Algorithm::two_level);
    REQUIRE(one.parts.size() == 4);
    return one.parts;
  };
  for (const int per_host : {2, 4, 8, 12, 48, 100}) {
    for (const std::int64_t size : {8, 4096, 65'535, 65'536, 1 << 20}) {
      CAPTURE(per_host);
      CAPTURE(size);
      const auto all = parts(Benchmark::osu_allreduce, 6, per_host, size);
      const auto segment = std::min<std::int64_t>(size, 65'536);
      CHECK(all[0].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_reduce, per_host, segment));
      CHECK(all[2].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_bcast, per_host, segment));
      for (const std::size_t between : {1U, 3U}) CHECK(all[between].algorithm == Algorithm::reduce_broadcast);
    }
  }
  CHECK(parts(Benchmark::osu_allreduce, 4, 8, 1 << 20)[2].algorithm == Algorithm::linear);  // 8 ranks, 64 KiB
  const auto between = [&](int hosts, std::int64_t size) {
    const auto all = parts(Benchmark::osu_allreduce, hosts, 4, size);
    return std::pair{all[1].parts.at(0), all[1].parts.at(1)};
  };
  CHECK(between(3, 8).first.algorithm == Algorithm::rabenseifner);  // two elements, and ranks of a power
  CHECK(between(3, 4).first.algorithm == Algorithm::binomial);
  CHECK(between(2, 65'535).first.algorithm == Algorithm::binomial);
  CHECK(between(2, 65'536).first.algorithm == Algorithm::chain);
  CHECK(between(2, 1 << 20).first.segment.value == 8'192);
  CHECK(between(4, 1 << 20).second.algorithm == Algorithm::linear);
  CHECK(between(5, 65'535).second.algorithm == Algorithm::binomial);
  CHECK(between(5, 65'536).second.algorithm == Algorithm::chain);
  CHECK(between(5, 1 << 20).second.segment.value == 8'192);
  // The first segment of a broadcast is tuned's, the others libnbc's; a reduce is libnbc's.
  const auto broadcast = parts(Benchmark::osu_bcast, 6, 4, 1 << 20);
  CHECK(broadcast[1].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_bcast, 6, 65'536));
  CHECK(broadcast[3].algorithm == Algorithm::chain);
  CHECK(parts(Benchmark::osu_reduce, 6, 4, 1 << 20)[1].algorithm == Algorithm::rabenseifner);
  // Unequal hosts: all-reduce alone.
  for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_bcast, Benchmark::osu_reduce,
                               Benchmark::osu_allgather, Benchmark::osu_gather, Benchmark::osu_scatter}) {
    const Collective asked{.benchmark = benchmark, .num_ranks = 5, .size = Bytes{64}, .hosts = {0, 0, 0, 1, 1}};
    CHECK((choose(Library::open_mpi_5_0, asked).algorithm == Algorithm::two_level) ==
          (benchmark == Benchmark::osu_allreduce));
  }
}

TEST_CASE("HAN's all-gather: tuned by a rank's block, by a host's between hosts, by all of it inside again") {
  for (const int hosts : {2, 6, 40}) {
    for (const int per_host : {2, 4, 48, 300}) {
      for (const std::int64_t size : {8, 1023, 1024, 65'536, 1 << 20}) {
        CAPTURE(hosts);
        CAPTURE(per_host);
        CAPTURE(size);
        const auto one = pick(Library::open_mpi_5_0, Benchmark::osu_allgather, hosts * per_host, size, per_host);
        CHECK(one.segment.value == 0);
        REQUIRE(one.parts.size() == 3);
        CHECK(one.parts[0].algorithm == algorithm(Library::open_mpi_4_1, Benchmark::osu_gather, per_host, size));
        CHECK(one.parts[1].algorithm ==
              algorithm(Library::open_mpi_4_1, Benchmark::osu_allgather, hosts, per_host * size));
        CHECK(one.parts[2].algorithm ==
              algorithm(Library::open_mpi_4_1, Benchmark::osu_bcast, per_host, hosts * per_host * size));
      }
    }
  }
}

TEST_CASE("a release names its library's rules, without one they are Open MPI 4.1's") {
  CHECK(library_of("open-mpi-ucx", "") == Library::open_mpi_4_1);
  CHECK(library_of("open-mpi-ucx", "4.0") == Library::open_mpi_4_0);
  CHECK(library_of("open-mpi-openib", "3.1") == Library::open_mpi_4_0);
  CHECK(library_of("tcp", "5.0") == Library::open_mpi_5_0);
  CHECK(library_of("open-mpi-ofi", "4.1") == Library::open_mpi_4_1);
  CHECK(library_of("cray-mpich", "8.1") == Library::cray_mpich);
  CHECK(library_of("mvapich2-gdr", "") == Library::mpich_3);
  CHECK(library_of("mpich", "3.3") == Library::mpich_3);
  CHECK(library_of("mpich", "3.4") == Library::mpich_4);
  CHECK(library_of("mpich", "") == Library::mpich_4);
  CHECK(library_of("intel-mpi", "2021.9") == Library::intel_mpi);
}
