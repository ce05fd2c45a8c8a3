// SPDX-License-Identifier: Apache-2.0
#include "fabricast/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "readers/readers.hpp"
#include "validate/explain.hpp"

namespace fabricast {
namespace {

/// The rows of one size: their median time and the first row.
struct MeasuredSize {
  std::vector<double> times_ps;
  const MeasuredRow* first = nullptr;
};

std::map<Bytes, MeasuredSize> by_size(const MeasuredLog& log) {
  std::map<Bytes, MeasuredSize> sizes;
  for (const auto& row : log.rows) {
    if (row.time.ps <= 0 || (row.size.value <= 0 && readers::is_nccl(log))) continue;
    auto& entry = sizes[row.size];
    entry.times_ps.push_back(static_cast<double>(row.time.ps));
    if (entry.first == nullptr) entry.first = &row;
  }
  return sizes;
}

void warn(Validation& validation, const MeasuredLog& log, std::string message) {
  validation.warnings.push_back(
      {Severity::warning, {log.file, log.line, log.line > 0 ? 1 : 0}, std::move(message), {}, {}});
}

/// Whether the row's bandwidth is what the benchmark reports.
bool has_bandwidth(const WorkloadPrediction& prediction) {
  return family_of(prediction.benchmark) == BenchmarkFamily::nccl_tests || is_bandwidth_test(prediction.benchmark);
}

ValidationPoint point_of(const Row& predicted, const MeasuredSize& measured, const WorkloadPrediction& prediction) {
  ValidationPoint point;
  point.size = key_of(prediction, predicted);
  point.predicted = predicted.time;
  point.low = predicted.low_time;
  point.high = predicted.high_time;
  point.measured = {std::llround(percentile(measured.times_ps, 0.5))};
  point.relative_error =
      static_cast<double>(predicted.time.ps - point.measured.ps) / static_cast<double>(point.measured.ps);
  point.is_inside_band = point.low <= point.measured && point.measured <= point.high;
  point.num_measured = static_cast<int>(measured.times_ps.size());
  point.line = measured.first->line;
  if (!has_bandwidth(prediction)) return point;
  point.predicted_algbw = predicted.algbw;
  point.measured_algbw = average_rate(point.size, point.measured);
  if (measured.first->busbw && measured.first->bandwidth && measured.first->bandwidth->bytes_per_s > 0) {
    point.predicted_busbw = predicted.busbw;
    point.measured_busbw =
        *point.measured_algbw * (measured.first->busbw->bytes_per_s / measured.first->bandwidth->bytes_per_s);
  }
  return point;
}

void compare_headers(const WorkloadPrediction& prediction, const MeasuredLog& log, Validation& validation) {
  if (log.benchmark && *log.benchmark != prediction.benchmark) {
    warn(validation, log,
         fmt::format("the log is of {}, the prediction of {}", to_string(*log.benchmark),
                     to_string(prediction.benchmark)));
  }
  const auto& header = log.header;
  if (header.num_ranks && prediction.num_ranks > 0 && *header.num_ranks != prediction.num_ranks) {
    warn(validation, log,
         fmt::format("the log has {} ranks, the prediction {}", *header.num_ranks, prediction.num_ranks));
  }
  if (header.num_hosts && prediction.num_hosts > 0 && *header.num_hosts != prediction.num_hosts) {
    warn(validation, log,
         fmt::format("the log has {} hosts, the prediction {}", *header.num_hosts, prediction.num_hosts));
  }
  const bool is_in_place =
      std::any_of(log.rows.begin(), log.rows.end(), [](const auto& r) { return r.is_in_place_only; });
  if (is_in_place) warn(validation, log, "rows without an out-of-place time are compared by their in-place time");
}

}  // namespace

Bytes key_of(const WorkloadPrediction& prediction, const Row& row) {
  if (prediction.benchmark != Benchmark::training) return row.size;
  const auto gpus =
      std::find_if(row.figures.begin(), row.figures.end(), [](const Figure& f) { return f.key == "gpus"; });
  return gpus == row.figures.end() ? row.size : Bytes{std::llround(gpus->value)};
}

std::string key_text(const WorkloadPrediction& prediction, Bytes key) {
  const auto row = std::ranges::find(prediction.rows, key, &Row::size);
  if (prediction.benchmark == Benchmark::gpu_sharing && row != prediction.rows.end()) return row->label;
  if (prediction.benchmark != Benchmark::training) return to_string(key);
  return fmt::format("{} GPU{}", key.value, key.value == 1 ? "" : "s");
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, values.size() - 1);
  const double share = position - static_cast<double>(below);
  return values[below] + share * (values[above] - values[below]);
}

ValidationSummary summarize(std::span<const ValidationPoint> points) {
  ValidationSummary summary;
  if (points.empty()) return summary;
  std::vector<double> errors, sizes_of_errors;
  for (const auto& point : points) {
    errors.push_back(point.relative_error);
    sizes_of_errors.push_back(std::abs(point.relative_error));
  }
  const auto inside = std::count_if(points.begin(), points.end(), [](const auto& p) { return p.is_inside_band; });
  summary.num_points = static_cast<int>(points.size());
  summary.median_abs_error = percentile(sizes_of_errors, 0.5);
  summary.p90_abs_error = percentile(sizes_of_errors, 0.9);
  summary.max_abs_error = percentile(sizes_of_errors, 1);
  summary.bias = percentile(errors, 0.5);
  summary.interval_coverage = static_cast<double>(inside) / static_cast<double>(points.size());
  return summary;
}

ValidationSummary summarize(std::span<const Validation> validations) {
  std::vector<ValidationPoint> points;
  for (const auto& validation : validations) {
    points.insert(points.end(), validation.points.begin(), validation.points.end());
  }
  return summarize(std::span<const ValidationPoint>(points));
}

Validation validate(const WorkloadPrediction& prediction, const MeasuredLog& log) {
  Validation validation;
  validation.workload = prediction.name;
  validation.file = log.file;
  validation.benchmark = prediction.benchmark;
  compare_headers(prediction, log, validation);
  std::map<Bytes, const Row*> predicted;
  for (const auto& row : prediction.rows) predicted.emplace(key_of(prediction, row), &row);
  const auto measured = by_size(log);
  for (const auto& [size, entry] : measured) {
    const auto row = predicted.find(size);
    if (row == predicted.end())
      validation.unpredicted_sizes.push_back(size);
    else
      validation.points.push_back(point_of(*row->second, entry, prediction));
  }
  for (const auto& [size, row] : predicted) {
    if (!measured.empty() && !measured.contains(size)) validation.unmeasured_sizes.push_back(size);
  }
  validation.choices = compare_choices(prediction, log.tuning.choices);
  if (validation.points.empty() && validation.choices.empty())
    warn(validation, log, "no size is both predicted and measured");
  validation.summary = summarize(std::span<const ValidationPoint>(validation.points));
  validation.explanation = validate_detail::explain_misfit(prediction, validation.points);
  return validation;
}

}  // namespace fabricast
