// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_row.hpp"

#include "readers/readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace fabricast::readers {
namespace {

constexpr std::size_t k_not_found = static_cast<std::size_t>(-1);

bool is_datatype(std::string_view word) {
  constexpr std::array<std::string_view, 18> k_types{"int8",   "char",   "uint8",   "int32",   "int",     "uint32",
                                                     "int64",  "uint64", "half",    "float",   "double",  "bfloat16",
                                                     "f8e4m3", "f8e5m2", "float16", "float32", "float64", "bf16"};
  return std::find(k_types.begin(), k_types.end(), word) != k_types.end() || word.starts_with("fp8");
}

bool is_time_column(std::string_view name) { return name == "time" || name == "cputime"; }

bool is_date_or_clock(std::string_view word) {
  const auto shape = [&](std::size_t at, char c) { return word.size() > at && word[at] == c; };
  return (word.size() == 10 && shape(4, '-') && shape(7, '-')) || (word.size() >= 8 && shape(2, ':') && shape(5, ':'));
}

/// A rank, or -1 for none.
std::optional<int> root_of(std::string_view word) {
  if (word == "-1") return -1;
  const auto rank = parse_count(word);
  return rank && *rank < 1'000'000 ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

/// Position of the size word: the first whole number followed by a count and a datatype.
std::size_t size_position(std::span<const Word> words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (is_datatype(words[i + 2].text) && parse_count(words[i].text) && parse_count(words[i + 1].text)) return i;
  }
  return k_not_found;
}

/// Columns after "type" and "redop" for a row whose header is lost.
Columns guess_columns(std::size_t num_words) {
  const bool has_root = num_words % 2 == 1;
  const std::size_t half = (num_words - (has_root ? 1 : 0)) / 2;
  Columns columns;
  if (has_root) columns.emplace_back("root");
  for (int i = 0; i < 2; ++i) {
    for (const char* name : {"time", "algbw", "busbw", "#wrong"}) columns.emplace_back(name);
    if (half < 8) continue;
    for (const char* name : {"i_min", "i_max", "i_p99", "i_cv%"}) columns.emplace_back(name);
  }
  return columns;
}

/// Columns after "type", without redop when the row has none.
Columns tail_columns(const Columns& header) {
  const auto type = std::find(header.begin(), header.end(), "type");
  if (type == header.end()) return {};
  Columns columns(type + 1, header.end());
  std::erase(columns, "redop");
  return columns;
}

/// The column names of the out-of-place and the in-place half; empty where the table has none.
struct Halves {
  std::span<const std::string> first, second;
};

Halves halves_of(const Columns& columns) {
  const auto first = std::find_if(columns.begin(), columns.end(), is_time_column);
  if (first == columns.end()) return {};
  const auto second = std::find_if(first + 1, columns.end(), is_time_column);
  return {{first, second}, {second, columns.end()}};
}

/// The values of one half (out of place or in place) by column.
struct Half {
  std::optional<Printed> time_us, algbw, busbw, min_us, max_us, p99_us, cv_percent;
  std::optional<std::int64_t> wrong;
  std::optional<bool> is_checked;  ///< false when #wrong is N/A
  bool is_cpu_time = false;        ///< -C: what the CPUs took to start the operation; algbw is of the wall time
};

Half read_half(std::span<const Word> words, std::span<const std::string> names) {
  Half half;
  for (std::size_t i = 0; i < std::min(words.size(), names.size()); ++i) {
    const auto number = parse_printed(words[i].text);
    const auto& name = names[i];
    if (name.ends_with("wrong") || name == "error") half.is_checked = number.has_value();
    if (name == "cputime") half.is_cpu_time = true;
    if (is_time_column(name))
      half.time_us = number;
    else if (name == "algbw")
      half.algbw = number;
    else if (name == "busbw")
      half.busbw = number;
    else if (name.ends_with("wrong") && number)
      half.wrong = std::llround(number->value);
    else if (name == "i_min")
      half.min_us = number;
    else if (name == "i_max")
      half.max_us = number;
    else if (name == "i_p99")
      half.p99_us = number;
    else if (name == "i_cv%")
      half.cv_percent = number;
  }
  return half;
}

/// What the printed algbw may deviate from size / time, within the digits printed of both, GB/s.
double slack_of(const Half& half, double algbw, double further = 0.005) {
  // 0.5 % beside the last digits: some versions round the size down to whole elements of all ranks.
  return half.algbw->half_unit * 1.01 + algbw * (half.time_us->relative_rounding() * 1.5 + further);
}

/// Puts the wall time, size / algbw, in place of the CPU's; false where algbw has too few digits for it.
bool use_wall_time(Bytes size, double scale, Half& half) {
  constexpr double k_most_rounding = 0.01;  // half of what calibrations take as the noise of one time
  const bool is_known = half.algbw && half.algbw->value > 0 && half.algbw->relative_rounding() <= k_most_rounding;
  if (!is_known || size.value <= 0) return false;
  const double us = scale * static_cast<double>(size.value) / (half.algbw->value * 1e3);
  half.time_us = Printed{us, us * half.algbw->relative_rounding()};
  return true;
}

/// bytes per us -> GB/s
double algbw_of(Bytes size, const Half& half) { return static_cast<double>(size.value) / (half.time_us->value * 1e3); }

/// True when the printed algbw is `scale` times what size / time gives.
bool is_consistent(Bytes size, const Half& half, double scale) {
  if (!half.time_us || half.time_us->value <= 0 || half.time_us->value > 1e12) return false;
  if (!half.algbw) return true;
  const double algbw = scale * algbw_of(size, half);
  return std::abs(half.algbw->value - algbw) <= slack_of(half, algbw);
}

/// Of a half that is_consistent() refuses.
std::optional<NcclRow::Scale> scale_of(Bytes size, const Half& half) {
  constexpr double k_least = 0.49;  // (n - 1) / n of two ranks
  if (!half.time_us || !half.algbw || !half.busbw || half.time_us->value <= 0 || size.value <= 0) return std::nullopt;
  const double algbw = algbw_of(size, half);
  const double scale = half.algbw->value / algbw;
  // Rounding to whole elements is no part of a MiB: there the digits tell the ranks apart.
  constexpr std::int64_t k_no_rounding = 1 << 20;
  const double slack = slack_of(half, half.algbw->value, size.value < k_no_rounding ? 0.005 : 1e-4) / algbw;
  const bool is_busbw = std::abs(half.busbw->value - half.algbw->value) <= half.algbw->half_unit * 1.01;
  if (!is_busbw || scale + slack < k_least || scale >= 1) return std::nullopt;
  return NcclRow::Scale{scale - slack, scale + slack};
}

void fill_primary(MeasuredRow& row, const Half& half) {
  row.time = from_us(half.time_us->value);
  if (half.algbw) row.printed_algbw = Bandwidth{half.algbw->value * 1e9};
  if (half.busbw) row.printed_busbw = Bandwidth{half.busbw->value * 1e9};
  if (half.min_us) row.min_time = from_us(half.min_us->value);
  if (half.max_us) row.max_time = from_us(half.max_us->value);
  if (half.p99_us) row.percentiles.push_back({0.99, from_us(half.p99_us->value)});
  if (half.cv_percent) row.std_dev = from_us(half.cv_percent->value / 100 * half.time_us->value);
  row.num_wrong = half.wrong;
}

/// Whether a row of one half only is the in-place half: nccl-tests then leaves the other half blank. A last line that
/// breaks off is the out-of-place half.
bool is_in_place_alone(const Line& line, std::span<const Word> words, std::size_t half_at) {
  constexpr std::size_t k_blank_half = 18;
  const auto& before = words[half_at - 1];
  const std::size_t gap = words[half_at].column - (before.column + before.text.size());
  return gap >= k_blank_half || line.is_terminated;
}

/// Fills the row from one or two halves at `words[half_at]`, or says what is wrong with it.
NcclRow with_halves(MeasuredRow row, const Line& line, std::span<const Word> words, std::size_t half_at,
                    const Columns& columns, double algbw_scale) {
  const auto halves = halves_of(columns);
  const std::size_t length = halves.first.size();
  auto values = words.subspan(half_at);
  Half first = read_half(values.first(std::min(length, values.size())), halves.first);
  if (!first.time_us) return {std::nullopt, "row has no time", {}};
  if (first.is_cpu_time && !use_wall_time(row.size, algbw_scale, first))
    return {std::nullopt, "row lost: its time is the CPU's, and algbw has too few digits for the wall time", {}};
  if (!is_consistent(row.size, first, algbw_scale))
    return {std::nullopt, "row lost: algbw is not size / time, so a digit or a column is missing",
            scale_of(row.size, first)};
  fill_primary(row, first);
  if (row.printed_algbw) row.printed_algbw->bytes_per_s /= algbw_scale;
  if (halves.second.empty()) return {std::move(row), {}, {}};
  if (values.size() == length && is_in_place_alone(line, words, half_at)) {
    row.in_place_time = row.time;
    row.is_in_place_only = true;
    return {std::move(row), {}, {}};
  }
  if (values.size() <= length) return {std::move(row), {}, {}};
  Half second = read_half(values.subspan(length), halves.second);
  if (second.is_cpu_time && !use_wall_time(row.size, algbw_scale, second)) return {std::move(row), {}, {}};
  const bool is_cut = !second.algbw || (values.size() == length + 2 && !line.is_terminated);
  if (!is_cut && is_consistent(row.size, second, algbw_scale)) row.in_place_time = from_us(second.time_us->value);
  if (first.is_checked.value_or(false)) row.is_in_place_checked = second.is_checked;
  return {std::move(row), {}, {}};
}

/// A row of a table from which the author cut columns: the header names all that is left.
NcclRow parse_trimmed_row(const Line& line, std::span<const Word> words, const Columns& columns, double algbw_scale) {
  if (words.size() != columns.size()) return {};
  const auto size_at = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), "size") - columns.begin());
  const auto time = std::find_if(columns.begin(), columns.end(), is_time_column);
  const auto size = parse_count(words[size_at].text);
  if (!size || time == columns.end()) return {};
  MeasuredRow row;
  row.size = {*size};
  row.line = line.number;
  const auto half_at = static_cast<std::size_t>(time - columns.begin());
  return with_halves(std::move(row), line, words, half_at, columns, algbw_scale);
}

}  // namespace

