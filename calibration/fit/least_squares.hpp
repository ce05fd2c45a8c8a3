// SPDX-License-Identifier: Apache-2.0
// Nonlinear least squares: Levenberg-Marquardt with Marquardt's scaling, box bounds and a robust loss.
//
//   minimise sum over i of w_i rho(r_i(x)^2),  low <= x <= high
//   (J'WJ + lambda D) step = -J'W r,  D = diag of the largest J'WJ seen; lambda by Nielsen's gain rule
//
// rho(s) = s (squared) or 2 (sqrt(1 + s) - 1) (soft_l1, applied to residuals in units of their noise). W of a step are
// the weights at the residuals that the linear model has behind it: found by weighting again, without an evaluation
// (weights of the residuals before it make steps that end a fixed share short of the minimum). Sources: Madsen,
// Nielsen, Tingleff, Methods for Non-Linear Least Squares Problems, 2004; Triggs et al., Bundle Adjustment, 2000;
// secant version: Madsen et al., section 3.5; Broyden 1965.
#pragma once

#include <functional>
#include <vector>

#include "fabricast/calibration.hpp"

namespace fabricast::fit {

using Values = std::vector<double>;

struct Problem {
  std::function<Values(const Values& x)> residuals;
  Values low, high;            ///< empty = unbounded
  std::size_t num_robust = 0;  ///< the first so many residuals get the robust loss, the rest (priors) are squared
  Loss loss = Loss::squared;
  double relative_step = 6e-6;  ///< of the difference quotients
  double absolute_step = 1e-12;
  bool is_central = true;  ///< two evaluations per derivative
  /// Derivatives are dear: between full ones they are updated by Broyden's rank-one formula from the steps made.
  bool has_updates = false;
  std::vector<Values> first_jacobian;  ///< at the start, when known, which is near the minimum; empty = computed
};

struct SolveOptions {
  int max_iterations = 400;
  double tolerance = 1e-14;  ///< relative change of the cost and of x
  /// Derivatives at the end in full, and the covariance from them. Without, the first step that gains less than the
  /// tolerance ends it, and derivatives are computed anew only where a step by updated ones fails.
  bool with_covariance = true;
  std::function<bool()> go_on;  ///< asked before each step and each derivative; may be empty
};

struct Solution {
  Values x;
  Values residuals;
  double cost = 0;                 ///< sum of rho
  std::vector<Values> jacobian;    ///< jacobian[parameter][residual] at x
  std::vector<Values> covariance;  ///< inverse of J'WJ, not scaled
  int iterations = 0;
  int evaluations = 0;
  bool is_stopped = false;  ///< go_on said no: x is the best so far, the covariance may be missing
};

/// Sum of rho over the residuals.
double cost_of(const Problem& problem, const Values& residuals);

/// Derivatives at `x` by difference quotients that stay inside the bounds; fewer columns once `go_on` says no.
std::vector<Values> jacobian(const Problem& problem, const Values& x, const Values& residuals_at_x,
                             const std::function<bool()>& go_on = {});

Solution minimise(const Problem& problem, Values start, const SolveOptions& options = {});

}  // namespace fabricast::fit
