// SPDX-License-Identifier: Apache-2.0
// The 80 % band of a predicted time: every term varies with its parameter's interval, independently; what the model
// itself leaves out is one more relative error, `model.relative_error`. With fitted parameters a forecast outside the
// range they were fitted on (`model.fitted_*`) is an extrapolation and gets a wider band: `model.extrapolation_error`
// per doubling of ranks or hosts beyond the largest fitted, a quarter of it per doubling of the size. A system that no
// calibration knows adds the scatter between systems, `model.between_systems.*`: a factor 1 + b either way.
#pragma once

#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

struct Interval {
  Duration low;
  Duration high;
};

/// The middle 80 % of the times that equally likely draws of the routes give: `time` and, where another draw's bound
/// (`drawn`) differs from this one's (`bound`), as much more or less.
Interval spread_of_draws(Duration time, Duration bound, const std::vector<Duration>& drawn);
/// Two independent bands around one time: their widths add in squares.
Interval both(const Interval& one, const Interval& other, Duration time);

/// Half width of an 80 % interval, as a share of the value, of a parameter that states none.
double relative_half_width(Confidence confidence);

/// How far outside the fitted range a row is; nothing is outside when no range is known.
struct Extrapolation {
  bool is_outside = false;
  double doublings = 0;  ///< of ranks or hosts, and a quarter of those of the size
};
/// `is_step`: a training step, whose size is no message's.
Extrapolation extrapolation(const Row& row, int num_ranks, int num_hosts, const ParameterSet& parameters,
                            bool is_step = false);

/// `between`: scatter between systems (fabricast/scatter.hpp), 0 where the system is known.
Interval interval(const Row& row, const ParameterSet& parameters, const Extrapolation& outside = {},
                  double between = 0);

}  // namespace fabricast::engine
