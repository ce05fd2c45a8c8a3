// SPDX-License-Identifier: Apache-2.0
// What `compare` shows in every form: rows that all predictions have, ratios, terms and settings that changed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/report.hpp"

namespace fabricast::report {

/// Rows of one workload that every prediction has; rows that did not finish are left out.
struct ComparedTable {
  std::string workload;
  std::vector<Bytes> sizes;
  std::vector<std::vector<const Row*>> rows;           ///< [size][prediction]
  std::vector<const WorkloadPrediction*> predictions;  ///< [prediction]
};
std::vector<ComparedTable> compared_tables(std::span<const Compared> all);

/// Time over the reference's time; 1 when that is zero.
double time_ratio(const Row& row, const Row& reference);

/// The row where prediction `other` is farthest from the first, as a factor either way.
std::size_t most_changed(const ComparedTable& table, std::size_t other);

struct TermChange {
  std::string term;
  Duration before, after;
};
/// Terms by name, largest difference first; equal ones left out.
std::vector<TermChange> changed_terms(const Row& before, const Row& after);
/// Those of them that are worth showing: eight at most, none below a thousandth of the time but the first.
std::vector<TermChange> main_changes(const Row& before, const Row& after);

struct SettingChange {
  std::string scenario;  ///< its name as given
  std::string setting, before, after;
};
std::vector<SettingChange> changed_settings(std::span<const Compared> all);

/// A, B, C ... of the predictions.
char letter(std::size_t prediction);

}  // namespace fabricast::report
