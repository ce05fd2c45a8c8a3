// SPDX-License-Identifier: Apache-2.0
// MPI schedules move the right data: simulated symbolically, block by block, for every algorithm and odd rank counts.
#include "models/mpi/schedule.hpp"

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace fabricast;
using namespace fabricast::models::mpi;

namespace {

const std::vector<int> k_counts{2, 3, 4, 5, 7, 8, 12, 16, 33};

double bytes_sent_by(const std::vector<ScheduleRound>& rounds, int rank) {
  double sum = 0;
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) sum += step.from == rank ? step.bytes * static_cast<double>(round.repeat) : 0;
  }
  return sum;
}

}  // namespace

TEST_CASE("a ring all-reduce sends 2(n-1)/n of the message from every rank") {
  for (const int n : k_counts) {
    CAPTURE(n);
    const auto rounds = make_schedule(Benchmark::osu_allreduce, CollectiveAlgorithm::ring, n, Bytes{1 << 20}, 0);
    for (int r = 0; r < n; ++r) CHECK(bytes_sent_by(rounds, r) == doctest::Approx(2.0 * (n - 1) / n * (1 << 20)));
  }
}

TEST_CASE("Rabenseifner sends as little as the ring when ranks are a power of two") {
  for (const int n : {2, 4, 8, 64}) {
    CAPTURE(n);
    const auto rounds =
        make_schedule(Benchmark::osu_allreduce, CollectiveAlgorithm::rabenseifner, n, Bytes{1 << 20}, 0);
    for (int r = 0; r < n; ++r) CHECK(bytes_sent_by(rounds, r) == doctest::Approx(2.0 * (n - 1) / n * (1 << 20)));
  }
}

TEST_CASE("after recursive doubling and Rabenseifner every rank has heard of every rank") {
  for (const int n : k_counts) {
    for (const auto algorithm : {CollectiveAlgorithm::recursive_doubling, CollectiveAlgorithm::rabenseifner}) {
      CAPTURE(n);
      std::vector<std::vector<bool>> heard(static_cast<std::size_t>(n),
                                           std::vector<bool>(static_cast<std::size_t>(n), false));
      for (int r = 0; r < n; ++r) heard[static_cast<std::size_t>(r)][static_cast<std::size_t>(r)] = true;
      for (const auto& round : make_schedule(Benchmark::osu_allreduce, algorithm, n, Bytes{1 << 20}, 0)) {
        auto next = heard;
        for (const auto& step : round.steps) {
          for (int k = 0; k < n; ++k) {
            if (heard[static_cast<std::size_t>(step.from)][static_cast<std::size_t>(k)])
              next[static_cast<std::size_t>(step.to)][static_cast<std::size_t>(k)] = true;
          }
        }
        heard = next;
      }
      for (const auto& row : heard) {
        for (const bool known : row) CHECK(known);
      }
    }
  }
}

TEST_CASE("a binomial broadcast reaches everybody once from any root") {
  for (const int n : k_counts) {
    for (const int root : {0, n - 1}) {
      CAPTURE(n);
      std::map<int, int> received;
      std::vector<bool> has(static_cast<std::size_t>(n), false);
      has[static_cast<std::size_t>(root)] = true;
      for (const auto& round : make_schedule(Benchmark::osu_bcast, CollectiveAlgorithm::binomial, n, Bytes{64}, root)) {
        auto next = has;
        for (const auto& step : round.steps) {
          CHECK(has[static_cast<std::size_t>(step.from)]);
          ++received[step.to];
          next[static_cast<std::size_t>(step.to)] = true;
        }
        has = next;
      }
      CHECK(received.count(root) == 0);
      CHECK(received.size() == static_cast<std::size_t>(n - 1));
      for (const auto& [rank, times] : received) CHECK(times == 1);
    }
  }
}

TEST_CASE("scatter and all-gather broadcast moves every byte to every rank") {
  for (const int n : k_counts) {
    CAPTURE(n);
    double received_by_last = 0;
    for (const auto& round :
         make_schedule(Benchmark::osu_bcast, CollectiveAlgorithm::scatter_allgather, n, Bytes{n * 1000}, 0)) {
      for (const auto& step : round.steps)
        received_by_last += step.to == n - 1 ? step.bytes * static_cast<double>(round.repeat) : 0;
    }
    CHECK(received_by_last >= doctest::Approx(n * 1000.0));
  }
}

