// SPDX-License-Identifier: Apache-2.0
// What benchmarks print of calls whose ranks enter them apart.
#include "models/mpi/rank_clocks.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;
using namespace fabricast::models::schedules;

namespace {

using Algorithm = CollectiveAlgorithm;

/// Rounds whose messages all take as long.
std::vector<ClockRound> clock_rounds(const Rounds& rounds, const MessageTimes& one) {
  std::vector<ClockRound> out;
  for (const auto& round : rounds) out.push_back({&round, std::vector<MessageTimes>(round.steps.size(), one)});
  return out;
}

double share_of(Benchmark benchmark, Algorithm algorithm, int n, Algorithm between, const MessageTimes& one,
                Statistic statistic) {
  const auto call = make_schedule({.benchmark = benchmark, .algorithm = algorithm, .num_ranks = n, .size = Bytes{8}});
  const auto barrier = make_schedule({.benchmark = Benchmark::osu_barrier, .algorithm = between, .num_ranks = n});
  return printed_share(clock_rounds(call, one), clock_rounds(barrier, one), n, statistic);
}

}  // namespace

TEST_CASE(
    "ranks that leave a broadcast early leave the barrier late, and the next broadcast's receivers wait for them") {
  const MessageTimes one{.sender = 0.25, .receiver = 1, .handling = 0, .is_eager = true};
  const auto of_two = [&](Statistic statistic) {
    return share_of(Benchmark::osu_bcast, Algorithm::binomial, 2, Algorithm::recursive_doubling, one, statistic);
  };
  // The receiver's barrier message reaches the root at 2; its own way out of the barrier is free at 1 + 0.25.
  CHECK(of_two(Statistic::max) == test::approx(2 - 0.25));
  CHECK(of_two(Statistic::mean) == test::approx((0.25 + 1.75) / 2));
  // A root that releases the others leaves first: they wait for less than the message takes.
  const auto released = share_of(Benchmark::osu_bcast, Algorithm::linear, 2, Algorithm::linear, one, Statistic::max);
  CHECK(released < 1);
}

TEST_CASE(
    "what calls print does not depend on the unit of time, and is that of ranks that enter together where they leave "
    "so") {
  for (const int n : {2, 4, 8, 32}) {
    CAPTURE(n);
    const MessageTimes one{.sender = 0.3, .receiver = 1, .handling = 0.1, .is_eager = true};
    const MessageTimes longer{.sender = 0.3e-6, .receiver = 1e-6, .handling = 0.1e-6, .is_eager = true};
    for (const auto statistic : {Statistic::mean, Statistic::max}) {
      const auto together = share_of(Benchmark::osu_allreduce, Algorithm::recursive_doubling, n,
                                     Algorithm::recursive_doubling, one, statistic);
      CHECK(together == test::approx(1));
      for (const auto between : {Algorithm::recursive_doubling, Algorithm::linear, Algorithm::binomial}) {
        const auto share = share_of(Benchmark::osu_reduce, Algorithm::binomial, n, between, one, statistic);
        CHECK(share ==
              test::approx(share_of(Benchmark::osu_reduce, Algorithm::binomial, n, between, longer, statistic)));
        CHECK(share > 0);
        CHECK(share < 3);
      }
    }
  }
  CHECK(printed_share({}, {}, 4, Statistic::mean) == 1);
}
