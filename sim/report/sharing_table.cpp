// SPDX-License-Identifier: Apache-2.0
// Tables of gpu_sharing, remote_gpu and vgpu_migration: a row's time and band, then its figures. The unit of a figure
// is the end of its key; times are shown in the unit of the benchmark.
#include <fmt/format.h>

#include <algorithm>

#include "report/tables.hpp"

namespace fabricast::report {

namespace {

struct TimeUnit {
  const char* name;
  double ps;
};

struct Layout {
  const char* first;  ///< what a row is
  const char* time;   ///< what its time is
  TimeUnit unit;
};

Layout layout_of(const WorkloadPrediction& workload) {
  const auto benchmark = workload.benchmark;
  if (benchmark == Benchmark::gpu_sharing) return {"client", "period", {"us", 1e6}};
  if (benchmark == Benchmark::remote_gpu) return {"data per step", "remote", {"ms", 1e9}};
  // A VM that moves over the network is stunned at the end only: a column of its own.
  const bool has_stun =
      !workload.rows.empty() &&
      std::ranges::find(workload.rows.front().figures, "stun_ps", &Figure::key) != workload.rows.front().figures.end();
  return {"framebuffer", has_stun ? "migration" : "stun", {"s", 1e12}};
}

/// "worst_wait_ps" -> "worst wait (us)".
std::string title(std::string key, const TimeUnit& unit) {
  std::string suffix;
  if (key.ends_with("_ps")) {
    key.erase(key.size() - 3);
    suffix = fmt::format(" ({})", unit.name);
  }
  if (key.ends_with("_bytes")) key.erase(key.size() - 6);
  std::replace(key.begin(), key.end(), '_', ' ');
  return key + suffix;
}

std::string shown_time(double ps, const TimeUnit& unit) { return fmt::format("{:.2f}", ps / unit.ps); }

std::string shown(const Figure& figure, const TimeUnit& unit) {
  if (figure.key.ends_with("_ps")) return shown_time(figure.value, unit);
  if (figure.key.ends_with("_bytes")) return to_string(Bytes{static_cast<std::int64_t>(figure.value)});
  if (figure.key.ends_with("_share")) return fmt::format("{:.3f}", figure.value);
  return fmt::format("{:.3g}", figure.value);
}

}  // namespace

std::string row_name(const Row& row) { return row.label.empty() ? to_string(row.size) : row.label; }

std::string sharing_table(const WorkloadPrediction& workload) {
  const auto layout = layout_of(workload);
  std::size_t widest = std::string(layout.first).size();
  for (const auto& row : workload.rows) widest = std::max(widest, row_name(row).size());
  std::string out = fmt::format("# {:<{}}", layout.first, widest);
  const auto head = [&](const std::string& text) { out += fmt::format("  {:>14}", text); };
  head(fmt::format("{} ({})", layout.time, layout.unit.name));
  head("low");
  head("high");
  if (!workload.rows.empty()) {
    for (const auto& figure : workload.rows.front().figures) head(title(figure.key, layout.unit));
  }
  out += "\n";
  for (const auto& row : workload.rows) {
    out += fmt::format("  {:<{}}", row_name(row), widest);
    for (const auto time : {row.time, row.low_time, row.high_time})
      out += fmt::format("  {:>14}", shown_time(static_cast<double>(time.ps), layout.unit));
    for (const auto& figure : row.figures)
      out += fmt::format("  {:>{}}", shown(figure, layout.unit),
                         std::max<std::size_t>(14, title(figure.key, layout.unit).size()));
    out += "\n";
  }
  return out;
}

}  // namespace fabricast::report
