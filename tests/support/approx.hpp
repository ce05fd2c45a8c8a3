// SPDX-License-Identifier: Apache-2.0
// Equal but for rounding, relative to the value alone. doctest's own Approx adds 1 to it before it takes the share, so
// times in seconds are equal to it whatever they are.
#pragma once

#include <doctest/doctest.h>

namespace fabricast::test {

inline doctest::Approx approx(double value) { return doctest::Approx(value).scale(1e-15); }

}  // namespace fabricast::test
