// SPDX-License-Identifier: Apache-2.0
// What all readers share: tables, warnings, and the times and bandwidths that follow from printed ones.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "readers/readers.hpp"

namespace fabricast {
namespace readers {

bool is_nccl(const MeasuredLog& table) {
  return table.format == LogFormat::nccl_tests || table.format == LogFormat::nccl_tests_json;
}

MeasuredLog begin_table(const LogText& log, LogFormat format, int line) {
  MeasuredLog table;
  table.file = log.name;
  table.format = format;
  table.provenance = log.provenance;
  table.line = line;
  return table;
}

std::vector<Lines> tests_of(Lines section, bool (*begins)(std::string_view), bool (*belongs)(std::string_view)) {
  std::vector<Lines> tests;
  std::size_t first = 0, behind = 0;
  bool has_begun = false;
  for (std::size_t i = 0; i < section.size(); ++i) {
    const bool is_begin = begins(section[i].text);
    if (!is_begin && belongs(section[i].text)) behind = i + 1;
    if (!is_begin) continue;
    if (has_begun && behind > first) {
      tests.push_back(section.subspan(first, behind - first));
      first = behind;
    }
    has_begun = true;
  }
  if (first < section.size()) tests.push_back(section.subspan(first));
  return tests;
}

Diagnostic file_warning(const std::string& name, std::string message) {
  return {Severity::warning, {name, 0, 0}, std::move(message), {}, {}};
}

void add_warning(MeasuredLog& table, Diagnostic warning) {
  constexpr std::size_t k_most_warnings = 100;
  if (table.warnings.size() < k_most_warnings) table.warnings.push_back(std::move(warning));
}

std::string nccl_version_text(int code) {
  constexpr int k_first_long_code = 10000;
  if (code >= k_first_long_code) return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
  return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
}

Duration from_us(double us) { return from_seconds(us * 1e-6); }

bool set_rates(MeasuredRow& row, const PrintedRate& rate) {
  const auto is_positive = [](const std::optional<Printed>& p) { return p && p->value > 0; };
  const auto bytes = static_cast<double>(row.size.value);
  const bool has_bandwidth = is_positive(rate.bytes_per_s);
  const bool has_messages = is_positive(rate.messages_per_s);
  if (bytes <= 0 || (!has_bandwidth && !has_messages)) return false;
  if (has_messages) row.messages_per_s = rate.messages_per_s->value;
  if (has_bandwidth && has_messages) {
    constexpr double k_slack = 0.01;
    const double by_messages = rate.messages_per_s->value * bytes;
    const double rounding = rate.messages_per_s->relative_rounding() + rate.bytes_per_s->relative_rounding() + k_slack;
    if (std::abs(by_messages - rate.bytes_per_s->value) > rounding * std::max(by_messages, rate.bytes_per_s->value))
      return false;
  }
  const bool prefers_messages = has_messages && (!has_bandwidth || rate.messages_per_s->relative_rounding() <
                                                                       rate.bytes_per_s->relative_rounding());
  row.bandwidth = Bandwidth{prefers_messages ? rate.messages_per_s->value * bytes : rate.bytes_per_s->value};
  row.time = from_seconds(bytes / row.bandwidth->bytes_per_s);
  return true;
}

void recompute_bandwidths(MeasuredLog& table) {
  for (auto& row : table.rows) {
    row.bandwidth = average_rate(row.size, row.time);
    if (table.benchmark && table.header.num_ranks) {
      row.busbw = *row.bandwidth * bus_bandwidth_factor(*table.benchmark, *table.header.num_ranks);
    }
  }
}

}  // namespace readers

std::string_view to_string(LogFormat format) {
  switch (format) {
    case LogFormat::nccl_tests:
      return "nccl-tests";
    case LogFormat::nccl_tests_json:
      return "nccl-tests JSON";
    case LogFormat::osu:
      return "OSU";
    case LogFormat::perftest:
      return "perftest";
    case LogFormat::perftest_json:
      return "perftest JSON";
    case LogFormat::p2p_matrix:
      return "p2pBandwidthLatencyTest";
    case LogFormat::cuda_bandwidth:
      return "CUDA bandwidthTest";
    case LogFormat::copies:
      return "copies";
    case LogFormat::nccl_tuning:
      return "NCCL tuning";
    case LogFormat::training:
      return "training";
    case LogFormat::iperf3:
      return "iperf3";
    case LogFormat::sockperf:
      return "sockperf";
    case LogFormat::forecast:
      return "fabricast run";
  }
  return "";
}

double bus_bandwidth_factor(Benchmark benchmark, int num_ranks) {
  if (num_ranks < 1) return 1;
  const double share_of_others = static_cast<double>(num_ranks - 1) / num_ranks;
  if (benchmark == Benchmark::all_reduce_perf) return 2 * share_of_others;
  return counts_parts(benchmark) ? share_of_others : 1;
}

std::vector<Bytes> sizes_of(const MeasuredLog& log) {
  std::set<Bytes> sizes;
  for (const auto& row : log.rows) {
    if (row.size.value > 0 || !readers::is_nccl(log)) sizes.insert(row.size);
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace fabricast
