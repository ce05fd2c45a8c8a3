// SPDX-License-Identifier: Apache-2.0
// Predicted against measured, size by size. The error of a point is (predicted - measured) / measured time, so +0.10
// means predicted 10 % too slow; bandwidth tests are compared by time per message too, so that one sign holds
// everywhere. nccl-tests: the out-of-place time is the measured one. Percentiles interpolate linearly between order
// statistics: position p (n - 1) of the sorted values, counted from 0.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/result.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// What predicted and measured rows are matched by: the message size; of training the number of GPUs, as bytes.
Bytes key_of(const WorkloadPrediction& prediction, const Row& row);
/// "64 KiB", "4 GPUs".
std::string key_text(const WorkloadPrediction& prediction, Bytes key);

/// One size that both sides have.
struct ValidationPoint {
  Bytes size;  ///< see key_of()
  Duration predicted;
  Duration low, high;                                        ///< predicted 80 % band
  Duration measured;                                         ///< median when the log has several rows of the size
  double relative_error = 0;                                 ///< (predicted - measured) / measured
  bool is_inside_band = false;                               ///< low <= measured <= high
  int num_measured = 1;                                      ///< rows of the log behind `measured`
  std::optional<Bandwidth> predicted_algbw, measured_algbw;  ///< absent for latency tests
  std::optional<Bandwidth> predicted_busbw, measured_busbw;  ///< nccl-tests only
  int line = 0;                                              ///< of the first measured row
};

/// Fractions, not percent. All zero when there is no point.
struct ValidationSummary {
  int num_points = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double max_abs_error = 0;
  double bias = 0;               ///< median of the signed errors
  double interval_coverage = 0;  ///< share of points inside the band
};

/// A term that, scaled alike at all sizes, brings the forecast nearest to the log: where to look first.
struct Explanation {
  std::string parameter;           ///< the term's parameter or link
  double factor = 1;               ///< of the term's time
  double median_abs_error = 0;     ///< with the term scaled
  std::vector<Bytes> worst_sizes;  ///< up to five, largest error first
};

/// A setting under which the forecast comes clearly nearer to the measured logs; fractions.
struct SettingEffect {
  std::string setting;  ///< as --set takes it: "software.nccl.nvls=on"; several are joined by blanks
  double median_before = 0, median_after = 0;  ///< median error of all points
  double mean_before = 0, mean_after = 0;      ///< mean |ln(predicted / measured)|, by which settings are ranked
  double inside_before = 0, inside_after = 0;  ///< share of points inside the band
};

/// NCCL's own choice for a size, from its tuning lines, beside the prediction's.
struct ChoicePoint {
  Bytes size;
  std::string predicted_algorithm, predicted_protocol;
  int predicted_channels = 0;
  std::string logged_algorithm, logged_protocol;
  int logged_channels = 0;  ///< 0 = not logged
  int line = 0;

  [[nodiscard]] bool agrees() const {
    return predicted_algorithm == logged_algorithm && predicted_protocol == logged_protocol;
  }
  [[nodiscard]] bool channels_agree() const { return logged_channels == 0 || logged_channels == predicted_channels; }
};

struct Validation {
  std::string workload;
  std::string file;
  std::optional<Benchmark> benchmark;   ///< of the prediction
  std::vector<ValidationPoint> points;  ///< by ascending size
  ValidationSummary summary;
  std::optional<Explanation> explanation;  ///< absent when no single term explains a third of the error
  std::vector<ChoicePoint> choices;        ///< by ascending size; empty when the log has no tuning lines
  std::vector<Bytes> unpredicted_sizes;    ///< measured, but not predicted
  std::vector<Bytes> unmeasured_sizes;     ///< predicted, but not measured
  Diagnostics warnings;                    ///< another benchmark or number of ranks; no common size
};

/// Compares a workload with one table. Rows of nccl-tests with size 0 are left out.
Validation validate(const WorkloadPrediction& prediction, const MeasuredLog& log);

/// NCCL's choices for the operation of `benchmark` beside those of the prediction, for sizes that both have.
std::vector<ChoicePoint> compare_choices(const WorkloadPrediction& prediction, const std::vector<NcclChoice>& logged);

/// Statistics over the points of several validations together.
ValidationSummary summarize(std::span<const Validation> validations);
ValidationSummary summarize(std::span<const ValidationPoint> points);

/// The value below which the share `p` (0..1) of `values` lies, as defined at the top; 0 when empty.
double percentile(std::vector<double> values, double p);

}  // namespace fabricast
