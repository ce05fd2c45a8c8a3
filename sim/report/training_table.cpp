// SPDX-License-Identifier: Apache-2.0
// Table of training steps: one row per number of GPUs, the step split into what it is spent on, throughput and scaling.
#include <fmt/format.h>

#include <algorithm>

#include "report/tables.hpp"

namespace fabricast::report {

namespace {

double figure(const Row& row, std::string_view key) {
  const auto it = std::ranges::find(row.figures, key, &Figure::key);
  return it == row.figures.end() ? 0 : it->value;
}

std::string milliseconds(double ps) { return fmt::format("{:.3f}", ps * 1e-9); }

/// "images/s" for the figure `images_per_s` beside `throughput_per_s`.
std::string unit_of(const WorkloadPrediction& workload) {
  for (const auto& row : workload.rows) {
    const auto at = std::ranges::find(row.figures, std::string_view("throughput_per_s"), &Figure::key);
    if (at == row.figures.end() || std::next(at) == row.figures.end()) continue;
    const auto& key = std::next(at)->key;
    return key.substr(0, key.find("_per_s")) + "/s";
  }
  return "1/s";
}

}  // namespace

std::string training_table(const WorkloadPrediction& workload) {
  // One line, as `validate` and the readers of others' tables take their heads.
  std::string out = fmt::format("#{:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>21} {:>10}\n",
                                "GPUs", "step(ms)", "low(ms)", "high(ms)", "compute(ms)", "exchange(ms)", "bubble(ms)",
                                "launch(ms)", "wait(ms)", "throughput(" + unit_of(workload) + ")", "scaling");
  for (const auto& row : workload.rows) {
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    const auto ms = [&](std::string_view key) { return milliseconds(figure(row, key)); };
    out += fmt::format("{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>21.2f} {:>10.3f}\n",
                       static_cast<int>(figure(row, "gpus")), ms("step_time_ps"),
                       milliseconds(static_cast<double>(row.low_time.ps)),
                       milliseconds(static_cast<double>(row.high_time.ps)), ms("compute_time_ps"),
                       ms("exposed_exchange_time_ps"), ms("bubble_time_ps"), ms("launch_time_ps"), ms("wait_time_ps"),
                       figure(row, "throughput_per_s"), figure(row, "scaling_efficiency_share"));
  }
  return out;
}

}  // namespace fabricast::report
