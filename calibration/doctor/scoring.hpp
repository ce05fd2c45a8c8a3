// SPDX-License-Identifier: Apache-2.0
// r = ln(measured / forecast) of every row. A log of n rows counts
//   -n/2 ln(1 + Q / n),  Q = sum over bases of [ sum (r - mean)^2 / s_e^2 + m mean^2 / (s_e^2 + m s_b^2) ]
// with scatter s_e of rows and s_b of what a basis has in common (m rows: what systems, or runs of one, differ by), and
// the form that large errors enter by their logarithm, so that one strange row decides nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "fabricast/doctor.hpp"

namespace fabricast::doctor {

inline constexpr double k_row_scatter = 0.05;
inline constexpr double k_slower = 0.08;  ///< of a row, to count as slower

/// What a row is held against: how far healthy rows are from it.
enum class Basis { forecast, large_run, small_run };
inline constexpr std::array k_bases{Basis::forecast, Basis::large_run, Basis::small_run};

/// Of healthy rows. Two healthy runs: five of two H200 in a virtual machine
/// [calibration/data/h200-2gpu-repeats-nvswitch-passthrough-vm, all_reduce_perf, one thread and one per GPU] differ by
/// 1 % from 1 MiB on, and below, where launches decide, by 0.23 (rms) and 0.37 (most) in the mean ln: together.
struct Scatter {
  double log;          ///< of what a log's rows have in common
  double much;         ///< mean |ln| that is more than healthy rows have
  bool has_own_level;  ///< what rows have in common says nothing of a cause that leaves little
};
inline Scatter scatter_of(Basis basis) {
  switch (basis) {
    case Basis::forecast:
      return {0.05, 0.22, false};
    case Basis::large_run:
      return {0.05, k_baseline_margin, false};
    case Basis::small_run:
      return {0.23, 0.4, true};
  }
  return {};
}
constexpr std::size_t at(Basis basis) { return static_cast<std::size_t>(basis); }

/// ln(measured / forecast), by basis.
using Residuals = std::array<std::vector<double>, k_bases.size()>;

inline double score_of(const Residuals& all) {
  double q = 0, n = 0;
  for (const auto basis : k_bases) {
    const auto& r = all[at(basis)];
    if (r.empty()) continue;
    const double m = static_cast<double>(r.size()), log_scatter = scatter_of(basis).log;
    const double mean = std::accumulate(r.begin(), r.end(), 0.0) / m;
    for (const double one : r) q += (one - mean) * (one - mean) / (k_row_scatter * k_row_scatter);
    q += m * mean * mean / (k_row_scatter * k_row_scatter + m * log_scatter * log_scatter);
    n += m;
  }
  return n > 0 ? -0.5 * n * std::log1p(q / n) : 0;
}

/// Rows of one basis.
struct Errors {
  double sum = 0;        ///< of |ln|
  double sum_shape = 0;  ///< of |ln| less what the rows of a log have in common, where that scatters by itself
  int n = 0, slow = 0;
  [[nodiscard]] double mean() const { return n == 0 ? 0 : sum / n; }
  [[nodiscard]] double shape() const { return n == 0 ? 0 : sum_shape / n; }
  [[nodiscard]] double slow_share() const { return n == 0 ? 0 : static_cast<double>(slow) / n; }
};
/// One log's.
inline void add(const std::vector<double>& r, Basis basis, Errors& into) {
  constexpr double k_most = 1.5;  ///< that one row counts
  if (r.empty()) return;
  const double m = static_cast<double>(r.size());
  const double level = scatter_of(basis).has_own_level ? std::accumulate(r.begin(), r.end(), 0.0) / m : 0;
  for (const double x : r) {
    into.sum += std::min(k_most, std::abs(x));
    into.sum_shape += std::min(k_most, std::abs(x - level));
    into.slow += x > k_slower ? 1 : 0;
  }
  into.n += static_cast<int>(r.size());
}

}  // namespace fabricast::doctor