Columns nccl_header_columns(std::string_view line) {
  Columns columns;
  for (const auto& word : split_words(line)) {
    std::string name = lower(word.text);
    if (name.size() > 1 && name[0] == '#' && name != "#wrong") name.erase(0, 1);
    if (columns.empty() && name != "size") continue;
    columns.push_back(name == "wrong" ? "#wrong" : name);
  }
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  const bool has_time = std::any_of(columns.begin(), columns.end(), is_time_column);
  return has_time && has("algbw") && has("busbw") ? columns : Columns{};
}

NcclRow parse_nccl_row(const Line& line, const Columns& columns, double algbw_scale) {
  auto words = split_words(line.text);
  while (words.size() > 4 && is_date_or_clock(words.back().text)) words.pop_back();
  const std::size_t at = size_position(words);
  if (at == k_not_found) {
    const bool is_trimmed = !columns.empty() && std::find(columns.begin(), columns.end(), "type") == columns.end();
    return is_trimmed ? parse_trimmed_row(line, words, columns, algbw_scale) : NcclRow{};
  }
  const auto is_second_row = [](const Word& word) { return is_datatype(word.text); };
  if (std::any_of(words.begin() + static_cast<std::ptrdiff_t>(at) + 3, words.end(), is_second_row))
    return {std::nullopt, "row lost: two lines run into each other", {}};
  MeasuredRow row;
  row.size = {*parse_count(words[at].text)};
  row.count = parse_count(words[at + 1].text);
  row.datatype = words[at + 2].text;
  row.line = line.number;
  std::size_t next = at + 3;
  if (next < words.size() && !parse_printed(words[next].text)) row.reduction = words[next++].text;
  const std::size_t num_values = words.size() - next;
  Columns expected = tail_columns(columns);
  if (expected.empty()) expected = guess_columns(num_values);
  if (!expected.empty() && expected.front() == "root" && next < words.size()) row.root = root_of(words[next++].text);
  if (!line.is_terminated && num_values < expected.size()) words.pop_back();
  constexpr std::size_t k_fewest = 2;  // time algbw
  if (words.size() < next + k_fewest) return {std::nullopt, "row lost: it breaks off before its time is complete", {}};
  return with_halves(std::move(row), line, words, next, expected, algbw_scale);
}

}  // namespace fabricast::readers
