// SPDX-License-Identifier: Apache-2.0
#include "fit/fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

namespace fabricast::fit {

namespace {

using Eigen::Index;

constexpr double k_undetermined = 0.8;  ///< deviation after / before the fit above which the data say too little
constexpr double k_entangled = 0.95;    ///< correlation
constexpr double k_clearly_worse = 6;   ///< of the cost, in squared deviations
constexpr int k_iterations = 60;
constexpr double k_tolerance = 1e-4;  ///< of cost and of x; a cost of some hundred moves by less than 0.1 deviations

std::vector<std::size_t> used_parameters(const Dataset& data, const UsesPoint& uses) {
  std::vector<bool> is_used(data.parameters().size(), false);
  for (const auto& experiment : data.experiments()) {
    bool takes_part = false;
    for (std::size_t row = 0; row < experiment.sizes.size(); ++row) takes_part = takes_part || uses(experiment, row);
    if (!takes_part) continue;
    for (const int i : experiment.uses) is_used[static_cast<std::size_t>(i)] = true;
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    if (is_used[i]) out.push_back(i);
  }
  return out;
}

}  // namespace

Values starts_of(const Dataset& data) {
  Values x;
  for (const auto& free : data.parameters()) x.push_back(std::log(free.parameter.value));
  return x;
}

std::vector<double> residuals_of(Dataset& data, std::size_t experiment, const Values& x) {
  const auto& measured = data.experiments()[experiment].seconds;
  std::vector<double> out;
  const auto& predicted = data.predict(experiment, x);
  for (std::size_t i = 0; i < measured.size(); ++i) out.push_back(std::log(predicted[i] / measured[i]));
  return out;
}

Problem Fitter::problem(const Values& fixed, const std::vector<std::size_t>& free,
                        const std::vector<PointRef>& points) const {
  Problem problem;
  problem.num_robust = points.size();
  problem.loss = calibration_.loss;
  // Times are whole picoseconds: a step of 0.01 % of a microsecond is 100 of them.
  problem.relative_step = 0;
  problem.absolute_step = 2e-3;
  problem.is_central = false;
  for (const auto i : free) {
    problem.low.push_back(std::log(data_.parameters()[i].low));
    problem.high.push_back(std::log(data_.parameters()[i].high));
  }
  problem.residuals = [this, fixed, free, points](const Values& values) {
    auto x = fixed;
    for (std::size_t k = 0; k < free.size(); ++k) x[free[k]] = values[k];
    Values out;
    out.reserve(points.size() + free.size());
    for (const auto& point : points) {
      const auto& experiment = data_.experiments()[point.experiment];
      const double predicted = data_.predict(point.experiment, x)[point.row];
      out.push_back(std::log(predicted / experiment.seconds[point.row]) / calibration_.noise *
                    std::sqrt(experiment.spec.weight));
    }
    for (std::size_t k = 0; k < free.size(); ++k) {
      const auto& parameter = data_.parameters()[free[k]];
      const double start = std::log(parameter.parameter.value);
      out.push_back(parameter.prior_deviation > 0 ? (values[k] - start) / parameter.prior_deviation : 0);
    }
    return out;
  };
  return problem;
}

/// The derivatives of another fit for the points and parameters of this one; empty when it lacks some.
std::vector<Values> Fitter::known_jacobian(const FitResult& known, const FitResult& wanted) {
  std::vector<Values> out;
  std::vector<std::size_t> rows;
  std::size_t next = 0;
  for (const auto& point : wanted.points) {
    while (next < known.points.size() &&
           (known.points[next].experiment != point.experiment || known.points[next].row != point.row))
      ++next;
    if (next == known.points.size()) return {};
    rows.push_back(next++);
  }
  for (std::size_t k = 0; k < wanted.free_indices.size(); ++k) {
    const auto& all = known.free_indices;
    const auto at = std::find(all.begin(), all.end(), wanted.free_indices[k]);
    if (at == all.end()) return {};
    const auto column = static_cast<std::size_t>(at - all.begin());
    auto& values = out.emplace_back();
    for (const auto row : rows) values.push_back(known.solution.jacobian[column][row]);
    for (std::size_t prior = 0; prior < wanted.free_indices.size(); ++prior)
      values.push_back(prior == k ? known.solution.jacobian[column][known.points.size() + column] : 0);
  }
  return out;
}

FitResult Fitter::solve(const Values& start, const std::vector<std::size_t>& free, const UsesPoint& uses,
                        int iterations, const FitResult* known) {
  FitResult result;
  result.x = start;
  result.free_indices = free;
  result.is_free.assign(start.size(), false);
  for (const auto i : free) result.is_free[i] = true;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    for (std::size_t row = 0; row < data_.experiments()[e].sizes.size(); ++row) {
      if (uses(data_.experiments()[e], row)) result.points.push_back({e, row});
    }
  }
  Values values;
  for (const auto i : free) values.push_back(start[i]);
  auto problem = this->problem(start, free, result.points);
  problem.has_updates = true;
  if (known != nullptr) problem.first_jacobian = known_jacobian(*known, result);
  const bool is_refit = !problem.first_jacobian.empty();
  result.solution = minimise(problem, values, {iterations, k_tolerance, !is_refit, go_on_});
  for (std::size_t k = 0; k < free.size(); ++k) result.x[free[k]] = result.solution.x[k];
  judge(result);
  return result;
}

