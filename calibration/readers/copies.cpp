// SPDX-License-Identifier: Apache-2.0
// Copy timings in sections headed by `## NAME: column column ...`:
//
//   ## launch (us)                                                        launch_async 4.156
//   ## copy gpu0: bytes h2d_pinned_us d2h_pinned_us ...                   one row per size
//   ## peer copy p2p=1: src dst lat16B_us bw_256MiB_GBps                  one row per pair
//   ## concurrent pinned copies: dir k_gpus per_gpu_GBps...               one value per GPU that copies at once
#include <algorithm>
#include <charconv>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

enum class SectionKind { none, launch, by_size, peer, concurrent };

SectionKind kind_of(std::string_view line) {
  if (!line.starts_with("## ")) return SectionKind::none;
  line.remove_prefix(3);
  if (line.starts_with("launch (us)")) return SectionKind::launch;
  if (line.starts_with("copy gpu")) return SectionKind::by_size;
  if (line.starts_with("peer copy")) return SectionKind::peer;
  return line.starts_with("concurrent ") ? SectionKind::concurrent : SectionKind::none;
}

/// What a section's head says: name, first device, columns.
struct Head {
  SectionKind kind = SectionKind::none;
  std::string name;
  int device = 0;
  std::vector<std::string> columns;
};

Head parse_head(std::string_view line) {
  Head head;
  head.kind = kind_of(line);
  const auto colon = line.find(':');
  head.name = std::string(trim(line.substr(3, colon == std::string_view::npos ? colon : colon - 3)));
  head.device = count_after(line, "copy gpu").value_or(0);
  if (colon == std::string_view::npos) return head;
  for (const auto& word : split_words(line.substr(colon + 1))) head.columns.emplace_back(word.text);
  return head;
}

/// The size in a column's name: "lat16B_us" -> 16, "bw_256MiB_GBps" -> 256 MiB.
std::optional<Bytes> size_in(std::string_view column) {
  const auto digit = column.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  const auto end = column.find_first_not_of("0123456789", digit);
  const auto count = leading_count(column.substr(digit, end - digit));
  const auto unit = end == std::string_view::npos ? std::string_view{} : column.substr(end);
  if (!count) return std::nullopt;
  if (unit.starts_with("MiB")) return Bytes{*count} * (1 << 20);
  if (unit.starts_with("KiB")) return Bytes{*count} * (1 << 10);
  return unit.starts_with("B") ? std::optional(Bytes{*count}) : std::nullopt;
}

/// "h2d_pinned_us" -> "h2d pinned".
std::string kind_in(std::string_view column) {
  std::string kind(column.substr(0, column.rfind('_')));
  for (auto& c : kind) c = c == '_' ? ' ' : c;
  return kind;
}

MeasuredCopy copy_of(std::string kind, std::optional<Bytes> size, std::vector<int> devices, int line) {
  MeasuredCopy copy;
  copy.kind = std::move(kind);
  copy.size = size;
  copy.devices = std::move(devices);
  copy.line = line;
  return copy;
}

void set_time(MeasuredCopy& copy, double us) {
  copy.time = from_us(us);
  if (copy.size && copy.size->value > 0) copy.bandwidth = average_rate(*copy.size, *copy.time);
}

void set_bandwidth(MeasuredCopy& copy, double gigabytes_per_s) {
  copy.bandwidth = Bandwidth{gigabytes_per_s * 1e9};
  if (copy.size) copy.time = from_seconds(static_cast<double>(copy.size->value) / copy.bandwidth->bytes_per_s);
}

using Words = std::vector<Word>;

/// Reads a row; false when its words do not fit the head.
bool read_launch(const Words& words, int line, MeasuredLog& table) {
  const auto time = words.size() == 2 ? parse_printed(words[1].text) : std::nullopt;
  if (!time || time->value <= 0) return false;
  auto copy = copy_of(std::string(words[0].text), std::nullopt, {}, line);
  set_time(copy, time->value);
  table.copies.push_back(std::move(copy));
  return true;
}

bool read_by_size(const Head& head, const Words& words, int line, MeasuredLog& table) {
  const auto size = parse_count(words[0].text);
  if (!size || words.size() != head.columns.size()) return false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto time = parse_printed(words[i].text);
    if (!time || time->value <= 0) return false;
    auto copy = copy_of(kind_in(head.columns[i]), Bytes{*size}, {head.device}, line);
    set_time(copy, time->value);
    table.copies.push_back(std::move(copy));
  }
  return true;
}

bool read_peer(const Head& head, const Words& words, int line, MeasuredLog& table) {
  if (words.size() != head.columns.size() || words.size() < 3) return false;
  const auto source = leading_count(words[0].text);
  const auto target = leading_count(words[1].text);
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto number = parse_printed(words[i].text);
    if (!source || !target || !number || number->value <= 0) return false;
    auto copy = copy_of(head.name, size_in(head.columns[i]), {*source, *target}, line);
    if (head.columns[i].ends_with("GBps"))
      set_bandwidth(copy, number->value);
    else
      set_time(copy, number->value);
    table.copies.push_back(std::move(copy));
  }
  return true;
}

bool read_concurrent(const Head& head, const Words& words, int line, MeasuredLog& table) {
  const auto count = words.size() > 1 ? parse_count(words[1].text) : std::nullopt;
  if (!count || words.size() != static_cast<std::size_t>(std::min<std::int64_t>(*count, 1'000'000)) + 2) return false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto rate = parse_printed(words[i].text);
    if (!rate || rate->value <= 0) return false;
    auto copy = copy_of(head.name + " " + std::string(words[0].text), std::nullopt, {static_cast<int>(i - 2)}, line);
    set_bandwidth(copy, rate->value);
    copy.num_concurrent = static_cast<int>(*count);
    table.copies.push_back(std::move(copy));
  }
  return true;
}

bool read_copies_row(const Head& head, const Words& words, int line, MeasuredLog& table) {
  switch (head.kind) {
    case SectionKind::none:
      return true;
    case SectionKind::launch:
      return read_launch(words, line, table);
    case SectionKind::by_size:
      return read_by_size(head, words, line, table);
    case SectionKind::peer:
      return read_peer(head, words, line, table);
    case SectionKind::concurrent:
      return read_concurrent(head, words, line, table);
  }
  return true;
}

}  // namespace

bool starts_copies(std::string_view line) { return kind_of(line) != SectionKind::none; }

std::vector<MeasuredLog> read_copies(const LogText& log, Lines section) {
  auto table = begin_table(log, LogFormat::copies, section.empty() ? 0 : section.front().number);
  Head head;
  for (const auto& line : section) {
    const auto words = split_words(line.text);
    if (line.text.starts_with("#")) {
      if (line.text.starts_with("## ")) head = parse_head(line.text);
      if (const auto gpus = count_after(line.text, "# gpus")) table.header.num_ranks = gpus;
    } else if (!words.empty() && !read_copies_row(head, words, line.number, table)) {
      add_warning(table, line_warning(log, line, "row lost: its words do not fit the columns of the section"));
    }
  }
  std::vector<MeasuredLog> tables;
  tables.push_back(std::move(table));
  return tables;
}

}  // namespace fabricast::readers
