// SPDX-License-Identifier: Apache-2.0
// Whole numbers at the ends of their range, against 128 bits; rounding of seconds and bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fabricast/units.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t k_most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k_least = std::numeric_limits<std::int64_t>::min();

std::int64_t expected(Wide exact) {
  return exact >= k_least && exact < k_most ? static_cast<std::int64_t>(exact) : k_most;
}

/// Of any magnitude and sign, the ends among them.
std::int64_t any(test::Random& random) {
  switch (random.next(8)) {
    case 0:
      return k_least;
    case 1:
      return k_most - 1 - static_cast<std::int64_t>(random.next(3));
    case 2:
      return static_cast<std::int64_t>(random.next(3)) - 1;
    default:
      break;
  }
  const auto magnitude = static_cast<std::int64_t>(std::exp2(static_cast<double>(random.next(6300)) / 100));
  return random.next(2) == 0 ? magnitude : -magnitude;
}

}  // namespace

TEST_CASE("sums, differences, products and quotients are exact or past the range, as 128 bits say") {
  test::Random random(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto a = any(random);
    const auto b = any(random);
    CAPTURE(a);
    CAPTURE(b);
    REQUIRE((Duration{a} + Duration{b}).ps == expected(Wide{a} + b));
    REQUIRE((Duration{a} - Duration{b}).ps == expected(Wide{a} - b));
    REQUIRE((Duration{a} * b).ps == expected(Wide{a} * b));
    REQUIRE((b * Duration{a}).ps == expected(Wide{a} * b));
    REQUIRE((Duration{a} / b).ps == (b == 0 ? k_most : expected(Wide{a} / b)));
    REQUIRE((Bytes{a} + Bytes{b}).value == expected(Wide{a} + b));
    REQUIRE((Bytes{a} - Bytes{b}).value == expected(Wide{a} - b));
    REQUIRE((Bytes{a} * b).value == expected(Wide{a} * b));
    REQUIRE((b * Bytes{a}).value == expected(Wide{a} * b));
    auto sum = Duration{a};
    sum += Duration{b};
    REQUIRE(sum == Duration{a} + Duration{b});
    auto bytes = Bytes{a};
    bytes += Bytes{b};
    REQUIRE(bytes == Bytes{a} + Bytes{b});
  }
}

TEST_CASE("what is past the range stays there, also by way of seconds") {
  const Duration past{range::k_past_range};
  CHECK(past.is_past_range());
  CHECK_FALSE(Duration{k_most - 1}.is_past_range());
  for (const auto& one : {past + Duration{-5}, Duration{-5} + past, past - past, Duration{0} - past, past * 0, past / 7,
                          from_seconds(past.seconds() / 1e9), from_seconds(past.us() - past.us()),
                          from_seconds_up(past.seconds() * 1e-6)})
    CHECK(one.is_past_range());
  CHECK(std::isinf(past.seconds()));
  CHECK(std::isinf(past.us()));
  CHECK(Duration{k_most - 1}.seconds() == test::approx(9.223372e6));
  CHECK(Bytes{k_most}.is_past_range());
  CHECK(average_rate(1_GiB, past).bytes_per_s == 0);
  CHECK(transfer_time(Bytes{k_most}, 100_GBps).is_past_range());
  CHECK(std::max(past, 1_ms) == past);
}

TEST_CASE("seconds become the nearest picosecond, or the next one up but for a double's last bits") {
  CHECK(from_seconds(1.4e-12).ps == 1);
  CHECK(from_seconds(1.6e-12).ps == 2);
  CHECK(from_seconds(-1.6e-12).ps == -2);
  CHECK(from_seconds(9.2e6).ps == 9'200'000'000'000'000'000);
  CHECK(from_seconds(9.3e6).is_past_range());
  CHECK(from_seconds(-9.3e6).is_past_range());
  CHECK(from_seconds(std::numeric_limits<double>::infinity()).is_past_range());
  CHECK(from_seconds(std::nan("")).is_past_range());
  CHECK(from_seconds_up(0).ps == 0);
  CHECK(from_seconds_up(1.2e-12).ps == 2);
  CHECK(from_seconds_up(1e-12 * (1 + 1e-10)).ps == 1);
  CHECK(from_seconds_up(1e-6 * (1 + 1e-10)).ps == 1'000'000);
  CHECK(from_seconds_up(1e-6 * (1 + 1e-8)).ps == 1'000'001);
  CHECK(from_seconds_up(1e300).is_past_range());
}

TEST_CASE("bytes become the nearest whole one") {
  CHECK(to_bytes(1000.9999999999999).value == 1001);
  CHECK(to_bytes(0.4).value == 0);
  CHECK(to_bytes(9.2e18).value == 9'200'000'000'000'000'000);
  CHECK(to_bytes(9.3e18).is_past_range());
  CHECK(range::whole(3.9) == 3);
  CHECK(range::whole(-3.9) == -3);
  CHECK(range::is_past(range::whole(0x1p63)));
  CHECK(range::is_past(range::whole(-0x1p63)));
}