TEST_CASE("all-gathers send n-1 blocks, and Bruck and pairwise all-to-all reach every peer") {
  for (const int n : k_counts) {
    CAPTURE(n);
    for (const auto algorithm :
         {CollectiveAlgorithm::ring, CollectiveAlgorithm::bruck, CollectiveAlgorithm::recursive_doubling}) {
      const auto rounds = make_schedule(Benchmark::osu_allgather, algorithm, n, Bytes{100}, 0);
      CHECK(bytes_sent_by(rounds, 0) == doctest::Approx(100.0 * (n - 1)));
    }
    std::map<int, double> peers;
    for (const auto& round : make_schedule(Benchmark::osu_alltoall, CollectiveAlgorithm::pairwise, n, Bytes{100}, 0)) {
      for (const auto& step : round.steps) {
        if (step.from == 0) peers[step.to] += step.bytes;
      }
    }
    CHECK(peers.size() == static_cast<std::size_t>(n - 1));
    // Bruck: distance d carries the blocks whose index has bit d, so all distances together reach every offset.
    const auto bruck = make_schedule(Benchmark::osu_alltoall, CollectiveAlgorithm::bruck, n, Bytes{100}, 0);
    double blocks = 0;
    for (int b = 1; b < n; ++b) blocks += __builtin_popcount(static_cast<unsigned>(b));
    CHECK(bytes_sent_by(bruck, 0) == doctest::Approx(100.0 * blocks));
  }
}

TEST_CASE("Open MPI changes all-reduce at 10,000 B and MPICH at 2,048 B") {
  CHECK(choose_algorithm(Benchmark::osu_allreduce, 16, Bytes{9999}, true) == CollectiveAlgorithm::recursive_doubling);
  CHECK(choose_algorithm(Benchmark::osu_allreduce, 16, Bytes{10000}, true) == CollectiveAlgorithm::ring);
  CHECK(choose_algorithm(Benchmark::osu_allreduce, 16, Bytes{2048}, false) == CollectiveAlgorithm::recursive_doubling);
  CHECK(choose_algorithm(Benchmark::osu_allreduce, 16, Bytes{2049}, false) == CollectiveAlgorithm::rabenseifner);
}

TEST_CASE("each decision rule switches at its size and number of ranks, and not one byte or rank beside it") {
  using Algorithm = CollectiveAlgorithm;
  const auto pick = [](Benchmark benchmark, int ranks, std::int64_t size, bool is_open_mpi) {
    return choose_algorithm(benchmark, ranks, Bytes{size}, is_open_mpi);
  };
  // Open MPI 4.0, coll_tuned_decision_fixed.c.
  CHECK(pick(Benchmark::osu_allreduce, 8, 9'999, true) == Algorithm::recursive_doubling);
  CHECK(pick(Benchmark::osu_allreduce, 8, 10'000, true) == Algorithm::ring);
  CHECK(pick(Benchmark::osu_allgather, 8, 6'249, true) == Algorithm::recursive_doubling);  // 49,992 B in all
  CHECK(pick(Benchmark::osu_allgather, 8, 6'250, true) == Algorithm::ring);
  CHECK(pick(Benchmark::osu_allgather, 7, 1'000, true) == Algorithm::bruck);
  CHECK(pick(Benchmark::osu_bcast, 8, 370'727, true) == Algorithm::binomial);
  CHECK(pick(Benchmark::osu_bcast, 8, 370'728, true) == Algorithm::scatter_allgather);
  CHECK(pick(Benchmark::osu_alltoall, 13, 199, true) == Algorithm::bruck);
  CHECK(pick(Benchmark::osu_alltoall, 12, 199, true) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 13, 200, true) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 13, 2'999, true) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 13, 3'000, true) == Algorithm::pairwise);
  // MPICH 3.
  CHECK(pick(Benchmark::osu_allreduce, 8, 2'048, false) == Algorithm::recursive_doubling);
  CHECK(pick(Benchmark::osu_allreduce, 8, 2'049, false) == Algorithm::rabenseifner);
  CHECK(pick(Benchmark::osu_bcast, 8, 12'287, false) == Algorithm::binomial);
  CHECK(pick(Benchmark::osu_bcast, 8, 12'288, false) == Algorithm::scatter_allgather);
  CHECK(pick(Benchmark::osu_bcast, 7, 1 << 20, false) == Algorithm::binomial);
  CHECK(pick(Benchmark::osu_allgather, 8, 65'535, false) == Algorithm::recursive_doubling);
  CHECK(pick(Benchmark::osu_allgather, 8, 65'536, false) == Algorithm::ring);  // 512 KiB in all
  CHECK(pick(Benchmark::osu_allgather, 5, 16'383, false) == Algorithm::bruck);
  CHECK(pick(Benchmark::osu_allgather, 5, 16'384, false) == Algorithm::ring);  // 80 KiB in all
  CHECK(pick(Benchmark::osu_alltoall, 8, 256, false) == Algorithm::bruck);
  CHECK(pick(Benchmark::osu_alltoall, 8, 257, false) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 7, 256, false) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 8, 32'768, false) == Algorithm::linear);
  CHECK(pick(Benchmark::osu_alltoall, 8, 32'769, false) == Algorithm::pairwise);
}
