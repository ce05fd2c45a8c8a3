// SPDX-License-Identifier: Apache-2.0
// Which rows of a training table a scenario forecasts, as times of a step of it. A row belongs to it unless it says
// another network, precision, batch, sequence, path or number of GPUs. Throughput becomes time by the samples of the
// scenario's step:
//
//   samples = batch per GPU x micro-batches x GPUs / (tensor x pipeline x context)
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "readers/readers.hpp"
#include "readers/training_columns.hpp"

namespace fabricast::readers {
namespace {

constexpr double k_same_batch = 0.005;  ///< global batches this near are equal

/// Judges rows; counts why others are left out.
class Chooser {
 public:
  Chooser(const Scenario& scenario, const std::vector<std::string>& parts)
      : software_(scenario.software), spec_(*scenario.workloads.front().training), parts_(parts) {}

  std::optional<MeasuredRow> row_of(const MeasuredStep& step) {
    if (const auto why = reason_against(step); !why.empty()) {
      ++left_out_[why];
      return std::nullopt;
    }
    MeasuredRow row;
    row.size = Bytes{*step.gpus};
    row.time = from_seconds(seconds_of(step));
    row.line = step.line;
    return row;
  }

  /// "12 rows are of another model, 3 of another precision".
  [[nodiscard]] std::string summary() const {
    std::vector<std::string> parts;
    for (const auto& [why, count] : left_out_) parts.push_back(fmt::format("{} {}", count, why));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

 private:
  [[nodiscard]] std::string model() const {
    return spec_.network ? spec_.network->name : spec_.profile ? spec_.profile->model : "";
  }
  [[nodiscard]] std::int64_t tokens() const { return spec_.network ? spec_.network->tokens : 0; }

  [[nodiscard]] double samples(int gpus) const {
    const auto& p = spec_.parallel;
    return static_cast<double>(spec_.batch_per_gpu) * p.micro_batches * gpus / (p.tensor * p.pipeline * p.context);
  }

  [[nodiscard]] bool is_of_path(const std::string& path) const {
    if (path == "nvlink") return software_.nccl_p2p;
    if (path == "p2poff") return !software_.nccl_p2p && software_.nccl_shm;
    return path != "tcp" || (!software_.nccl_p2p && !software_.nccl_shm);
  }

  [[nodiscard]] bool is_of_batch(const MeasuredStep& step) const {
    if (step.batch_per_gpu && *step.batch_per_gpu != spec_.batch_per_gpu) return false;
    if (!step.global_batch || !step.gpus) return true;
    const double own = samples(*step.gpus);
    return std::abs(static_cast<double>(*step.global_batch) - own) <= k_same_batch * own;
  }

  [[nodiscard]] bool is_of_sequence(const MeasuredStep& step) const {
    if (spec_.kv_length > 0) return step.kv_length.value_or(spec_.kv_length) == spec_.kv_length;
    return step.kv_length.value_or(0) == 0 && step.tokens.value_or(tokens()) == tokens();
  }

  [[nodiscard]] bool is_of_shape(const MeasuredStep& step) const {
    const auto* shape = spec_.network && spec_.network->transformer ? &*spec_.network->transformer : nullptr;
    if (step.hidden && (shape == nullptr || shape->hidden != *step.hidden)) return false;
    return !step.layers || shape == nullptr || shape->layers == *step.layers;
  }

  [[nodiscard]] std::string reason_against(const MeasuredStep& step) const {
    const auto text = lower(step.text);
    for (const auto& part : parts_) {
      if (!contains(text, lower(part))) return fmt::format("without '{}'", part);
    }
    if (step.is_layer != (spec_.part == TrainingPart::layer)) return step.is_layer ? "of a layer" : "of a whole step";
    if (!step.model.empty() && !is_same_model(step.model, model())) return "of another model";
    if (!is_of_shape(step)) return "of a network of another size";
    if (step.precision && *step.precision != spec_.precision) return "of another precision";
    if (!is_of_path(step.path)) return "over another path";
    if (!is_of_batch(step)) return "of another batch";
    if (!is_of_sequence(step)) return "of another sequence";
    if (step.exchange && *step.exchange != spec_.parallel.exchange) return "of another exchange";
    if (step.bucket && spec_.parallel.bucket && *step.bucket != *spec_.parallel.bucket) return "of another bucket cap";
    if (!step.gpus) return "without a number of GPUs";
    const auto& counts = spec_.gpu_counts;
    if (!counts.empty() && std::find(counts.begin(), counts.end(), *step.gpus) == counts.end())
      return "of other numbers of GPUs";
    return seconds_of(step) > 0 ? "" : "with tokens per second of a network without tokens";
  }

  [[nodiscard]] double seconds_of(const MeasuredStep& step) const {
    if (step.step) return step.step->seconds();
    if (step.tokens_per_s) return samples(*step.gpus) * static_cast<double>(tokens()) / *step.tokens_per_s;
    return samples(*step.gpus) / *step.samples_per_s;
  }

  const Software& software_;
  const TrainingSpec& spec_;
  const std::vector<std::string>& parts_;
  std::map<std::string, int> left_out_;
};

}  // namespace

std::optional<MeasuredLog> training_rows(const MeasuredLog& log, const Scenario& scenario,
                                         const std::vector<std::string>& parts) {
  if (log.steps.empty() || scenario.workloads.front().training == nullptr) return std::nullopt;
  Chooser chooser(scenario, parts);
  auto table = log;
  table.rows.clear();
  for (const auto& step : log.steps) {
    if (auto row = chooser.row_of(step)) table.rows.push_back(std::move(*row));
  }
  if (table.rows.empty())
    add_warning(table, {Severity::warning,
                        {log.file, log.line, 1},
                        fmt::format("no row of this table is the scenario's: {}", chooser.summary()),
                        {},
                        {}});
  return table;
}

}  // namespace fabricast::readers
