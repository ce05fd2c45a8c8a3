// SPDX-License-Identifier: Apache-2.0
// What a collective allocates, sweeps and copies on a rank.
#include "models/mpi/buffers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;

namespace {

constexpr double k_mapped = 32.0 * 1024 * 1024;

Buffers of(Benchmark benchmark, CollectiveAlgorithm algorithm, int n, std::int64_t size,
           Library library = Library::open_mpi_4_1) {
  Collective one;
  one.benchmark = benchmark;
  one.algorithm = algorithm;
  one.num_ranks = n;
  one.size = Bytes{size};
  return buffers_of(library, one, Statistic::max);
}

}  // namespace

TEST_CASE("temporaries below the C library's largest threshold stay on the heap, from it on they are new") {
  const auto fresh = [](std::int64_t size) {
    return fresh_bytes(of(Benchmark::osu_reduce_scatter, CollectiveAlgorithm::butterfly, 8, size), k_mapped);
  };
  CHECK(fresh(4 << 20) == 0);
  CHECK(fresh((32 << 20) - 1) == 0);
  CHECK(fresh(32 << 20) == 2.0 * (32 << 20));
  CHECK(fresh(std::int64_t{1} << 30) == 2.0 * (1 << 30));
}

TEST_CASE("rings of all-reduce need two blocks, those of reduce-scatter the whole vector, too") {
  const std::int64_t size = 512 << 20;
  const auto all_reduce = of(Benchmark::osu_allreduce, CollectiveAlgorithm::ring, 64, size);
  const auto reduce_scatter = of(Benchmark::osu_reduce_scatter, CollectiveAlgorithm::ring, 64, size);
  CHECK(fresh_bytes(all_reduce, k_mapped) == 0);
  CHECK(fresh_bytes(reduce_scatter, k_mapped) == static_cast<double>(size));
  // A ring of two has one message under way.
  CHECK(of(Benchmark::osu_allreduce, CollectiveAlgorithm::ring, 2, size).temporaries.size() == 1);
  // Blocks are large, too, where few ranks share the vector.
  CHECK(fresh_bytes(of(Benchmark::osu_allreduce, CollectiveAlgorithm::ring, 4, size), k_mapped) == size / 2.0);
}

TEST_CASE(
    "a reduce waits for new vectors as its tree receives into them: the root's first and a rank's fourth are none") {
  using enum CollectiveAlgorithm;
  const std::int64_t size = 64 << 20;
  const auto vectors = [](CollectiveAlgorithm algorithm, int n, std::int64_t segment = 0, int root = 0) {
    const Collective one{.benchmark = Benchmark::osu_reduce,
                         .algorithm = algorithm,
                         .num_ranks = n,
                         .size = Bytes{size},
                         .root = root,
                         .segment = Bytes{segment}};
    return fresh_bytes(buffers_of(Library::open_mpi_4_1, one, Statistic::max), k_mapped) / static_cast<double>(size);
  };
  // Binomial: the last child of a rank is as long as the rest of it, each rank waits for three at most.
  CHECK(vectors(binomial, 2) == 0);
  CHECK(vectors(binomial, 3) == 1);
  CHECK(vectors(binomial, 4) == 2);
  for (const int n : {8, 64, 1024}) CHECK(vectors(binomial, n) == 3);
  // Both children of a rank come together, generation after generation.
  for (int depth = 1; depth < 8; ++depth) CHECK(vectors(binary, (2 << depth) - 1) == 2 * depth - 1);
  for (const int n : {2, 3, 100}) CHECK(vectors(chain, n) == n - 2);
  CHECK(vectors(linear, 2) == 0);
  for (const int n : {3, 100}) CHECK(vectors(linear, n) == 1);
  for (const auto algorithm : {binomial, binary, chain, linear}) {
    CHECK(vectors(algorithm, 37, 0, 5) == vectors(algorithm, 37));
    CHECK(vectors(algorithm, 37, 64 << 10) == 1);
    CHECK(fresh_bytes(of(Benchmark::osu_reduce, algorithm, 37, 16 << 20), k_mapped) == 0);
    CHECK(fresh_bytes(of(Benchmark::osu_reduce, algorithm, 37, size, Library::ucc), k_mapped) == 0);
  }
  CHECK(vectors(rabenseifner, 37) == 2);
}

