// SPDX-License-Identifier: Apache-2.0
#include "fit/least_squares.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"

namespace fabricast::fit {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int k_most_updates = 2;
constexpr int k_most_stalled = 6;
constexpr int k_reweightings = 30;
constexpr double k_lambda_near = 1e-3;  ///< first damping near a minimum [Madsen et al. 2004, section 3.2]

struct Normal {
  MatrixXd matrix;
  VectorXd gradient;
};

double rho(double r, bool is_robust) { return is_robust ? 2 * (std::sqrt(1 + r * r) - 1) : r * r; }
/// Derivative of rho by r^2: the weight of the residual in the next step.
double weight(double r, bool is_robust) { return is_robust ? 1 / std::sqrt(1 + r * r) : 1; }

double clamp_to(const Problem& problem, std::size_t i, double value) {
  if (!problem.low.empty()) value = std::max(value, problem.low[i]);
  if (!problem.high.empty()) value = std::min(value, problem.high[i]);
  return value;
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options) : problem_(problem), options_(options) {}

  Solution run(Values start) {
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = clamp_to(problem_, i, start[i]);
    out_.x = std::move(start);
    out_.residuals = evaluate(out_.x);
    out_.cost = cost(out_.residuals);
    scale_ = VectorXd::Zero(size());
    if (problem_.first_jacobian.empty()) {
      linearise();
    } else {
      out_.jacobian = problem_.first_jacobian;
      num_updates_ = 1;
      set_normal();
    }
    iterate();
    if (num_updates_ > 0 && options_.with_covariance && may_go_on()) linearise();
    finish();
    return std::move(out_);
  }

 private:
  [[nodiscard]] Index size() const { return static_cast<Index>(out_.x.size()); }

  Values evaluate(const Values& x) {
    ++out_.evaluations;
    return problem_.residuals(x);
  }

  [[nodiscard]] bool is_robust(std::size_t i) const {
    return problem_.loss == Loss::soft_l1 && i < problem_.num_robust;
  }

  [[nodiscard]] double cost(const Values& residuals) const { return cost_of(problem_, residuals); }

  bool may_go_on() {
    out_.is_stopped = out_.is_stopped || (options_.go_on && !options_.go_on());
    return !out_.is_stopped;
  }

  void iterate() {
    double lambda = problem_.first_jacobian.empty() ? 1 : k_lambda_near;
    double growth = 2;
    int stalled = 0;          ///< trials in a row that gain nothing
    if (size() == 0) return;  // nothing to move
    for (; out_.iterations < options_.max_iterations && stalled < k_most_stalled && may_go_on(); ++out_.iterations) {
      const auto trial = step(lambda);
      const auto residuals = evaluate(trial);
      const double trial_cost = cost(residuals);
      const double moved = largest_move(trial);
      const double gain = out_.cost - trial_cost;
      const double least = options_.tolerance * (out_.cost + 1e-300);
      stalled = gain > least && moved >= options_.tolerance ? 0 : stalled + 1;
      if (std::isfinite(trial_cost) && gain >= 0) {
        accept(trial, residuals, trial_cost);
        lambda = std::max(lambda / 5, 1e-15);
        growth = 2;
        // No gain by updated derivatives: not yet the minimum.
        if (stalled == k_most_stalled / 2 && num_updates_ > 0 && options_.with_covariance) linearise();
      } else if (num_updates_ > 0 && (options_.with_covariance || -gain > least)) {
        linearise();  // before the step is blamed, the derivatives are
      } else {
        if (moved < options_.tolerance) break;
        lambda *= growth;
        growth = std::min(growth * 2, 64.0);
        if (lambda > 1e20) break;
      }
      if (stalled > 0 && std::abs(gain) <= least && !options_.with_covariance) break;
    }
  }

  void accept(const Values& x, const Values& residuals, double cost) {
    const auto before = std::exchange(out_.x, x);
    const auto residuals_before = std::exchange(out_.residuals, residuals);
    out_.cost = cost;
    if (problem_.has_updates && (num_updates_ < k_most_updates || !options_.with_covariance)) {
      update(before, residuals_before);
    } else {
      linearise();
    }
  }

