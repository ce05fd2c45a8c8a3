// SPDX-License-Identifier: Apache-2.0
// How far a time moves within the 80 % interval of the parameter it follows from: of a time from l to h around v by
// 1 - l / v and h / v - 1; of a rate by 1 - v / h and v / l - 1 (docs/models/intervals.md).
#pragma once

#include "fabricast/parameters.hpp"

namespace fabricast {

/// Half width of an 80 % interval, as a share of the value, of a parameter that states none.
double relative_half_width(Confidence confidence);

/// By how much of itself a term's time is less, and more, at the ends of its parameter's interval.
struct TimeChange {
  double less = 0, more = 0;
};
/// `parameter` has a value that is not 0.
TimeChange change_of_time(const Parameter& parameter);

}  // namespace fabricast