TEST_CASE("programs of Cray's compilers keep every temporary on the heap, those of MPICH's other libraries do not") {
  using enum CollectiveAlgorithm;
  const std::int64_t size = std::int64_t{1} << 30;
  for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_reduce, Benchmark::osu_reduce_scatter,
                               Benchmark::osu_allgather, Benchmark::osu_gather, Benchmark::osu_scatter}) {
    double others = 0;
    for (const auto algorithm : algorithms_for(benchmark)) {
      CAPTURE(to_string(algorithm));
      const auto of_cray = of(benchmark, algorithm, 16, size, Library::cray_mpich);
      CHECK(fresh_bytes(of_cray, k_mapped) == 0);
      others += fresh_bytes(of(benchmark, algorithm, 16, size, Library::mpich_4), k_mapped);
    }
    CHECK(others > 0);
  }
}

TEST_CASE(
    "Bruck's all-to-all makes a data type for every round, with a run for every two distances, and copies blocks "
    "thrice") {
  for (const auto library : {Library::open_mpi_4_0, Library::open_mpi_5_0, Library::mpich_4}) {
    const auto sixteen = of(Benchmark::osu_alltoall, CollectiveAlgorithm::bruck, 16, 100, library);
    CHECK(sixteen.data_types == 4);
    CHECK(sixteen.data_type_runs == 8 + 4 + 2 + 1 + 16);
    CHECK(sixteen.copied == 2 * 1600 + 4 * 3 * 800);
    CHECK(sixteen.temporaries == std::vector<double>{1600});
    CHECK(of(Benchmark::osu_alltoall, CollectiveAlgorithm::bruck, 17, 100, library).data_types == 5);
    CHECK(of(Benchmark::osu_alltoall, CollectiveAlgorithm::linear, 16, 100, library).data_types == 0);
  }
  CHECK(of(Benchmark::osu_alltoall, CollectiveAlgorithm::bruck, 16, 100, Library::ucc).data_types == 0);
}

TEST_CASE("no call allocates more than two vectors and two blocks, and none of an all-gather is fresh") {
  using enum CollectiveAlgorithm;
  for (std::uint64_t seed = 0; seed < test::draws(300); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const int n = static_cast<int>(2 + random.next(1000));
    const auto size = static_cast<std::int64_t>(1 + random.next(std::uint64_t{1} << 32));
    const double block = static_cast<double>(size) / n;
    for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_reduce_scatter}) {
      for (const auto algorithm : algorithms_for(benchmark)) {
        const auto one = of(benchmark, algorithm, n, size);
        const double temporaries = working_set(one) - one.own;
        CHECK(temporaries <= 2 * static_cast<double>(size) + 2 * block);
        CHECK(fresh_bytes(one, k_mapped) <= temporaries * (1 + 1e-12));
        CHECK(one.copied <= 2 * static_cast<double>(size));
        const auto mpich = of(benchmark, algorithm, n, size, Library::mpich_4);
        CHECK(working_set(mpich) - mpich.own <= 2 * static_cast<double>(size) * (1 + 1e-12));
      }
    }
    const auto gather = of(Benchmark::osu_allgather, ring, n, size);
    CHECK(gather.own == test::approx(static_cast<double>(size) * (n + 1)));
    CHECK(gather.temporaries.empty());
  }
}

TEST_CASE("MPICH allocates what it receives to combine, and for a reduce a receive buffer where there is no root") {
  using enum CollectiveAlgorithm;
  const auto in_vectors = [](Benchmark benchmark, CollectiveAlgorithm algorithm, Library library = Library::mpich_4) {
    const auto one = of(benchmark, algorithm, 4, 1000, library);
    return std::pair{(working_set(one) - one.own) / 1000, one.copied / 1000};
  };
  for (const auto library : {Library::mpich_3, Library::mpich_4, Library::cray_mpich, Library::intel_mpi}) {
    CHECK(in_vectors(Benchmark::osu_allreduce, recursive_doubling, library) == std::pair{1.0, 1.0});
    CHECK(in_vectors(Benchmark::osu_allreduce, rabenseifner, library) == std::pair{1.0, 1.0});
    CHECK(in_vectors(Benchmark::osu_reduce, binomial, library) == std::pair{2.0, 1.0});
    CHECK(in_vectors(Benchmark::osu_reduce_scatter, recursive_halving, library) == std::pair{2.0, 1.25});
    CHECK(in_vectors(Benchmark::osu_reduce_scatter, pairwise, library) == std::pair{0.25, 0.25});
    CHECK(in_vectors(Benchmark::osu_allgather, bruck, library) == std::pair{4.0, 4.0});
    CHECK(in_vectors(Benchmark::osu_allgather, recursive_doubling, library) == std::pair{0.0, 0.0});
    for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter})
      CHECK(in_vectors(benchmark, binomial, library) == std::pair{2.0, 1.0});
    CHECK(in_vectors(Benchmark::osu_bcast, binomial, library) == std::pair{0.0, 0.0});
    CHECK(in_vectors(Benchmark::osu_alltoall, pairwise, library) == std::pair{0.0, 0.0});
  }
}

