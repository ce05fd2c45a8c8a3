// SPDX-License-Identifier: Apache-2.0
// The fit of a dataset: maximum a posteriori values, their covariance, and the fit with some points left out.
//
//   r_i = ln(predicted_i / measured_i) / noise          measured points, robust loss
//   r_k = (x_k - x_k0) / prior deviation of x_k         parameters, x = ln(value)
#pragma once

#include <functional>
#include <optional>

#include "fit/dataset.hpp"

namespace fabricast::fit {

/// Place of one measured point.
struct PointRef {
  std::size_t experiment = 0;
  std::size_t row = 0;
};

struct FitResult {
  Values x;                                  ///< logarithms of all free parameters
  std::vector<double> deviation;             ///< of x; 0 for parameters that were not fitted
  std::vector<double> data_deviation_ratio;  ///< deviation / prior deviation; 1 = the data say nothing
  std::vector<int> entangled;                ///< parameter correlated above 0.95 with this one, or -1
  std::vector<bool> is_free;                 ///< was fitted
  Solution solution;                         ///< over the fitted parameters
  std::vector<std::size_t> free_indices;     ///< free parameter of each column of `solution`
  std::vector<PointRef> points;              ///< of each robust residual
};

/// Logarithms of all free parameters before the fit.
Values starts_of(const Dataset& data);
/// ln(predicted / measured) of every size of a log.
std::vector<double> residuals_of(Dataset& data, std::size_t experiment, const Values& x);

using UsesPoint = std::function<bool(const Experiment& experiment, std::size_t row)>;

class Fitter {
 public:
  /// `go_on` is asked before each step; once it says no, the best values so far are returned.
  Fitter(Dataset& data, const Calibration& calibration, std::function<bool()> go_on)
      : data_(data), calibration_(calibration), go_on_(std::move(go_on)) {}

  /// Fits the points that `uses` accepts, from the parameters' starts (several when the calibration asks for it).
  FitResult fit(const UsesPoint& uses);
  /// What all points say of the parameters at their starts, without a step.
  FitResult at_start();
  /// The same points as `fit` with every parameter at its start, none of them fitted.
  FitResult refused(const FitResult& fit, const UsesPoint& uses);
  /// Fits again from `near` with some of its points, few iterations, with the derivatives known there. No covariance.
  FitResult refit(const FitResult& near, const UsesPoint& uses, int max_iterations);
  /// x after minimising the linearised problem with the points weighted; empty when it cannot be solved.
  std::optional<Values> gauss_newton(const FitResult& at, const std::vector<double>& point_weights) const;
  /// Deviations of x from resampled points, one Gauss-Newton step each.
  std::vector<double> bootstrap(const FitResult& at, int samples) const;

 private:
  Problem problem(const Values& fixed, const std::vector<std::size_t>& free, const std::vector<PointRef>& points) const;
  FitResult solve(const Values& start, const std::vector<std::size_t>& free, const UsesPoint& uses, int iterations,
                  const FitResult* known = nullptr);
  static std::vector<Values> known_jacobian(const FitResult& known, const FitResult& wanted);
  void judge(FitResult& result) const;
  bool rules_out(const FitResult& at, std::size_t parameter, double value) const;

  Dataset& data_;
  const Calibration& calibration_;
  std::function<bool()> go_on_;
};

}  // namespace fabricast::fit
