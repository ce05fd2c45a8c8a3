// SPDX-License-Identifier: Apache-2.0
// Tables of the OSU micro-benchmarks, all versions. Columns are found by their header, in lower case without blanks,
// since its wording moves between versions: "Latency (us)", "Avg Latency(us)", "P99 Tail Lat(us)", "MB/s". MB is 1e6 B.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr double k_megabyte = 1e6;

/// Column names of a header line: words up to one that ends in a unit, joined ("avglatency(us)"). Words behind the last
/// of them are columns of their own, as a forecast's table and scripts that add to a table write them.
std::vector<std::string> osu_header_columns(std::string_view line) {
  line = trim(line);
  if (line.starts_with("#")) line = trim(line.substr(1));
  std::vector<std::string> columns, further;
  std::string name;
  for (const auto& word : split_words(line)) {
    further.push_back(lower(word.text));
    name += further.back();
    constexpr std::array<std::string_view, 6> k_alone{"size",       "iterations", "mb/s",
                                                      "messages/s", "validation", "validated"};
    const bool is_complete = name.ends_with(")") || std::find(k_alone.begin(), k_alone.end(), name) != k_alone.end();
    if (!is_complete) continue;
    columns.push_back(std::exchange(name, {}));
    further.clear();
  }
  const auto is_measure = [](const std::string& c) { return c.ends_with("(us)") || contains(c, "mb/s"); };
  const bool is_header = !columns.empty() && std::any_of(columns.begin(), columns.end(), is_measure) &&
                         (columns[0] == "size" || contains(columns[0], "latency(us)"));
  if (!is_header) return {};
  columns.insert(columns.end(), further.begin(), further.end());
  return columns;
}

/// The test's words of a title: "OSU MPI-CUDA Allreduce Latency Test v7.2" -> "allreduce latency".
std::optional<std::string> osu_title(std::string_view line) {
  line = trim(line);
  while (line.starts_with("#")) line = trim(line.substr(1));
  const bool is_maker = line.starts_with("OSU ") || line.starts_with("OMB-Py ");
  if (!is_maker || !contains(line, " Test")) return std::nullopt;
  return std::string(line);
}

/// Nothing for a test that is not forecast: one-sided (`MPI_Put`), of another library (`OpenSHMEM`, `UPC`, `NCCL`),
/// non-blocking, persistent, of vectors, with threads, of Python (OMB-Py).
std::optional<Benchmark> benchmark_of_title(const std::string& title) {
  const auto first = title.find(' ', 4);
  const auto end = title.find(" Test");
  if (!title.starts_with("OSU ") || first == std::string::npos || end <= first) return std::nullopt;
  const std::string words = lower(title.substr(first + 1, end - first - 1));
  const std::string library = title.substr(4, first - 4);
  if (library != "MPI" && !library.starts_with("MPI-")) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, Benchmark>, 16> k_titles{{
      {"latency", Benchmark::osu_latency},
      {"bandwidth", Benchmark::osu_bw},
      {"bi-directional bandwidth", Benchmark::osu_bibw},
      {"multi latency", Benchmark::osu_multi_lat},
      {"multi-pair latency", Benchmark::osu_multi_lat},
      {"multiple bandwidth / message rate", Benchmark::osu_mbw_mr},
      {"allreduce latency", Benchmark::osu_allreduce},
      {"allgather latency", Benchmark::osu_allgather},
      {"reduce_scatter latency", Benchmark::osu_reduce_scatter},
      {"broadcast latency", Benchmark::osu_bcast},
      {"reduce latency", Benchmark::osu_reduce},
      {"all-to-all personalized exchange latency", Benchmark::osu_alltoall},
      {"alltoall latency", Benchmark::osu_alltoall},
      {"gather latency", Benchmark::osu_gather},
      {"scatter latency", Benchmark::osu_scatter},
      {"barrier latency", Benchmark::osu_barrier},
  }};
  const auto it = std::find_if(k_titles.begin(), k_titles.end(), [&](const auto& t) { return t.first == words; });
  return it == k_titles.end() ? std::nullopt : std::optional(it->second);
}

