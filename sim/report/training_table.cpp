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

}  // namespace

std::string training_table(const WorkloadPrediction& workload) {
  std::string out =
      fmt::format("#{:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>14} {:>10}\n", "GPUs", "step",
                  "low", "high", "compute", "exchange", "bubble", "launch", "wait", "throughput", "scaling");
  out += fmt::format("#{:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>14} {:>10}\n", "", "(ms)",
                     "(ms)", "(ms)", "(ms)", "(ms)", "(ms)", "(ms)", "(ms)", "(1/s)", "");
  for (const auto& row : workload.rows) {
    if (!is_finished(row)) {
      out += unfinished_line(row);
      continue;
    }
    const auto ms = [&](std::string_view key) { return milliseconds(figure(row, key)); };
    out += fmt::format("{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10} {:>14.2f} {:>10.3f}\n",
                       static_cast<int>(figure(row, "gpus")), ms("step_time_ps"),
                       milliseconds(static_cast<double>(row.low_time.ps)),
                       milliseconds(static_cast<double>(row.high_time.ps)), ms("compute_time_ps"),
                       ms("exposed_exchange_time_ps"), ms("bubble_time_ps"), ms("launch_time_ps"), ms("wait_time_ps"),
                       figure(row, "throughput_per_s"), figure(row, "scaling_efficiency_share"));
  }
  return out;
}

}  // namespace fabricast::report
