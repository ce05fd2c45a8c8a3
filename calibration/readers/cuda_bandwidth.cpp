// SPDX-License-Identifier: Apache-2.0
// CUDA bandwidthTest: its text, and the CSV of `--mode=shmoo --csv`. Copies within a device count every byte twice,
// read and written; the time per copy allows for that. Times are computed from bandwidths: the CSV prints them to 10 us
// only, and from 2^20 B per MB whatever the bandwidth counts. By the releases' bandwidthTest.cu:
//
//   GB/s                 1e9 B       CUDA 10.1 and later
//   MB/s, NOTE line      1.024e6 B   2^10 bytes / (ms 2^20): CUDA Samples of 2015 and later ("The CUDA Samples are not
//                                    meant for performance measurements")
//   MB/s without it      2^20 B      1e3 bytes / (ms 2^20): CUDA Samples of 2013, GPU Computing SDK
#include <algorithm>
#include <array>
#include <utility>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr std::string_view k_csv_start = "bandwidthTest-";

/// "H2D", "D2H", "D2D" of ` Host to Device Bandwidth, 1 Device(s)`; empty when the line is no such title.
std::string_view direction_of_title(std::string_view line) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> k_titles{
      {{"Host to Device Bandwidth", "H2D"},
       {"Device to Host Bandwidth", "D2H"},
       {"Device to Device Bandwidth", "D2D"}}};
  for (const auto& [title, direction] : k_titles) {
    if (trim(line).starts_with(title)) return direction;
  }
  return {};
}

/// The line that releases print whose MB is 1.024e6 B.
bool is_note(std::string_view line) {
  return contains(line, "CUDA Samples are not meant for performance measurements");
}

/// Bytes of the MB or GB that a line names.
double unit_in(std::string_view line, double bytes_per_mb) { return contains(line, "MB/s") ? bytes_per_mb : 1e9; }

/// Bytes per MB of a log; a warning where it breaks off before its release can tell.
double bytes_per_mb_of(const LogText& log, Lines section, MeasuredLog& table) {
  const auto find = [&](auto says) {
    return std::find_if(section.begin(), section.end(), [&](const Line& line) { return says(line.text); });
  };
  if (find(is_note) != section.end()) return 1.024e6;
  const auto in_mb = find([](std::string_view line) { return contains(line, "MB/s"); });
  const auto end = find([](std::string_view line) {
    return contains(line, "Result = ") || contains(line, "Test PASSED") || contains(line, "Test FAILED");
  });
  if (in_mb != section.end() && end == section.end())
    add_warning(table, line_warning(log, *in_mb,
                                    "MB is taken as 2^20 B; releases that end with 'NOTE: The CUDA Samples are not "
                                    "meant for performance measurements' print 1.024e6 B"));
  return 0x1p20;
}

/// The number after `key = `.
std::optional<Printed> value_of(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const auto words = split_words(line.substr(at + key.size()));
  return words.size() > 1 && words[0].text == "=" ? parse_printed(words[1].text) : std::nullopt;
}

/// Adds a copy; false when size or bandwidth makes no sense.
bool add_copy(MeasuredLog& table, std::string kind, std::optional<std::int64_t> size, double bytes_per_s, int line) {
  if (!size || *size <= 0 || bytes_per_s <= 0) return false;
  MeasuredCopy copy;
  const double passes = contains(kind, "D2D") ? 2 : 1;
  copy.kind = std::move(kind);
  copy.size = Bytes{*size};
  copy.bandwidth = Bandwidth{bytes_per_s};
  copy.time = from_seconds(passes * static_cast<double>(*size) / bytes_per_s);
  copy.line = line;
  table.copies.push_back(std::move(copy));
  return true;
}

/// `bandwidthTest-H2D-Pinned, Bandwidth = 0.4 GB/s, Time = 0.00000 s, Size = 1000 bytes, NumDevsUsed = 1`
void read_csv_row(const LogText& log, const Line& line, double bytes_per_mb, MeasuredLog& table) {
  const auto start = line.text.find(k_csv_start) + k_csv_start.size();
  std::string kind = line.text.substr(start, line.text.find(',', start) - start);
  for (auto& c : kind) c = c == '-' ? ' ' : c;
  const auto bandwidth = value_of(line.text, "Bandwidth");
  const auto size = value_of(line.text, "Size");
  const double unit = unit_in(line.text, bytes_per_mb);
  const bool is_size_sound = size && size->value >= 1 && size->value < 9e18;
  const bool is_added =
      bandwidth && is_size_sound &&
      add_copy(table, std::move(kind), static_cast<std::int64_t>(size->value), bandwidth->value * unit, line.number);
  if (!is_added) add_warning(table, line_warning(log, line, "row lost: its size or bandwidth is missing or zero"));
}

}  // namespace

bool starts_cuda_bandwidth(std::string_view line) {
  return (contains(line, k_csv_start) && contains(line, "Bandwidth =")) || !direction_of_title(line).empty();
}

std::vector<MeasuredLog> read_cuda_bandwidth(const LogText& log, Lines section) {
  auto table = begin_table(log, LogFormat::cuda_bandwidth, section.empty() ? 0 : section.front().number);
  table.title = "bandwidthTest";
  std::string direction, memory;
  const double bytes_per_mb = bytes_per_mb_of(log, section, table);
  double unit = 0;
  for (const auto& line : section) {
    const auto words = split_words(line.text);
    if (contains(line.text, k_csv_start) && contains(line.text, "Bandwidth =")) {
      read_csv_row(log, line, bytes_per_mb, table);
    } else if (const auto title = direction_of_title(line.text); !title.empty()) {
      direction = title;
      unit = 0;
    } else if (contains(line.text, "Memory Transfers") && !words.empty()) {
      memory = lower(words[0].text);
    } else if (contains(line.text, "Transfer Size (Bytes)")) {
      unit = unit_in(line.text, bytes_per_mb);
    } else if (unit > 0 && words.size() == 2 && parse_count(words[0].text)) {
      const auto rate = parse_printed(words[1].text);
      const bool is_added = rate && add_copy(table, direction + " " + memory, parse_count(words[0].text),
                                             rate->value * unit, line.number);
      if (!is_added) add_warning(table, line_warning(log, line, "row lost: its size or bandwidth is missing or zero"));
    }
  }
  std::vector<MeasuredLog> tables;
  tables.push_back(std::move(table));
  return tables;
}

}  // namespace fabricast::readers
