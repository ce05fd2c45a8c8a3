// SPDX-License-Identifier: Apache-2.0
// What MPICH's family picks, at every size and number of ranks where it changes its mind, and inside hosts.
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

TEST_CASE("Cray MPICH gathers and broadcasts short blocks where MPICH would send them round a ring") {
  const auto at = [](int ranks, std::int64_t size) {
    return algorithm(Library::cray_mpich, Benchmark::osu_allgather, ranks, size);
  };
  CHECK(at(100, 819) == Algorithm::bruck);
  CHECK(at(100, 820) == Algorithm::gather_broadcast);
  CHECK(at(100, 8'192) == Algorithm::gather_broadcast);
  CHECK(at(100, 8'193) == Algorithm::ring);
  CHECK(at(128, 4'095) == Algorithm::recursive_doubling);
  CHECK(at(128, 4'096) == Algorithm::gather_broadcast);
  CHECK(at(16, 64 << 10) == Algorithm::ring);
  CHECK(algorithm(Library::mpich_3, Benchmark::osu_allgather, 100, 820) == Algorithm::ring);
  const auto one = pick(Library::cray_mpich, Benchmark::osu_allgather, 100, 1'000);
  REQUIRE(one.parts.size() == 2);
  CHECK(one.parts[0].algorithm == Algorithm::binomial);
  CHECK(one.parts[1].algorithm == Algorithm::knomial);
}

TEST_CASE("MPICH changes where its defaults say") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size) {
    return algorithm(Library::mpich_3, benchmark, ranks, size);
  };
  CHECK(at(Benchmark::osu_allreduce, 8, 2'048) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 8, 2'049) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_bcast, 8, 12'287) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_bcast, 8, 12'288) == Algorithm::scatter_doubling);
  CHECK(at(Benchmark::osu_bcast, 8, 512 << 10) == Algorithm::scatter_allgather);
  CHECK(at(Benchmark::osu_bcast, 7, 1 << 20) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_allgather, 8, 65'535) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allgather, 8, 65'536) == Algorithm::ring);  // 512 KiB in all
  CHECK(at(Benchmark::osu_allgather, 5, 16'383) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_allgather, 5, 16'384) == Algorithm::ring);  // 80 KiB in all
  CHECK(at(Benchmark::osu_alltoall, 8, 256) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_alltoall, 8, 257) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 7, 256) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 8, 32'768) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 8, 32'769) == Algorithm::pairwise);
  CHECK(at(Benchmark::osu_reduce, 8, 2'048) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_reduce, 8, 2'049) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, (512 << 10) - 1) == Algorithm::recursive_halving);
  CHECK(at(Benchmark::osu_reduce_scatter, 8, 512 << 10) == Algorithm::pairwise);
}

TEST_CASE("MPICH's broadcasts among a power of two treat hosts apart up to 512 KiB, others up to 12 KiB") {
  for (const auto library : {Library::mpich_3, Library::mpich_4}) {
    const auto at = [&](int ranks, std::int64_t size) {
      return pick(library, Benchmark::osu_bcast, ranks, size, 4).algorithm == Algorithm::two_level;
    };
    for (const int ranks : {8, 16, 64, 1024}) {
      CHECK(at(ranks, 12'288));
      CHECK(at(ranks, (512 << 10) - 1));
      CHECK_FALSE(at(ranks, 512 << 10));
    }
    for (const int ranks : {12, 24, 100}) {
      CHECK(at(ranks, 12'287));
      CHECK_FALSE(at(ranks, 12'288));
    }
  }
}

TEST_CASE("MPICH's two levels pick inside hosts what the ranks of one host pick by themselves") {
  for (const auto library : {Library::mpich_3, Library::mpich_4, Library::cray_mpich}) {
    for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_reduce, Benchmark::osu_bcast}) {
      for (const int per_host : {2, 3, 8, 12, 64}) {
        for (const std::int64_t size : {8, 2'048, 2'052, 12'284, 12'288, 16'384, 32'768, 262'144, 1 << 20, 8 << 20}) {
          const auto one = pick(library, benchmark, 16 * per_host, size, per_host);
          if (one.algorithm != Algorithm::two_level) continue;
          CAPTURE(per_host);
          CAPTURE(size);
          REQUIRE(one.parts.size() == 3);
          CHECK(one.parts[0].algorithm == pick(library, Benchmark::osu_reduce, per_host, size, per_host).algorithm);
          CHECK(one.parts[1].algorithm == pick(library, benchmark, 16, size, 1).algorithm);
          CHECK(one.parts[2].algorithm == pick(library, Benchmark::osu_bcast, per_host, size, per_host).algorithm);
        }
      }
    }
  }
  const auto large = pick(Library::mpich_3, Benchmark::osu_allreduce, 1024, 16'384, 64);
  CHECK(large.parts[0].algorithm == Algorithm::rabenseifner);
  CHECK(large.parts[2].algorithm == Algorithm::scatter_doubling);
  // Hosts with unequal ranks: by the most of them.
  const Collective asked{
      .benchmark = Benchmark::osu_allreduce, .num_ranks = 5, .size = Bytes{64 << 10}, .hosts = {0, 0, 0, 1, 1}};
  CHECK(choose(Library::mpich_3, asked).parts[0].algorithm == Algorithm::rabenseifner);
}

TEST_CASE("MPICH from 3.4 on sums hosts first up to 32 KiB and cuts broadcasts by each rank's part") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size, int hosts = 1) {
    return pick(Library::mpich_4, benchmark, ranks, size, hosts).algorithm;
  };
  CHECK(at(Benchmark::osu_allreduce, 8, 8) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 8, 64) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_allreduce, 16, 32'768, 4) == Algorithm::two_level);
  CHECK(at(Benchmark::osu_allreduce, 16, 32'769, 4) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_bcast, 8, 512 << 10) == Algorithm::scatter_doubling);
  CHECK(at(Benchmark::osu_bcast, 8, (512 << 10) + 8) == Algorithm::scatter_allgather);
  CHECK(at(Benchmark::osu_bcast, 9, 9 * 12'288) == Algorithm::binomial);
  CHECK(at(Benchmark::osu_bcast, 9, 9 * 12'288 + 9) == Algorithm::scatter_allgather);
  CHECK(at(Benchmark::osu_bcast, 16, (512 << 10) - 1, 4) == Algorithm::two_level);
  CHECK(at(Benchmark::osu_bcast, 16, 512 << 10, 4) == Algorithm::scatter_doubling);
}

TEST_CASE("Cray MPICH broadcasts down trees of radix 4 and sums hosts first up to 256 KiB") {
  const auto broadcast = pick(Library::cray_mpich, Benchmark::osu_bcast, 16, 1 << 20, 4);
  CHECK(broadcast.algorithm == Algorithm::two_level);
  CHECK(broadcast.parts[1].algorithm == Algorithm::knomial);
  CHECK(broadcast.parts[2].algorithm == Algorithm::knomial);
  CHECK(pick(Library::cray_mpich, Benchmark::osu_bcast, 16, 1 << 20, 16).algorithm == Algorithm::knomial);
  CHECK(pick(Library::cray_mpich, Benchmark::osu_allreduce, 16, 256 << 10, 4).algorithm == Algorithm::two_level);
  CHECK(pick(Library::cray_mpich, Benchmark::osu_allreduce, 16, (256 << 10) + 1, 4).algorithm ==
        Algorithm::rabenseifner);
}

TEST_CASE("Cray MPICH sums large vectors in blocks, one after the other") {
  constexpr std::int64_t block = 716'800;
  const auto bytes_of = [](const Collective& one) {
    double bytes = 0;
    for (const auto& round : make_schedule(one))
      for (const auto& step : round.steps) bytes += static_cast<double>(round.repeat) * step.bytes;
    return bytes;
  };
  const auto messages_of = [](const Collective& one) {
    std::int64_t messages = 0;
    for (const auto& round : make_schedule(one)) messages += round.repeat;
    return messages;
  };
  for (const std::int64_t rest : {0, 4, 400'000}) {
    CAPTURE(rest);
    const auto cut = pick(Library::cray_mpich, Benchmark::osu_allreduce, 8, 3 * block + rest, 1);
    auto whole = cut;
    whole.block = Bytes{};
    CHECK(bytes_of(cut) == test::approx(bytes_of(whole)));
    CHECK(messages_of(cut) == (rest > 0 ? 4 : 3) * messages_of(whole));
  }
  const auto small = pick(Library::cray_mpich, Benchmark::osu_allreduce, 8, block, 1);
  CHECK(messages_of(small) == 6);
  CHECK(pick(Library::mpich_4, Benchmark::osu_allreduce, 8, 3 * block, 1).block.value == 0);
  // Who forces an algorithm gets MPICH's own.
  const Collective asked{.benchmark = Benchmark::osu_allreduce, .num_ranks = 8, .size = Bytes{3 * block}};
  CHECK(choose(Library::cray_mpich, asked, Algorithm::recursive_doubling).block.value == 0);
}

TEST_CASE("Intel MPI's choices depend on ranks per host, and every one of them is an algorithm of its collective") {
  const auto at = [](Benchmark benchmark, int ranks, std::int64_t size, int hosts) {
    return pick(Library::intel_mpi, benchmark, ranks, size, ranks / hosts).algorithm;
  };
  // The table of 4.1.3: 16 ranks, 12 KiB, on 16, 4 and 1 hosts.
  CHECK(at(Benchmark::osu_allreduce, 16, 12 << 10, 16) == Algorithm::recursive_doubling);
  CHECK(at(Benchmark::osu_allreduce, 16, 12 << 10, 4) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_allreduce, 16, 128 << 10, 4) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allreduce, 16, 2 << 20, 1) == Algorithm::ring);
  CHECK(at(Benchmark::osu_allreduce, 16, 16 << 10, 2) == Algorithm::rabenseifner);
  CHECK(at(Benchmark::osu_allreduce, 8, 64 << 10, 1) != Algorithm::two_level);
  CHECK(at(Benchmark::osu_alltoall, 32, 256, 4) == Algorithm::bruck);
  CHECK(at(Benchmark::osu_alltoall, 32, 10 << 10, 4) == Algorithm::linear);
  CHECK(at(Benchmark::osu_alltoall, 32, 1 << 20, 4) == Algorithm::pairwise);
  CHECK(at(Benchmark::osu_barrier, 64, 0, 8) == Algorithm::two_level);
  for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_bcast, Benchmark::osu_reduce,
                               Benchmark::osu_reduce_scatter, Benchmark::osu_allgather, Benchmark::osu_alltoall,
                               Benchmark::osu_gather, Benchmark::osu_scatter, Benchmark::osu_barrier}) {
    const auto known = algorithms_for(benchmark);
    for (const int hosts : {1, 2, 3, 8, 32}) {
      for (const int per_host : {1, 2, 3, 4, 8, 16, 64}) {
        for (std::int64_t size = 1; size <= 16 << 20; size *= 3) {
          CAPTURE(hosts);
          CAPTURE(per_host);
          CAPTURE(size);
          CHECK(std::ranges::find(known, at(benchmark, hosts * per_host, size, hosts)) != known.end());
        }
      }
    }
  }
}