/// Deviations from the covariance, widened when the residuals are larger than the noise; correlations.
void Fitter::judge(FitResult& result) const {
  const auto& solution = result.solution;
  double squares = 0;
  for (std::size_t k = 0; k < result.points.size(); ++k)
    squares += 2 * (std::sqrt(1 + std::pow(solution.residuals[k], 2)) - 1);
  const double freedom =
      std::max(1.0, static_cast<double>(result.points.size()) - static_cast<double>(solution.x.size()));
  const double scale = std::sqrt(std::max(1.0, squares / freedom));
  result.deviation.assign(result.x.size(), 0);
  result.data_deviation_ratio.assign(result.x.size(), 1);
  result.entangled.assign(result.x.size(), -1);
  for (std::size_t k = 0; k < solution.x.size(); ++k) {
    const auto i = result.free_indices[k];
    const double prior = data_.parameters()[i].prior_deviation;
    const double own = std::sqrt(std::max(0.0, solution.covariance[k][k]));
    result.data_deviation_ratio[i] = prior > 0 ? own / prior : own;
    result.deviation[i] = prior > 0 ? std::min(prior, own * scale) : own * scale;
    double strongest = k_entangled;
    for (std::size_t j = 0; j < solution.x.size(); ++j) {
      const double both = std::sqrt(solution.covariance[k][k] * solution.covariance[j][j]);
      if (j == k || both <= 0 || std::abs(solution.covariance[k][j]) / both <= strongest) continue;
      strongest = std::abs(solution.covariance[k][j]) / both;
      result.entangled[i] = static_cast<int>(result.free_indices[j]);
    }
  }
}

/// True when putting the parameter back to `value` fits clearly worse. A limit that another one hides has no derivative
/// at the solution, but the data speak against a lower one all the same.
bool Fitter::rules_out(const FitResult& at, std::size_t parameter, double value) const {
  auto values = at.solution.x;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (at.free_indices[k] == parameter) values[k] = value;
  }
  const auto moved = problem(at.x, at.free_indices, at.points);
  return cost_of(moved, moved.residuals(values)) > at.solution.cost + k_clearly_worse;
}

FitResult Fitter::fit(const UsesPoint& uses) {
  const auto start = starts_of(data_);
  auto best = solve(start, used_parameters(data_, uses), uses, k_iterations);
  std::mt19937_64 random(1);
  std::normal_distribution<double> around(0, 1);
  for (int more = 1; more < calibration_.starts && !best.solution.is_stopped; ++more) {
    auto other = start;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const auto& free = data_.parameters()[i];
      const double spread = free.prior_deviation > 0 ? std::min(1.0, free.prior_deviation) : 0.7;
      other[i] = std::clamp(other[i] + spread * around(random), std::log(free.low), std::log(free.high));
    }
    auto result = solve(other, used_parameters(data_, uses), uses, k_iterations);
    if (result.solution.cost < best.solution.cost) best = std::move(result);
  }
  if (best.solution.is_stopped) return best;
  if (data_.find_uses(best.x)) best = solve(best.x, used_parameters(data_, uses), uses, k_iterations);
  // What the data cannot determine goes back to its start; the others are fitted again without it.
  std::vector<std::size_t> kept;
  auto x = best.x;
  for (const auto i : best.free_indices) {
    if (best.data_deviation_ratio[i] <= k_undetermined || rules_out(best, i, start[i])) {
      kept.push_back(i);
    } else {
      x[i] = start[i];
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!best.is_free[i]) x[i] = start[i];
  }
  if (kept.size() == best.free_indices.size()) return best;
  auto again = solve(x, kept, uses, k_iterations);
  for (const auto i : best.free_indices) {
    if (!again.is_free[i]) again.data_deviation_ratio[i] = best.data_deviation_ratio[i];
  }
  return again;
}