  /// Broyden: the smallest change of the derivatives that explains the last step; a residual that does not depend on a
  /// parameter keeps not to (Schubert's sparse form).
  void update(const Values& x_before, const Values& residuals_before) {
    const auto n = out_.x.size();
    ++num_updates_;
    for (std::size_t k = 0; k < out_.residuals.size(); ++k) {
      double unexplained = out_.residuals[k] - residuals_before[k];
      double squared = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (out_.jacobian[i][k] == 0) continue;
        const double move = out_.x[i] - x_before[i];
        unexplained -= out_.jacobian[i][k] * move;
        squared += move * move;
      }
      if (unexplained == 0 || squared == 0) continue;
      for (std::size_t i = 0; i < n; ++i) {
        if (out_.jacobian[i][k] != 0) out_.jacobian[i][k] += unexplained * (out_.x[i] - x_before[i]) / squared;
      }
    }
    set_normal();
  }

  void linearise() {
    auto derivatives = jacobian(problem_, out_.x, out_.residuals, options_.go_on);
    if (derivatives.size() < out_.x.size()) {
      out_.is_stopped = true;
      if (out_.jacobian.empty()) out_.jacobian.assign(out_.x.size(), Values(out_.residuals.size(), 0));
      if (normal_.matrix.size() == 0) normal_ = {MatrixXd::Zero(size(), size()), VectorXd::Zero(size())};
      return;
    }
    out_.jacobian = std::move(derivatives);
    num_updates_ = 0;
    out_.evaluations += static_cast<int>(out_.x.size()) * (problem_.is_central ? 2 : 1);
    set_normal();
  }

  void set_normal() {
    normal_ = normal_at(out_.residuals);
    for (Index i = 0; i < size(); ++i) scale_(i) = std::max(scale_(i), normal_.matrix(i, i));
  }

  /// J'WJ and J'W r, with the weights that residuals of `weighed` have.
  [[nodiscard]] Normal normal_at(const Values& weighed) const {
    const auto n = size();
    Normal out{MatrixXd::Zero(n, n), VectorXd::Zero(n)};
    for (std::size_t k = 0; k < out_.residuals.size(); ++k) {
      const double w = weight(weighed[k], is_robust(k));
      for (Index i = 0; i < n; ++i) {
        const double a = out_.jacobian[static_cast<std::size_t>(i)][k];
        if (a == 0) continue;
        out.gradient(i) += w * a * out_.residuals[k];
        for (Index j = 0; j <= i; ++j) out.matrix(i, j) += w * a * out_.jacobian[static_cast<std::size_t>(j)][k];
      }
    }
    out.matrix = MatrixXd(out.matrix.selfadjointView<Eigen::Lower>());
    return out;
  }

  /// Parameters at a bound that the gradient pushes outwards stay there.
  [[nodiscard]] bool is_blocked(Index i) const {
    const auto p = static_cast<std::size_t>(i);
    if (!problem_.low.empty() && out_.x[p] <= problem_.low[p] && normal_.gradient(i) > 0) return true;
    return !problem_.high.empty() && out_.x[p] >= problem_.high[p] && normal_.gradient(i) < 0;
  }

  /// Of the linearised problem with its own robust loss: weights follow the residuals that the step is to have, which
  /// costs no evaluation.
  [[nodiscard]] Values step(double lambda) const {
    auto move = damped_move(normal_, lambda);
    for (int again = 0; problem_.loss == Loss::soft_l1 && again < k_reweightings; ++again) {
      auto linear = out_.residuals;
      for (std::size_t i = 0; i < out_.x.size(); ++i) {
        const double by = move(static_cast<Index>(i));
        for (std::size_t k = 0; k < linear.size(); ++k) linear[k] += out_.jacobian[i][k] * by;
      }
      const auto before = std::exchange(move, damped_move(normal_at(linear), lambda));
      if ((move - before).cwiseAbs().maxCoeff() < options_.tolerance) break;
    }
    Values x = out_.x;
    for (Index i = 0; i < size(); ++i) {
      const auto p = static_cast<std::size_t>(i);
      x[p] = clamp_to(problem_, p, x[p] + (std::isfinite(move(i)) ? move(i) : 0));
    }
    return x;
  }

  [[nodiscard]] VectorXd damped_move(const Normal& normal, double lambda) const {
    const auto n = size();
    MatrixXd a = normal.matrix;
    VectorXd b = -normal.gradient;
    for (Index i = 0; i < n; ++i) {
      if (is_blocked(i) || scale_(i) == 0) {
        a.row(i).setZero();
        a.col(i).setZero();
        b(i) = 0;
        a(i, i) = 1;
      } else {
        a(i, i) += lambda * scale_(i);
      }
    }
    // Scaled to a unit diagonal: the columns of an ill-conditioned problem differ by many orders of magnitude.
    const VectorXd d = a.diagonal().cwiseSqrt().cwiseInverse();
    const MatrixXd scaled = d.asDiagonal() * a * d.asDiagonal();
    return d.cwiseProduct(scaled.ldlt().solve(d.cwiseProduct(b)));
  }

  [[nodiscard]] double largest_move(const Values& trial) const {
    double largest = 0;
    for (std::size_t i = 0; i < trial.size(); ++i)
      largest = std::max(largest, std::abs(trial[i] - out_.x[i]) / (std::abs(out_.x[i]) + 1e-30));
    return largest;
  }

  void finish() {
    const auto n = size();
    if (n == 0) return;  // nothing is free: no covariance
    MatrixXd a = normal_.matrix;
    for (Index i = 0; i < n; ++i) {
      if (a(i, i) == 0) a(i, i) = 1e-300;
    }
    const VectorXd d = a.diagonal().cwiseSqrt().cwiseInverse();
    const MatrixXd scaled = d.asDiagonal() * a * d.asDiagonal();
    const MatrixXd inverse = scaled.completeOrthogonalDecomposition().pseudoInverse();
    const MatrixXd covariance = d.asDiagonal() * inverse * d.asDiagonal();
    out_.covariance.assign(out_.x.size(), Values(out_.x.size()));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j)
        out_.covariance[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = covariance(i, j);
    }
  }

  const Problem& problem_;
  SolveOptions options_;
  Solution out_;
  Normal normal_;
  VectorXd scale_;
  int num_updates_ = 0;  ///< of the derivatives since they were computed in full
};

}  // namespace

