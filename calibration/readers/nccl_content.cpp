// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "readers/readers.hpp"

namespace fabricast::readers {

namespace {

using Set = std::set<Benchmark>;
using B = Benchmark;

constexpr double k_most_ranks = 1e6;

const Set& collectives() {
  static const Set all(nccl_collectives().begin(), nccl_collectives().end());
  return all;
}

void keep(Set& possible, const Set& kept) {
  std::erase_if(possible, [&](Benchmark one) { return !kept.contains(one); });
}

/// Numbers of ranks by (n - 1) / n between `low` and `high`.
RankInterval ranks_of_share(double low, double high) {
  const auto ranks = [](double share) { return 1 / std::max(1 - share, 1 / k_most_ranks); };
  return {ranks(low), ranks(high)};
}

bool holds_whole_number(const RankInterval& interval, std::optional<int> known) {
  if (known) return interval.low <= *known && *known <= interval.high;
  return std::max(2.0, std::ceil(interval.low)) <= interval.high;
}

// ---- old algbw ----------------------------------------------------------------------------------------------------

/// Ranks that the lost rows' scales allow.
RankInterval ranks_of_scales(const std::vector<RowLine>& lines) {
  NcclRow::Scale common{0, 1};
  for (const auto& line : lines) {
    if (!line.scale) continue;
    common.low = std::max(common.low, line.scale->low);
    common.high = std::min(common.high, line.scale->high);
  }
  return common.low > common.high ? RankInterval{1, 0} : ranks_of_share(common.low, common.high);
}

/// Every row under the old algbw of `ranks` ranks; empty when one contradicts it.
std::vector<MeasuredRow> rows_of_ranks(const std::vector<RowLine>& lines, int ranks) {
  std::vector<MeasuredRow> rows;
  for (const auto& line : lines) {
    auto read = parse_nccl_row(line.line, line.columns, (ranks - 1.0) / ranks);
    const bool is_row = line.scale || parse_nccl_row(line.line, line.columns).row;
    if (!read.row && is_row) return {};
    if (!read.row) continue;  // lost for another reason
    rows.push_back(std::move(*read.row));
  }
  return rows;
}

// ---- which collective ---------------------------------------------------------------------------------------------

Set by_reduction_and_root(const MeasuredRow& row) {
  if (row.datatype.empty()) return collectives();  // the author cut columns
  const bool reduces = !row.reduction.empty() && row.reduction != "none";
  if (row.root && *row.root >= 0)
    return reduces ? Set{B::reduce_perf} : Set{B::broadcast_perf, B::gather_perf, B::scatter_perf};
  Set all{B::all_reduce_perf, B::reduce_scatter_perf, B::sendrecv_perf};
  if (!reduces) all = {B::all_gather_perf, B::alltoall_perf};
  // Before the column of the root, send-receive printed no reduction either.
  if (!reduces && !row.root) all.insert(B::sendrecv_perf);
  return all;
}

Set by_in_place(const MeasuredRow& row) {
  if (!row.is_in_place_checked) return collectives();
  if (!*row.is_in_place_checked) return {B::alltoall_perf, B::sendrecv_perf};
  Set all = collectives();
  all.erase(B::alltoall_perf);
  all.erase(B::sendrecv_perf);
  return all;
}

/// Whether the count is the whole size, or a rank's share of it.
Set by_count(const MeasuredRow& row) {
  const auto share = row.count.value_or(0) * datatype_bytes(row.datatype);
  if (share <= 0 || row.size.value < share) return collectives();
  auto all = collectives();
  std::erase_if(all, [&](Benchmark one) { return counts_parts(one) == (row.size.value == share); });
  return all;
}

struct Ratio {
  double low = 0, high = 2;
};

/// busbw / algbw of the rows printed with digits enough.
Ratio printed_ratio(const MeasuredLog& table) {
  constexpr double k_half_unit = 0.0051e9;  // two decimals of GB/s
  Ratio common;
  for (const auto& row : table.rows) {
    if (!row.printed_algbw || !row.printed_busbw || row.printed_algbw->bytes_per_s < 1e9) continue;
    const double ratio = row.printed_busbw->bytes_per_s / row.printed_algbw->bytes_per_s;
    const double slack = k_half_unit * (1 + ratio) / row.printed_algbw->bytes_per_s;
    common.low = std::max(common.low, ratio - slack);
    common.high = std::min(common.high, ratio + slack);
  }
  return common;
}

Set by_ratio(const MeasuredLog& table) {
  const auto ratio = printed_ratio(table);
  if (ratio.low > ratio.high) return collectives();  // rows of several numbers of ranks
  // Device lines only: a header written by hand may be wrong.
  const auto known = table.header.ranks.empty() ? std::nullopt : table.header.num_ranks;
  Set possible;
  for (const auto one : collectives()) {
    const double at_two = bus_bandwidth_factor(one, 2);
    const bool is_constant = at_two == bus_bandwidth_factor(one, 4);
    const bool fits = is_constant
                          ? ratio.low <= 1 && 1 <= ratio.high
                          : holds_whole_number(ranks_of_share(ratio.low / at_two / 2, ratio.high / at_two / 2), known);
    if (fits) possible.insert(one);
  }
  return possible;
}

}  // namespace

int datatype_bytes(const std::string& datatype) {
  static const std::map<std::string, int> all{{"int8", 1},    {"char", 1},   {"uint8", 1},    {"half", 2},
                                              {"float16", 2}, {"bf16", 2},   {"bfloat16", 2}, {"int32", 4},
                                              {"int", 4},     {"uint32", 4}, {"float", 4},    {"float32", 4},
                                              {"int64", 8},   {"uint64", 8}, {"double", 8},   {"float64", 8}};
  const auto it = all.find(datatype);
  return it == all.end() ? 0 : it->second;
}

void read_scaled_rows(const LogText& log, const std::vector<RowLine>& lines, MeasuredLog& table) {
  const auto num_scaled =
      std::count_if(lines.begin(), lines.end(), [](const RowLine& l) { return l.scale.has_value(); });
  constexpr std::ptrdiff_t k_enough = 3;  // rows that agree by chance do not
  if (num_scaled < k_enough) return;
  const auto interval = ranks_of_scales(lines);
  if (interval.low > interval.high || !holds_whole_number(interval, table.header.num_ranks)) return;
  const int ranks = table.header.num_ranks.value_or(static_cast<int>(std::max(2.0, std::ceil(interval.low))));
  auto rows = rows_of_ranks(lines, ranks);
  if (rows.size() < static_cast<std::size_t>(num_scaled)) return;
  table.rows = std::move(rows);
  if (!table.header.num_ranks) table.header.num_ranks = interval.only();
  std::set<int> restored;
  for (const auto& line : lines) {
    if (line.scale) restored.insert(line.line.number);
  }
  std::erase_if(table.warnings, [&](const Diagnostic& one) { return restored.contains(one.location.line); });
  add_warning(table, {Severity::warning,
                      {log.name, table.line, 1},
                      fmt::format("algbw is size (n-1)/n / time with n = {}, as old versions print all_gather and "
                                  "reduce_scatter: {} rows are read by their times",
                                  ranks, num_scaled),
                      {},
                      {}});
}

std::vector<Benchmark> benchmarks_by_content(const MeasuredLog& table) {
  auto possible = by_ratio(table);
  for (const auto& row : table.rows) {
    keep(possible, by_reduction_and_root(row));
    keep(possible, by_in_place(row));
    keep(possible, by_count(row));
  }
  return {possible.begin(), possible.end()};
}

void recognise_benchmark(const std::string& file, MeasuredLog& table) {
  const auto possible = table.rows.empty() ? std::vector<Benchmark>() : benchmarks_by_content(table);
  const auto named = nccl_benchmark_of_file(file);
  const bool is_possible = named && std::find(possible.begin(), possible.end(), *named) != possible.end();
  if (named && (is_possible || possible.size() != 1)) {
    table.benchmark = named;
  } else if (possible.size() == 1) {
    table.benchmark = possible.front();
    if (!named) return;
    add_warning(table, {Severity::warning,
                        {file, table.line, 1},
                        fmt::format("the file is named for {}, its columns are of {}", to_string(*named),
                                    to_string(possible.front())),
                        {},
                        {}});
  } else if (possible.size() < collectives().size()) {
    table.possible_benchmarks = possible;
  }
}

}  // namespace fabricast::readers
