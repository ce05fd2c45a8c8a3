// SPDX-License-Identifier: Apache-2.0
// read_logs(): cuts a log into sections at the lines where a table of a known program begins, hands each to its reader,
// and returns the tables in file order.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/sha256.hpp"
#include "readers/line_prefix.hpp"
#include "readers/readers.hpp"

namespace fabricast {
namespace {

using readers::Lines;
using readers::LogText;

struct Reader {
  bool (*starts)(std::string_view line);
  std::vector<MeasuredLog> (*read)(const LogText& log, Lines section);
};

constexpr std::array k_readers{
    Reader{readers::starts_forecast, readers::read_forecast},
    Reader{readers::starts_communication_csv, readers::read_communication_csv},
    Reader{readers::starts_nccl_tests, readers::read_nccl_tests},
    Reader{readers::starts_osu, readers::read_osu},
    Reader{readers::starts_perftest, readers::read_perftest},
    Reader{readers::starts_p2p_matrix, readers::read_p2p_matrix},
    Reader{readers::starts_cuda_bandwidth, readers::read_cuda_bandwidth},
    Reader{readers::starts_copies, readers::read_copies},
    Reader{readers::starts_iperf3, readers::read_iperf3},
    Reader{readers::starts_sockperf, readers::read_sockperf},
    Reader{readers::starts_training, readers::read_training},
};

bool starts_table(std::string_view line) {
  return std::any_of(k_readers.begin(), k_readers.end(), [&](const Reader& reader) { return reader.starts(line); });
}

/// Consecutive lines for one reader.
struct Section {
  const Reader* reader = nullptr;
  std::size_t begin = 0, end = 0;
};

/// Lines above the first table go with it: they hold command lines and settings.
std::vector<Section> sections_of(const LogText& log) {
  std::vector<Section> sections;
  for (std::size_t i = 0; i < log.lines.size(); ++i) {
    const auto reader =
        std::find_if(k_readers.begin(), k_readers.end(), [&](const Reader& r) { return r.starts(log.lines[i].text); });
    if (reader == k_readers.end() || (!sections.empty() && sections.back().reader == &*reader)) continue;
    if (!sections.empty()) sections.back().end = i;
    sections.push_back({&*reader, sections.empty() ? 0 : i, log.lines.size()});
  }
  return sections;
}

Diagnostic fault_of(const std::string& name, std::string message) {
  return {Severity::error, {name, 0, 0}, std::move(message), {}, {}};
}

Diagnostic no_table(const std::string& name) {
  auto fault = fault_of(name, fmt::format("no benchmark table in '{}'", name));
  fault.notes.push_back(
      {"known are the outputs of nccl-tests, OSU micro-benchmarks, perftest and iperf3 (text and JSON), sockperf, "
       "p2pBandwidthLatencyTest, bandwidthTest, NCCL's TUNING lines, aiconfigurator's times of NCCL, tables of "
       "training steps and what `fabricast run` prints",
       {}});
  return fault;
}

Diagnostics world_fault(const std::string& path, const std::string& reason) {
  return {fault_of(path, fmt::format("cannot read '{}': {}", path, reason))};
}

/// The whole file; devices and pipes included, none without end.
Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return tl::make_unexpected(world_fault(path, "it is a directory"));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return tl::make_unexpected(world_fault(path, std::strerror(errno)));
  constexpr std::size_t k_largest_file = std::size_t{256} << 20;
  std::string text;
  std::array<char, 1 << 16> chunk{};
  while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > k_largest_file) return tl::make_unexpected(world_fault(path, "it is larger than 256 MiB"));
  }
  return text;
}

bool is_json(std::string_view text) {
  const auto at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return at != std::string_view::npos && text[at] == '{';
}

/// The program that unpacks such a text, by its first bytes; nullptr for one that is not compressed.
const char* compressor_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> k_signs{
      {{"\x1f\x8b", "gunzip"}, {"\x28\xb5\x2f\xfd", "unzstd"}, {"\xfd\x37zXZ", "unxz"}, {"BZh", "bunzip2"}}};
  const auto sign =
      std::find_if(k_signs.begin(), k_signs.end(), [&](const auto& s) { return text.starts_with(s.first); });
  return sign == k_signs.end() ? nullptr : sign->second;
}

Result<MeasuredLog> only_table(Result<std::vector<MeasuredLog>> tables) {
  if (!tables) return tl::make_unexpected(std::move(tables.error()));
  auto with_rows = std::find_if(tables->begin(), tables->end(), [](const auto& t) { return !t.rows.empty(); });
  auto& table = with_rows == tables->end() ? tables->front() : *with_rows;
  const auto num_tables = std::count_if(tables->begin(), tables->end(), [](const auto& t) { return !t.rows.empty(); });
  if (num_tables > 1) {
    Diagnostic warning{Severity::warning, {table.file, table.line, 1}, {}, {}, {}};
    warning.message = fmt::format("the log has {} tables; the one that begins here is used", num_tables);
    table.warnings.insert(table.warnings.begin(), std::move(warning));
  }
  return std::move(table);
}

/// A rate next to nothing is no measurement.
void drop_rows_past_range(MeasuredLog& table, const std::string& name) {
  std::erase_if(table.rows, [&](const MeasuredRow& row) {
    if (!row.time.is_past_range()) return false;
    auto warning = fault_of(name, "row lost: its time is longer than 106 days");
    warning.severity = Severity::warning;
    warning.location.line = row.line;
    readers::add_warning(table, std::move(warning));
    return true;
  });
}

}  // namespace

Result<std::vector<MeasuredLog>> read_logs_text(std::string_view text, const std::string& name) {
  if (const auto* program = compressor_of(text); program != nullptr)
    return tl::make_unexpected(
        world_fault(name, fmt::format("it is compressed; unpack it first, e.g. by {}", program)));
  std::vector<MeasuredLog> tables;
  if (is_json(text)) tables = readers::read_json(text.substr(text.find('{')), name);
  if (!tables.empty()) {
    for (auto& table : tables) drop_rows_past_range(table, name);
    return tables;
  }
  auto log = readers::split_log(text, name);
  readers::drop_labels(log.lines, starts_table);
  for (const auto& section : sections_of(log)) {
    const auto lines = Lines(log.lines).subspan(section.begin, section.end - section.begin);
    for (auto& table : section.reader->read(log, lines)) tables.push_back(std::move(table));
  }
  for (auto& table : tables) drop_rows_past_range(table, name);
  readers::name_workloads(log, tables);
  readers::add_environments(log, tables);
  if (auto tuning = readers::read_nccl_tuning(log)) tables.push_back(std::move(*tuning));
  if (tables.empty()) return tl::make_unexpected(Diagnostics{no_table(name)});
  return tables;
}

Result<std::vector<MeasuredLog>> read_logs(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::make_unexpected(text.error());
  auto tables = read_logs_text(*text, path);
  if (!tables) return tables;
  const auto sum = sha256_of_text(*text);
  for (auto& table : *tables) table.sha256 = sum;
  return tables;
}

Result<MeasuredLog> read_log_text(std::string_view text, const std::string& name) {
  return only_table(read_logs_text(text, name));
}

Result<MeasuredLog> read_log(const std::string& path) { return only_table(read_logs(path)); }

}  // namespace fabricast