double cost_of(const Problem& problem, const Values& residuals) {
  double sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i)
    sum += rho(residuals[i], problem.loss == Loss::soft_l1 && i < problem.num_robust);
  return sum;
}

std::vector<Values> jacobian(const Problem& problem, const Values& x, const Values& residuals_at_x,
                             const std::function<bool()>& go_on) {
  std::vector<Values> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (go_on && !go_on()) return out;
    const double step = std::max(std::abs(x[i]) * problem.relative_step, problem.absolute_step);
    auto up = x;
    auto down = x;
    up[i] = clamp_to(problem, i, x[i] + step);
    if (problem.is_central || up[i] <= x[i]) down[i] = clamp_to(problem, i, x[i] - step);
    const auto above = up[i] > x[i] ? problem.residuals(up) : residuals_at_x;
    const auto below = down[i] < x[i] ? problem.residuals(down) : residuals_at_x;
    FABRICAST_ASSERT(above.size() == below.size(), "residuals change their number");
    out.emplace_back(above.size(), 0);
    const double width = up[i] - down[i];
    for (std::size_t k = 0; k < above.size() && width > 0; ++k) {
      const double slope = (above[k] - below[k]) / width;
      out[i][k] = std::isfinite(slope) ? slope : 0;  // beside the step nothing could be evaluated: no direction
    }
  }
  return out;
}

Solution minimise(const Problem& problem, Values start, const SolveOptions& options) {
  return Solver(problem, options).run(std::move(start));
}

}  // namespace fabricast::fit
