// SPDX-License-Identifier: Apache-2.0
// What `compare` shows in every form: workloads and rows that all predictions have, ratios, terms and settings that
// changed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/ratio_band.hpp"
#include "report/report.hpp"

namespace fabricast::report {

/// One workload of the first prediction and its counterparts: those of the same name, else (another benchmark) those at
/// the same place whose name the first does not have. Rows that did not finish are left out.
struct ComparedTable {
  std::string workload;  ///< its name; "A's / B's" where they differ
  std::vector<Bytes> sizes;
  std::vector<std::string> names;                      ///< [row] label, or empty where rows are sizes
  std::vector<std::vector<const Row*>> rows;           ///< [row][prediction]
  std::vector<const WorkloadPrediction*> predictions;  ///< [prediction]
  std::vector<std::vector<RatioBand>> bands;           ///< [row][prediction] 80 % of the ratio to the first
  int num_left_out = 0;                                ///< rows that not every prediction has
};

struct Comparison {
  std::vector<ComparedTable> tables;
  std::vector<std::string> left_out;  ///< "job-b of A": workloads without a counterpart in every prediction
};
Comparison comparison(std::span<const Compared> all);

/// The row's label or its size.
std::string row_name(const ComparedTable& table, std::size_t row);

/// Time over the reference's time; 1 when that is zero.
double time_ratio(const Row& row, const Row& reference);

/// "0.981..1.020"
std::string to_string(const RatioBand& band);

/// Samples, images or tokens per second of a training step; 0 elsewhere.
double throughput(const Row& row);
bool has_throughput(const ComparedTable& table);

/// Sizes where two times differ and the 80 % band of their ratio holds 1: "8 B .. 64 KiB, 1 GiB"; empty without.
std::string undecided(const ComparedTable& table, std::size_t other);

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
  std::string setting;   ///< of several workloads with the workload's name before it
  std::string before, after;
};
std::vector<SettingChange> changed_settings(std::span<const Compared> all, const Comparison& compared);

struct AssumptionChange {
  std::size_t prediction = 0;  ///< the one that is not the first
  std::string assumption;
  bool is_new = false;  ///< it rests on it and the first does not; else the other way round

  /// "B, not A: ..."
  [[nodiscard]] std::string text() const;
};
/// What one of two predictions assumes and the other does not.
std::vector<AssumptionChange> changed_assumptions(std::span<const Compared> all, const Comparison& compared);

/// "ring simple", what the table of `run` names.
std::string way_of(const Row& row);

/// A, B, C ... of the predictions.
char letter(std::size_t prediction);

}  // namespace fabricast::report