TEST_CASE("trees of gathers and scatters keep half of all blocks, a root that is not the first rank turns all round") {
  using enum CollectiveAlgorithm;
  for (const auto library : {Library::open_mpi_4_0, Library::open_mpi_5_0, Library::mpich_4}) {
    for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter}) {
      if (library == Library::mpich_4 && benchmark == Benchmark::osu_gather) continue;
      Collective one{.benchmark = benchmark, .algorithm = binomial, .num_ranks = 16, .size = Bytes{1 << 20}};
      const auto first = buffers_of(library, one, Statistic::max);
      CHECK(first.temporaries == std::vector<double>{8.0 * (1 << 20)});
      CHECK(first.copied == 1 << 20);
      one.root = 5;
      const auto turned = buffers_of(library, one, Statistic::max);
      CHECK(turned.temporaries == std::vector<double>{16.0 * (1 << 20)});
      CHECK(turned.copied == 16.0 * (1 << 20));
      one.algorithm = linear;
      CHECK(buffers_of(library, one, Statistic::max).temporaries.empty());
    }
  }
  // Open MPI turns the result of Bruck's all-gather round: of n ranks n - 1 have something to turn.
  const auto bruck_of = of(Benchmark::osu_allgather, bruck, 5, 1000);
  CHECK(bruck_of.temporaries == std::vector<double>{2000});
  CHECK(bruck_of.copied == 6000);
}

TEST_CASE("the mean rank of a gather waits for what its children's children write, found by adding up the tree") {
  for (const int ranks : {4, 8, 64, 256}) {
    CAPTURE(ranks);
    const Collective one{.benchmark = Benchmark::osu_gather,
                         .algorithm = CollectiveAlgorithm::binomial,
                         .num_ranks = ranks,
                         .size = Bytes{1000}};
    // A rank writes the blocks of its tree, after its largest child has; the root's are the caller's.
    std::vector<double> waits(static_cast<std::size_t>(ranks), 0);
    double sum = 0;
    for (int rank = ranks - 1; rank >= 0; --rank) {
      const int blocks = rank == 0 ? ranks : rank & -rank;
      auto& own = waits[static_cast<std::size_t>(rank)];
      own =
          (rank > 0 && blocks > 1 ? blocks : 0) + (blocks > 1 ? waits[static_cast<std::size_t>(rank + blocks / 2)] : 0);
      sum += rank == 0 ? 0 : own;
    }
    const auto mean = buffers_of(Library::open_mpi_4_1, one, Statistic::mean);
    const auto slowest = buffers_of(Library::open_mpi_4_1, one, Statistic::max);
    CHECK(slowest.written_share == 1);
    CHECK(fresh_bytes(slowest, 0) == ranks / 2 * 1000.0);
    CHECK(fresh_bytes(mean, 0) < fresh_bytes(slowest, 0) * (1 + 1e-9));
    // Two blocks a rank less or more: leaves of two ranks, and the root.
    CHECK(std::abs(fresh_bytes(mean, 0) / 1000 - sum / ranks) < 1.01);
    auto scatter = one;
    scatter.benchmark = Benchmark::osu_scatter;
    CHECK(buffers_of(Library::open_mpi_4_1, scatter, Statistic::mean).written_share == 1);
  }
}

TEST_CASE("in place a ring copies nothing, doubling still keeps a copy to send from") {
  for (const auto algorithm :
       {CollectiveAlgorithm::ring, CollectiveAlgorithm::rabenseifner, CollectiveAlgorithm::recursive_doubling}) {
    Collective one;
    one.algorithm = algorithm;
    one.num_ranks = 8;
    one.size = Bytes{64 << 20};
    const auto apart = buffers_of(Library::open_mpi_4_0, one, Statistic::max);
    one.is_in_place = true;
    const auto in_place = buffers_of(Library::open_mpi_4_0, one, Statistic::max);
    CHECK(in_place.own == apart.own / 2);
    CHECK(in_place.temporaries == apart.temporaries);
    CHECK((in_place.copied == apart.copied) == (algorithm == CollectiveAlgorithm::recursive_doubling));
  }
}

