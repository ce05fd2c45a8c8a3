// SPDX-License-Identifier: Apache-2.0
// What a last-level cache keeps of a collective's buffers.
#include "models/mpi/cache.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

#include "tests/support/approx.hpp"

using fabricast::models::mpi::share_beyond_cache;

TEST_CASE("buffers that fit the last-level cache cost no memory traffic") {
  CHECK(share_beyond_cache(0, 27.5e6) == 0);
  CHECK(share_beyond_cache(27.5e6, 27.5e6) == 0);
}

TEST_CASE("without a cache every access goes to memory") { CHECK(share_beyond_cache(1e6, 0) == 1); }

TEST_CASE("the share beyond the cache starts at nothing and nears everything") {
  CHECK(share_beyond_cache(1.001, 1) < 0.003);
  CHECK(share_beyond_cache(10, 1) > 0.9999);
  double before = 0;
  for (double times = 1.1; times < 8; times += 0.1) {
    CAPTURE(times);
    const double share = share_beyond_cache(times, 1);
    CHECK(share > before);
    CHECK(share < 1);
    before = share;
  }
}

TEST_CASE("what stays in the cache is what random replacement leaves after a sweep") {
  for (const double times : {1.05, 1.25, 2.0, 2.5}) {
    CAPTURE(times);
    const double miss = share_beyond_cache(times, 1);
    CHECK(1 - miss == fabricast::test::approx(std::exp(-miss * times)));
  }
  CHECK(share_beyond_cache(2, 1) == fabricast::test::approx(0.797).epsilon(0.001));
}
