// SPDX-License-Identifier: Apache-2.0
// When a table is slower than it should be: by its rows' times over what healthy runs take. `expect --check` and the
// doctor's baselines read a table the same way.
#pragma once

#include <vector>

#include "doctor/median.hpp"
#include "fabricast/units.hpp"

namespace fabricast::doctor {

/// Rows from here on are held by bandwidth, smaller ones by launches and latencies, which scatter from run to run.
constexpr Bytes k_large{std::int64_t{1} << 20};

struct LossRow {
  bool is_large = false;  ///< from k_large on
  double ratio = 1;       ///< measured / expected time
  bool is_below = false;  ///< its floor
};

struct Loss {
  bool is_below = false;  ///< more than `most_below` of the large rows (of all, where there is none) are below theirs
  bool is_lost = false;   ///< the medians are
  double of_large = 1, of_all = 1;  ///< median ratios
  [[nodiscard]] bool is_missed() const { return is_below || is_lost; }
};

inline Loss loss_of(const std::vector<LossRow>& rows, double most_below = 0.5) {
  constexpr double k_loss_everywhere = 1.12;  ///< of the expected time, in the median of all rows and of the large ones
  constexpr double k_loss_large = 1.25;       ///< in the median of the large ones alone
  if (rows.empty()) return {};
  std::vector<double> all, large;
  int below = 0, below_large = 0;
  for (const auto& row : rows) {
    all.push_back(row.ratio);
    below += row.is_below ? 1 : 0;
    if (!row.is_large) continue;
    large.push_back(row.ratio);
    below_large += row.is_below ? 1 : 0;
  }
  if (large.empty()) {
    large = all;
    below_large = below;
  }
  Loss out;
  out.of_large = upper_median(large);
  out.of_all = upper_median(all);
  out.is_below = static_cast<double>(below_large) > most_below * static_cast<double>(large.size());
  out.is_lost = out.of_large > k_loss_large || (out.of_large > k_loss_everywhere && out.of_all > k_loss_everywhere);
  return out;
}

}  // namespace fabricast::doctor
