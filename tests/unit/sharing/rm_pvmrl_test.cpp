// SPDX-License-Identifier: Apache-2.0
// The examples of NVIDIA's guide, and the ends of the ranges.
#include <doctest/doctest.h>

#include "fabricast/models/virtualization.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models;

TEST_CASE("RmPVMRL 0x00 is best effort, 0x01 equal share, 0x11 fixed share, with slices of 2 or 1 ms") {
  CHECK(scheduler_from_rm_pvmrl(0x00, 4)->policy == SharePolicy::best_effort);
  const auto equal = scheduler_from_rm_pvmrl(0x01, 8);
  REQUIRE(equal);
  CHECK(equal->policy == SharePolicy::equal_share);
  CHECK(equal->slice == 2_ms);
  CHECK(equal->is_strict);
  CHECK(equal->averaging == 33);
  const auto fixed = scheduler_from_rm_pvmrl(0x11, 9);
  REQUIRE(fixed);
  CHECK(fixed->policy == SharePolicy::fixed_share);
  CHECK(fixed->slice == 1_ms);
  CHECK(fixed->max_clients == 9);
}

TEST_CASE("RmPVMRL 0x00TT00xx sets a slice of TT ms without strict round robin, at most 30 ms") {
  const auto three = scheduler_from_rm_pvmrl(0x00030003, 4);
  REQUIRE(three);
  CHECK(three->policy == SharePolicy::equal_share);
  CHECK(three->slice == 3_ms);
  CHECK_FALSE(three->is_strict);
  CHECK(scheduler_from_rm_pvmrl(0x00180011, 4)->slice == 24_ms);
  CHECK(scheduler_from_rm_pvmrl(0x00180011, 4)->policy == SharePolicy::fixed_share);
  CHECK(scheduler_from_rm_pvmrl(0x00ff0001, 4)->slice == 30_ms);
}

TEST_CASE("RmPVMRL 0xAAFFF0xx sets frequency and averaging of the strict round robin") {
  const auto fastest = scheduler_from_rm_pvmrl(0x3c3c0001, 4);
  REQUIRE(fastest);
  CHECK(fastest->averaging == 60);
  CHECK(fastest->slice == from_seconds(1.0 / 960));
  CHECK(fastest->is_strict);
  CHECK(scheduler_from_rm_pvmrl(0x0103f011, 4)->slice == from_seconds(1.0 / 63));
  CHECK(scheduler_from_rm_pvmrl(0x01001011, 4)->slice == from_seconds(1.0 / 63));
  CHECK(scheduler_from_rm_pvmrl(0xff100001, 4)->averaging == 60);
}

TEST_CASE("a value of RmPVMRL that names no scheduler is refused with the codes that do") {
  for (const std::uint64_t value : {0x02ULL, 0x21ULL, 0x100000001ULL}) {
    CAPTURE(value);
    const auto refused = scheduler_from_rm_pvmrl(value, 4);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().front().message.find("names no scheduler") != std::string::npos);
    CHECK_FALSE(refused.error().front().notes.empty());
  }
}
