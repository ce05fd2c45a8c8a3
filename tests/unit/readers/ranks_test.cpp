// SPDX-License-Identifier: Apache-2.0
// How many ranks a table of nccl-tests had, by its two printed bandwidths alone: the interval holds the number, and is
// as narrow as two decimals allow.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "readers/readers.hpp"

using namespace fabricast;

namespace {

double printed(double gb_per_s) { return std::round(gb_per_s * 100) / 100 * 1e9; }

MeasuredLog one_row(Benchmark benchmark, int ranks, double algbw_gb_per_s) {
  MeasuredLog table;
  table.format = LogFormat::nccl_tests;
  table.benchmark = benchmark;
  const double n = ranks;
  const double factor = (benchmark == Benchmark::all_reduce_perf ? 2 : 1) * (n - 1) / n;
  MeasuredRow row;
  row.printed_algbw = Bandwidth{printed(algbw_gb_per_s)};
  row.printed_busbw = Bandwidth{printed(algbw_gb_per_s * factor)};
  table.rows.push_back(row);
  return table;
}

}  // namespace

TEST_CASE("the interval of ranks always holds the true number, whatever was rounded") {
  for (const auto benchmark : {Benchmark::all_reduce_perf, Benchmark::all_gather_perf, Benchmark::alltoall_perf}) {
    for (int ranks = 2; ranks <= 300; ranks += ranks < 20 ? 1 : 17) {
      for (double rate = 1.003; rate < 400; rate *= 1.37) {
        CAPTURE(ranks);
        CAPTURE(rate);
        const auto interval = readers::ranks_of_printed_bandwidths(one_row(benchmark, ranks, rate));
        CHECK(interval.low <= ranks);
        CHECK(interval.high >= ranks);
        if (interval.only()) CHECK(*interval.only() == ranks);
      }
    }
  }
}

TEST_CASE("it is as narrow as half a unit of the last printed decimal makes it") {
  // n^2 x slack on both sides: below one rank on either side from 2.1 GB/s on with 16 ranks, from 8.2 GB/s on with 32.
  const auto only = [](int ranks, double rate) {
    return readers::ranks_of_printed_bandwidths(one_row(Benchmark::all_reduce_perf, ranks, rate)).only();
  };
  CHECK(only(16, 2.4) == 16);
  CHECK(only(32, 11.0) == 32);
  const auto wide = readers::ranks_of_printed_bandwidths(one_row(Benchmark::all_reduce_perf, 64, 10.0));
  CHECK(wide.high - wide.low > 4);
  CHECK(wide.high - wide.low < 8);
  CHECK_FALSE(wide.only());
  // A broadcast's bus bandwidth says nothing, nor do rows that print few digits.
  CHECK_FALSE(readers::ranks_of_printed_bandwidths(one_row(Benchmark::broadcast_perf, 16, 100)).only());
  CHECK_FALSE(readers::ranks_of_printed_bandwidths(one_row(Benchmark::all_reduce_perf, 4, 0.9)).only());
}
