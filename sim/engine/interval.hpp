// SPDX-License-Identifier: Apache-2.0
// The 80 % band of a predicted time: every term varies with its parameter's interval, independently; what the model
// itself leaves out is one more relative error, `model.relative_error`.
#pragma once

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

struct Interval {
  Duration low;
  Duration high;
};

Interval interval(const Row& row, const ParameterSet& parameters);

}  // namespace fabricast::engine