void read_title(const std::string& title, MeasuredLog& table) {
  table.title = title;
  table.benchmark = benchmark_of_title(title);
  if (!table.benchmark) table.other_test = title;
  const auto maker = title.substr(4, title.find(' ', 4) - 4);  // "MPI-CUDA"
  if (const auto dash = maker.find('-'); dash != std::string::npos) table.header.accelerator = maker.substr(dash + 1);
  const auto version = title.rfind(" v");
  if (version != std::string::npos) table.header.tool_version = std::string(trim(title.substr(version + 2)));
  const bool is_pair = table.benchmark == Benchmark::osu_latency || table.benchmark == Benchmark::osu_bw ||
                       table.benchmark == Benchmark::osu_bibw;
  if (is_pair) table.header.num_ranks = 2;
  const auto place = table.header.accelerator.empty() || is_pair ? BufferPlace::host : BufferPlace::device;
  table.header.send_buffer = table.header.receive_buffer = place;
}

void read_buffers(std::string_view line, MeasuredHeader& header) {
  const auto send = line.find("Send Buffer on ");
  const auto receive = line.find("Receive Buffer on ");
  if (send == std::string_view::npos || receive == std::string_view::npos) return;
  const auto place = [&](std::string_view rest) {
    if (rest.starts_with("MANAGED")) header.is_managed_memory = true;
    return rest.starts_with("HOST") ? BufferPlace::host : BufferPlace::device;
  };
  header.send_buffer = place(line.substr(send + 15));
  header.receive_buffer = place(line.substr(receive + 18));
}

void read_comment(std::string_view line, MeasuredLog& table) {
  read_buffers(line, table.header);
  if (const auto pairs = count_after(line, "pairs")) {
    table.header.pairs = pairs;
    table.header.num_ranks = 2 * *pairs;
  }
  if (const auto window = count_after(line, "window size")) table.header.window = window;
}

/// What one column says about the row.
void read_osu_column(const std::string& column, const Printed& number, MeasuredRow& row, PrintedRate& rate) {
  if (column == "latency(us)" || column == "avglatency(us)" || column == "overall(us)")
    row.time = from_us(number.value);
  else if (column == "minlatency(us)" || column == "mincomm.(us)")
    row.min_time = from_us(number.value);
  else if (column == "maxlatency(us)" || column == "maxcomm.(us)")
    row.max_time = from_us(number.value);
  else if (column == "compute(us)")
    row.compute_time = from_us(number.value);
  else if (column == "purecomm.(us)")
    row.pure_communication_time = from_us(number.value);
  else if (column == "overlap(%)")
    row.overlap = number.value / 100;
  else if (column == "iterations")
    row.num_iterations = std::llround(std::min(number.value, 1e15));
  else if (column == "messages/s")
    rate.messages_per_s = number;
  else if (column == "mb/s" || column == "bandwidth(mb/s)")
    rate.bytes_per_s = Printed{number.value * k_megabyte, number.half_unit * k_megabyte};
  else if (column.starts_with("p") && contains(column, "taillat(us)")) {
    const auto share = parse_printed(column.substr(1, column.find("tail") - 1));
    if (share) row.percentiles.push_back({share->value / 100, from_us(number.value)});
  }
}

/// Of a row: those of the head; where this names the average alone (OMB 7.3), rows of osu -f have its other columns
/// too.
std::vector<std::string> columns_of_row(const std::vector<Word>& words, const std::vector<std::string>& head) {
  static const std::vector<std::string> k_full{"size", "avglatency(us)", "minlatency(us)", "maxlatency(us)",
                                               "iterations"};
  const bool is_shortened = head.size() == 2 && std::equal(head.begin(), head.end(), k_full.begin());
  if (!is_shortened || words.size() != k_full.size() || !parse_count(words[4].text)) return head;
  const auto average = parse_printed(words[1].text), least = parse_printed(words[2].text),
             most = parse_printed(words[3].text);
  const bool is_full = average && least && most && least->value <= average->value && average->value <= most->value;
  return is_full ? k_full : head;
}

