// SPDX-License-Identifier: Apache-2.0
// The 80 % band, set on points that a fit did not see, and judged on points that did not set it.
//
//   half width^2 = (from the parameters' intervals)^2 + model error^2 + (extrapolation error x doublings)^2
//
// relative to the prediction. The model error is the least with which 80 % of left-out points lie inside; the
// extrapolation error the least with which 80 % of points beyond the counts of their fit do.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "fabricast/calibration.hpp"

namespace fabricast::fit {

struct Experiment;

/// A point predicted by a fit that did not see it.
struct Forecast {
  std::size_t experiment = 0;
  CalibrationPoint point;
  double below = 0, above = 0;  ///< half widths that the parameters give already, relative to the prediction
  double doublings = 0;         ///< of ranks or hosts beyond the counts of its fit
  /// What no fit would give beside the parameters' intervals: counts beyond those of the fit add no more than to it.
  double wide_below = std::numeric_limits<double>::infinity(), wide_above = wide_below;
  bool is_foreign = false;  ///< on several hosts, by a fit that saw one host only: the band is that of no fit
};

struct Band {
  double model_error = 0;
  double extrapolation_error = 0;
};

using Chosen = std::function<bool(const Forecast&)>;

/// Least model error with which 80 % of the chosen forecasts lie inside the band; at least `floor`.
double model_error_of(const std::vector<Forecast>& forecasts, double floor, const Chosen& chosen = {});

/// Least extrapolation error per doubling with which 80 % of the chosen forecasts lie inside; -1 without any.
double extrapolation_error_of(const std::vector<Forecast>& forecasts, double model_error, const Chosen& chosen = {});

/// The point with low and high times of the band.
CalibrationPoint with_band(const Forecast& forecast, const Band& band);

/// Relative error per doubling of ranks or hosts that is taken when the logs have one count only.
double usual_extrapolation(const std::vector<Experiment>& experiments);

}  // namespace fabricast::fit
