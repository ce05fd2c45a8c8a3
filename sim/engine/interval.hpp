// SPDX-License-Identifier: Apache-2.0
// The 80 % band of a predicted time: every term varies with its parameter's interval, independently; what the model
// itself leaves out is one more relative error, `model.relative_error`. A system that no calibration knows adds the
// scatter between systems, `model.between_systems.*`: a factor 1 + b either way. Where a fit says what its logs were of
// (engine/fitted_kind.hpp), both give way to `model.fitted_error` for what is like these logs, and to it and
// `model.extrapolation_error` per doubling of ranks or hosts beyond them, a quarter of it per doubling of the size, but
// never to more than they are.
#pragma once

#include <vector>

#include "engine/fitted_kind.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

struct Interval {
  Duration low;
  Duration high;
};

/// Scatter between systems, relative to a time: a factor 1 + b either way.
struct SystemScatter {
  double exchange = 0;  ///< of what goes between devices: all of a benchmark
  double compute = 0;   ///< of what a training step computes

  [[nodiscard]] double all() const;
};

/// The middle 80 % of the times that equally likely draws of the routes give: `time` and, where another draw's bound
/// (`drawn`) differs from this one's (`bound`), as much more or less.
Interval spread_of_draws(Duration time, Duration bound, const std::vector<Duration>& drawn);
/// Two independent bands around one time: their widths add in squares.
Interval both(const Interval& one, const Interval& other, Duration time);

/// How far outside the fitted range a row is, of a fit that says no more than its range; nothing is outside when no
/// range is known.
struct Extrapolation {
  bool is_outside = false;
  double doublings = 0;  ///< of ranks or hosts, and a quarter of those of the size
};
/// `is_step`: a training step, whose size is no message's.
Extrapolation extrapolation(const Row& row, int num_ranks, int num_hosts, const ParameterSet& parameters,
                            bool is_step = false);

/// `between`: 0 where the system is known.
Interval interval(const Row& row, const ParameterSet& parameters, const Extrapolation& outside = {},
                  const SystemScatter& between = {});

/// Relative error of a forecast beside what its parameters' intervals leave: `narrow` of what is like the logs of a
/// fit, `wide` of what none of them showed; every part of the time that they did not show adds what its parameter may
/// be off, `per_doubling` what counts beyond them add, never beyond the larger of both.
double own_error(const Acquaintance& known, double wide, double narrow, double per_doubling);

/// The band of a forecast when a fit says what its logs were of.
Interval interval(const Row& row, const ParameterSet& parameters, const Acquaintance& known,
                  const SystemScatter& between);

}  // namespace fabricast::engine