bool is_number_row(const std::vector<Word>& words) {
  return !words.empty() && parse_printed(words[0].text).has_value();
}

/// Reads a row; adds a warning when it cannot.
void read_osu_row(const LogText& log, const Line& line, const std::vector<std::string>& head, MeasuredLog& table) {
  const auto words = split_words(line.text);
  const auto columns = columns_of_row(words, head);
  MeasuredRow row;
  row.line = line.number;
  if (columns[0] == "size") {
    const auto size = parse_count(words[0].text);
    if (!size) return add_warning(table, line_warning(log, line, "row lost: the size is not a whole number"));
    row.size = {*size};
  }
  PrintedRate rate;
  const bool may_be_cut = !line.is_terminated && words.size() < columns.size();
  const std::size_t num_words = std::min(words.size() - (may_be_cut ? 1 : 0), columns.size());
  for (std::size_t i = columns[0] == "size" ? 1 : 0; i < num_words; ++i) {
    const auto number = parse_printed(words[i].text);
    if (number && number->value >= 0) read_osu_column(columns[i], *number, row, rate);
    if (columns[i] == "validation" && words[i].text == "Fail") row.num_wrong = 1;  // osu -c says no number
  }
  const bool is_bandwidth_row = rate.bytes_per_s || rate.messages_per_s;
  if (is_bandwidth_row && !set_rates(row, rate)) {
    return add_warning(table,
                       line_warning(log, line, "row lost: its bandwidth is zero, or not size x messages per second"));
  }
  if (row.time.ps <= 0) return add_warning(table, line_warning(log, line, "row lost: it has no time or bandwidth"));
  if (words.size() > columns.size() && columns.back() != "protocol") {  // of a forecast: "eager gdr"
    return add_warning(table, line_warning(log, line, "row lost: it has more words than the table has columns"));
  }
  table.rows.push_back(std::move(row));
}

void close_osu_table(const LogText& log, MeasuredLog& table, std::vector<MeasuredLog>& tables) {
  if (table.rows.empty() && table.title.empty() && table.warnings.empty()) return;
  complete_from_provenance(log, table);
  tables.push_back(std::move(table));
}

/// A header repeated without a title: the same test as far as the log says.
MeasuredLog repeated_osu_table(const LogText& log, const Line& line, MeasuredLog& before,
                               std::vector<MeasuredLog>& tables) {
  auto table = begin_table(log, LogFormat::osu, line.number);
  table.title = before.title;
  table.benchmark = before.benchmark;
  table.other_test = before.other_test;
  table.header = before.header;
  close_osu_table(log, before, tables);
  return table;
}

}  // namespace

bool starts_osu(std::string_view line) { return osu_title(line).has_value() || !osu_header_columns(line).empty(); }

std::vector<MeasuredLog> read_osu(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  MeasuredLog table = begin_table(log, LogFormat::osu, section.empty() ? 0 : section.front().number);
  std::vector<std::string> columns;
  for (const auto& line : section) {
    if (const auto title = osu_title(line.text)) {
      close_osu_table(log, table, tables);
      table = begin_table(log, LogFormat::osu, line.number);
      columns.clear();
      read_title(*title, table);
    } else if (auto header = osu_header_columns(line.text); !header.empty()) {
      if (!table.rows.empty()) table = repeated_osu_table(log, line, table, tables);
      columns = std::move(header);
      const bool is_rate =
          std::any_of(columns.begin(), columns.end(), [](const auto& c) { return contains(c, "mb/s"); });
      table.header.unit = is_rate ? "MB/s" : "us";
      if (contains(lower(line.text), "transmit size")) {  // -D: packed on the way, less is sent than the size
        table.other_test = table.title + " of a derived data type";
        table.benchmark.reset();
      }
    } else if (!columns.empty() && is_number_row(split_words(line.text))) {
      read_osu_row(log, line, columns, table);
    } else {
      read_comment(line.text, table);
    }
  }
  close_osu_table(log, table, tables);
  return tables;
}

}  // namespace fabricast::readers
