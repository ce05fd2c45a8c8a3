// SPDX-License-Identifier: Apache-2.0
// The 80 % band of the ratio of two forecasts; widths are logarithms. What both times follow from is off alike: a
// parameter of one value and interval in both moves the ratio by the difference of what it moves the two. What a band
// has beside its parameters (the model, systems, drawn routes) has the correlation
//     s^2 / (s^2 + (1 - s)^2),
// s the share of both times that is made of the same: equal parameters, transfers that one device holds. It follows
// where the error of that share and the error of the rest are independent. docs/models/intervals.md.
#pragma once

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"

namespace fabricast::report {

/// One side of a comparison; both outlive the call.
struct Forecast {
  const Row& row;
  const ParameterSet& parameters;
};

struct RatioBand {
  double low = 1, high = 1;
};

/// Time of `one` over that of `other`: equal forecasts have no width, and none has more than independent ones.
RatioBand ratio_band(const Forecast& one, const Forecast& other);

}  // namespace fabricast::report
