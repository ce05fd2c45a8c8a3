// SPDX-License-Identifier: Apache-2.0
// Copy timings, bandwidthTest and matrices of p2pBandwidthLatencyTest have no table of their own to compare with: the
// entries of the workload's GPUs and direction become rows of host_copies.
#include <algorithm>
#include <cmath>
#include <set>

#include "readers/readers.hpp"

namespace fabricast {
namespace {

constexpr Bytes k_matrix_copy{160'000'000};  ///< p2pBandwidthLatencyTest copies 40,000,000 integers
constexpr Bytes k_concurrent_copy{1 << 30};  ///< steady copies at once have no size of their own
constexpr double k_same_group = 1.1;         ///< rates this near the slowest belong to GPUs that share with it

/// Numbers of the GPUs: the digits behind the last "gpu" of the names, else the first ones.
std::vector<int> device_numbers(const Workload& workload) {
  std::vector<int> out;
  for (const auto& name : workload.devices) {
    const auto at = name.rfind("gpu");
    out.push_back(at == std::string::npos ? -1 : readers::leading_count(name.substr(at + 3)).value_or(-1));
  }
  for (int i = 0; workload.devices.empty() && i < workload.gpus.value_or(1); ++i) out.push_back(i);
  return out;
}

/// "h2d", "d2h" or "bidir", as the logs' kinds spell it.
std::string_view direction_word(const Workload& workload) {
  switch (workload.direction) {
    case CopyDirection::to_host:
      return "d2h";
    case CopyDirection::to_device:
      return "h2d";
    case CopyDirection::both:
      return "bidir";
    case CopyDirection::to_peer:
      return "peer copy";
  }
  return "";
}

MeasuredRow row_of(Bytes size, Duration time, int line) {
  MeasuredRow row;
  row.size = size;
  row.time = time;
  row.bandwidth = average_rate(size, time);
  row.line = line;
  return row;
}

/// One GPU copies from or to pinned memory, or to a peer.
void add_single_copies(const MeasuredLog& log, std::string_view kind, const std::vector<int>& devices,
                       std::vector<MeasuredRow>& rows) {
  for (const auto& copy : log.copies) {
    const auto name = lower(copy.kind);
    const bool is_wanted = readers::contains(name, kind) && !readers::contains(name, "pageable");
    const bool is_of_devices = copy.devices.empty() || copy.devices == devices;
    if (is_wanted && is_of_devices && copy.num_concurrent == 1 && copy.size && copy.time)
      rows.push_back(row_of(*copy.size, *copy.time, copy.line));
  }
}

/// Several GPUs copy at once. They end together when they share alike; else the slowest group is compared.
void add_concurrent_copies(const MeasuredLog& log, std::string_view kind, const std::vector<int>& devices,
                           std::vector<MeasuredRow>& rows) {
  std::map<int, std::vector<double>> rates;  // by line
  for (const auto& copy : log.copies) {
    const auto place = std::find(devices.begin(), devices.end(), copy.devices.empty() ? -1 : copy.devices.front());
    if (copy.size || !copy.bandwidth || !readers::contains(lower(copy.kind), kind) || place == devices.end()) continue;
    if (copy.num_concurrent == static_cast<int>(devices.size()))
      rates[copy.line].push_back(copy.bandwidth->bytes_per_s);
  }
  for (auto& [line, all] : rates) {
    if (all.size() != devices.size()) continue;
    const double slowest = *std::min_element(all.begin(), all.end());
    std::erase_if(all, [&](double rate) { return rate > k_same_group * slowest; });
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    const double rate = all[all.size() / 2];
    rows.push_back(row_of(k_concurrent_copy, from_seconds(static_cast<double>(k_concurrent_copy.value) / rate), line));
  }
}

void add_matrix_entry(const MeasuredLog& log, const Scenario& scenario, const std::vector<int>& devices,
                      std::vector<MeasuredRow>& rows) {
  const bool is_both_ways = scenario.workloads.front().is_bidirectional;
  for (const auto& matrix : log.matrices) {
    if (matrix.is_latency || matrix.is_p2p != scenario.software.nccl_p2p || matrix.is_bidirectional != is_both_ways)
      continue;
    const auto row = std::find(matrix.row_devices.begin(), matrix.row_devices.end(), devices[0]);
    const auto column = std::find(matrix.column_devices.begin(), matrix.column_devices.end(), devices[1]);
    if (row == matrix.row_devices.end() || column == matrix.column_devices.end()) continue;
    const auto line = static_cast<std::size_t>(row - matrix.row_devices.begin());
    double rate = matrix.value[line][static_cast<std::size_t>(column - matrix.column_devices.begin())];
    if (is_both_ways) rate /= 2;  // the program adds both directions
    if (!std::isfinite(rate) || rate <= 0) continue;
    rows.push_back(row_of(k_matrix_copy, from_seconds(static_cast<double>(k_matrix_copy.value) / rate), matrix.line));
  }
}

}  // namespace

namespace readers {

std::optional<MeasuredLog> copy_rows(const MeasuredLog& log, const Scenario& scenario) {
  const auto& workload = scenario.workloads.front();
  if (log.format == LogFormat::forecast)
    return log.rows.empty() || log.benchmark.value_or(workload.benchmark) != workload.benchmark ? std::nullopt
                                                                                                : std::optional(log);
  const auto devices = device_numbers(workload);
  std::vector<MeasuredRow> rows;
  const bool is_to_peer = workload.direction == CopyDirection::to_peer;
  if (is_to_peer && devices.size() != 2) return std::nullopt;
  if (is_to_peer) {
    if (!workload.is_bidirectional)
      add_single_copies(log, scenario.software.nccl_p2p ? "peer copy p2p=1" : "peer copy p2p=0", devices, rows);
    add_matrix_entry(log, scenario, devices, rows);
  } else {
    const auto kind = direction_word(workload);
    if (devices.size() == 1) add_single_copies(log, kind, devices, rows);
    if (devices.size() > 1 || rows.empty()) add_concurrent_copies(log, kind, devices, rows);
  }
  if (rows.empty()) return std::nullopt;
  auto table = log;
  table.benchmark = Benchmark::host_copies;
  table.rows = std::move(rows);
  return table;
}

}  // namespace readers

}  // namespace fabricast