TEST_CASE("reductions of device buffers copy three of them, in place two, and of a reduce two on the root alone") {
  using enum Benchmark;
  const auto copies = [](Benchmark benchmark, int n, bool is_in_place, Statistic statistic = Statistic::mean) {
    return device_copies_of({.benchmark = benchmark, .num_ranks = n, .size = Bytes{1000}, .is_in_place = is_in_place},
                            statistic);
  };
  for (const int n : {2, 16, 1000}) {
    CAPTURE(n);
    CHECK(copies(osu_allreduce, n, false).copies == 3);
    CHECK(copies(osu_allreduce, n, false).bytes == 3000);
    CHECK(copies(osu_allreduce, n, true).copies == 2);
    CHECK(copies(osu_allreduce, n, true).bytes == 2000);
    CHECK(copies(osu_reduce, n, false, Statistic::max).copies == 3);
    CHECK(n * copies(osu_reduce, n, false).copies == test::approx(n + 2));
    CHECK(n * copies(osu_reduce, n, false).bytes == test::approx(1000 * (n + 2)));
    CHECK(copies(osu_reduce_scatter, n, false).copies == 2);
    CHECK(copies(osu_reduce_scatter, n, false).bytes == test::approx(1000 + 1000.0 / n));
  }
}

TEST_CASE(
    "a rank of MPICH's gather allocates its own subtree less itself, found by walking the tree, whoever is root") {
  for (std::uint64_t seed = 0; seed < test::draws(200); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const int ranks = static_cast<int>(2 + random.next(300));
    const auto size = static_cast<std::int64_t>(1 + random.next(std::uint64_t{1} << random.pick<int>({10, 16, 24})));
    const auto library = random.pick<Library>({Library::mpich_3, Library::mpich_4, Library::cray_mpich});
    const double mapped = library == Library::cray_mpich ? std::numeric_limits<double>::infinity() : k_mapped;
    CAPTURE(ranks);
    CAPTURE(size);
    // A rank waits for its own pages and, before, for those of its last child; ranks count from the root.
    const auto buffer = [&](int rank) {
      const int blocks = rank == 0 ? 1 : std::min(rank & -rank, ranks - rank);
      return static_cast<double>(size) * (blocks > 1 && size < 1024 ? blocks : blocks - 1);
    };
    double largest = 0;
    for (int rank = 1; rank < ranks; ++rank) largest = std::max(largest, buffer(rank));
    Collective one{.benchmark = Benchmark::osu_gather,
                   .algorithm = CollectiveAlgorithm::binomial,
                   .num_ranks = ranks,
                   .size = Bytes{size},
                   .root = static_cast<int>(random.next(static_cast<std::uint64_t>(ranks)))};
    const auto slowest = buffers_of(library, one, Statistic::max);
    CHECK(working_set(slowest) - slowest.own == largest);
    CHECK(fresh_bytes(slowest, mapped) == (largest >= mapped ? largest : 0));
    CHECK(slowest.copied == (size < 1024 ? static_cast<double>(size) : 0));
    const auto mean = buffers_of(library, one, Statistic::mean);
    if (largest < mapped) CHECK(fresh_bytes(mean, mapped) == 0);
    if ((ranks & (ranks - 1)) != 0) continue;
    std::vector<double> waits(static_cast<std::size_t>(ranks), 0);
    double sum = 0;
    for (int rank = ranks - 1; rank >= 0; --rank) {
      const int blocks = rank == 0 ? ranks : rank & -rank;
      const double own = buffer(rank);
      auto& all = waits[static_cast<std::size_t>(rank)];
      all = (own >= mapped ? own : 0) + (blocks > 1 ? waits[static_cast<std::size_t>(rank + blocks / 2)] : 0);
      sum += all;
    }
    CHECK(fresh_bytes(mean, mapped) == test::approx(sum / ranks));
  }
  // 64 ranks, 1 MiB: 31 MiB at most, less than the C library maps anew.
  const Collective of_64{.benchmark = Benchmark::osu_gather,
                         .algorithm = CollectiveAlgorithm::binomial,
                         .num_ranks = 64,
                         .size = Bytes{1 << 20}};
  CHECK(fresh_bytes(buffers_of(Library::mpich_4, of_64, Statistic::mean), k_mapped) == 0);
  CHECK(fresh_bytes(buffers_of(Library::open_mpi_4_1, of_64, Statistic::mean), k_mapped) > 0);
}