FitResult Fitter::at_start() {
  const UsesPoint all = [](const Experiment&, std::size_t) { return true; };
  return solve(starts_of(data_), used_parameters(data_, all), all, 0);
}

FitResult Fitter::refused(const FitResult& fit, const UsesPoint& uses) {
  auto result = solve(starts_of(data_), {}, uses, 0);
  result.data_deviation_ratio = fit.data_deviation_ratio;
  return result;
}

FitResult Fitter::refit(const FitResult& near, const UsesPoint& uses, int max_iterations) {
  auto x = near.x;
  const auto start = starts_of(data_);
  const auto used = used_parameters(data_, uses);
  std::vector<std::size_t> free;
  for (const auto i : near.free_indices) {
    if (std::find(used.begin(), used.end(), i) != used.end()) {
      free.push_back(i);
    } else {
      x[i] = start[i];
    }
  }
  return solve(x, free, uses, max_iterations, &near);
}

std::optional<Values> Fitter::gauss_newton(const FitResult& at, const std::vector<double>& point_weights) const {
  const auto n = static_cast<Index>(at.solution.x.size());
  if (n == 0) return at.x;
  const auto& s = at.solution;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(n);
  for (std::size_t k = 0; k < s.residuals.size(); ++k) {
    const bool is_point = k < at.points.size();
    const double robust =
        is_point && calibration_.loss == Loss::soft_l1 ? 1 / std::sqrt(1 + s.residuals[k] * s.residuals[k]) : 1;
    const double w = robust * (is_point ? point_weights[k] : 1);
    if (w == 0) continue;
    for (Index i = 0; i < n; ++i) {
      const double ji = s.jacobian[static_cast<std::size_t>(i)][k];
      if (ji == 0) continue;
      b(i) -= w * ji * s.residuals[k];
      for (Index j = 0; j < n; ++j) a(i, j) += w * ji * s.jacobian[static_cast<std::size_t>(j)][k];
    }
  }
  for (Index i = 0; i < n; ++i) a(i, i) += 1e-9 + 1e-9 * a(i, i);
  const Eigen::VectorXd move = a.ldlt().solve(b);
  if (!move.allFinite()) return std::nullopt;
  auto x = at.x;
  for (Index i = 0; i < n; ++i) {
    const auto p = at.free_indices[static_cast<std::size_t>(i)];
    const auto& free = data_.parameters()[p];
    x[p] = std::clamp(x[p] + std::clamp(move(i), -0.5, 0.5), std::log(free.low), std::log(free.high));
  }
  return x;
}

std::vector<double> Fitter::bootstrap(const FitResult& at, int samples) const {
  if (at.points.empty()) return at.deviation;
  std::mt19937_64 random(1);
  std::vector<Values> drawn;
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<double> weights(at.points.size(), 0);
    std::uniform_int_distribution<std::size_t> pick(0, weights.size() - 1);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[pick(random)] += 1;
    if (auto x = gauss_newton(at, weights)) drawn.push_back(std::move(*x));
  }
  std::vector<double> deviation(at.x.size(), 0);
  for (const auto i : at.free_indices) {
    double sum = 0;
    for (const auto& x : drawn) sum += std::pow(x[i] - at.x[i], 2);
    deviation[i] = drawn.empty() ? at.deviation[i] : std::sqrt(sum / static_cast<double>(drawn.size()));
  }
  return deviation;
}

}  // namespace fabricast::fit
