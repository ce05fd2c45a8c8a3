// SPDX-License-Identifier: Apache-2.0
// Tables of perftest (ib_write_bw and relatives). The unit of bandwidth stands in the header only: MB/sec and MiB/sec
// are both 2^20 B/s, Gb/sec is 1e9 bit/s. Write and send latencies are half a round trip, read latencies the whole.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

/// Bytes per second of one unit of a bandwidth column; 0 when the unit is unknown.
double unit_of(std::string_view column) {
  if (contains(column, "[mb/sec]") || contains(column, "[mib/sec]")) return 0x1p20;
  if (contains(column, "[gb/sec]")) return 1e9 / 8;
  return 0;
}

/// Column names in lower case without blanks: "bytes", "bwaverage[mb/sec]", "99%percentile[usec]".
std::vector<std::string> perftest_columns(std::string_view line) {
  std::vector<std::string> columns;
  std::string name;
  for (const auto& word : split_words(line)) {
    name += lower(word.text);
    if (name.starts_with("#")) name.erase(0, 1);
    const bool is_complete =
        name.ends_with("]") || name == "bytes" || name == "iterations" || name == "sl" || name == "tpsaverage";
    if (is_complete) columns.push_back(std::exchange(name, {}));
  }
  const auto is_measure = [](const std::string& c) { return unit_of(c) > 0 || c.ends_with("[usec]"); };
  const bool is_header =
      columns.size() >= 2 && columns[0] == "bytes" && std::any_of(columns.begin(), columns.end(), is_measure);
  return is_header ? columns : std::vector<std::string>{};
}

/// The word after `key` and a colon.
std::string setting(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  auto rest = trim(line.substr(at + key.size()));
  if (!rest.starts_with(':')) return {};
  const auto words = split_words(rest.substr(1));
  return words.empty() ? std::string{} : std::string(words[0].text);
}

/// The memory that a line of perftest's GPU code speaks of (src/cuda_memory.c, rocm_memory.c); without such lines
/// buffers are the host's.
std::optional<BufferPlace> memory_in(std::string_view line) {
  constexpr std::array<std::string_view, 8> k_signs{"use_cuda",     "use_rocm",          "initializing CUDA",
                                                    "cuMemAlloc()", "creating CUDA Ctx", "allocated GPU buffer",
                                                    "CUDA device ", "Using ROCm Device"};
  if (contains(line, "Host allocation selected") || contains(line, "CUDA_MEM_MALLOC")) return BufferPlace::host;
  const bool is_of_gpu = std::any_of(k_signs.begin(), k_signs.end(), [&](auto sign) { return contains(line, sign); });
  return is_of_gpu ? std::optional(BufferPlace::device) : std::nullopt;
}

void read_settings(std::string_view line, MeasuredLog& table) {
  auto& header = table.header;
  if (const auto qps = count_after(line, "Number of qps")) header.queue_pairs = qps;
  if (const auto depth = count_after(line, "TX depth")) header.tx_depth = depth;
  if (const auto mtu = count_after(line, "Mtu ")) header.mtu = Bytes{*mtu};
  if (auto device = setting(line, "Device "); !device.empty()) header.device = device;
  if (auto type = setting(line, "Connection type"); !type.empty()) header.connection_type = type;
  if (auto type = setting(line, "Link type"); !type.empty()) header.link_type = type;
  if (const auto messages = count_after(line, "Post List ")) header.post_list = messages;
  if (setting(line, "Dual-port") == "ON") header.is_dual_port = true;
  if (const auto memory = memory_in(line)) header.send_buffer = header.receive_buffer = memory;
  if (!table.benchmark && table.other_test.empty()) table.benchmark = benchmark_in(line);
}

void read_perftest_column(const std::string& column, const Printed& number, MeasuredRow& row, PrintedRate& rate) {
  const double unit = unit_of(column);
  if (column.starts_with("bwaverage"))
    rate.bytes_per_s = Printed{number.value * unit, number.half_unit * unit};
  else if (column.starts_with("bwpeak") && number.value > 0)
    row.peak_bandwidth = Bandwidth{number.value * unit};
  else if (column.starts_with("msgrate[mpps]"))
    rate.messages_per_s = Printed{number.value * 1e6, number.half_unit * 1e6};
  else if (column == "t_avg[usec]")
    row.time = from_us(number.value);
  else if (column == "t_typical[usec]")
    row.typical_time = from_us(number.value);
  else if (column == "t_min[usec]")
    row.min_time = from_us(number.value);
  else if (column == "t_max[usec]")
    row.max_time = from_us(number.value);
  else if (column == "t_stdev[usec]")
    row.std_dev = from_us(number.value);
  else if (column == "iterations")
    row.num_iterations = std::llround(std::min(number.value, 1e15));
  else if (contains(column, "%percentile")) {
    const auto share = parse_printed(column.substr(0, column.find('%')));
    if (share) row.percentiles.push_back({share->value / 100, from_us(number.value)});
  }
}

void read_perftest_row(const LogText& log, const Line& line, const std::vector<std::string>& columns,
                       MeasuredLog& table) {
  const auto words = split_words(line.text);
  const auto size = parse_count(words[0].text);
  if (!size) return;
  MeasuredRow row;
  row.size = {*size};
  row.line = line.number;
  if (words.size() > columns.size()) {
    return add_warning(table, line_warning(log, line, "row lost: it has more words than the table has columns"));
  }
  PrintedRate rate;
  const bool may_be_cut = !line.is_terminated && words.size() < columns.size();
  for (std::size_t i = 1; i + (may_be_cut ? 1 : 0) < words.size(); ++i) {
    const auto number = parse_printed(words[i].text);
    if (number && number->value >= 0) read_perftest_column(columns[i], *number, row, rate);
  }
  if (table.header.unit != "usec") {
    if (!set_rates(row, rate)) {
      return add_warning(table, line_warning(log, line, "row lost: its bandwidth is zero, or not size x message rate"));
    }
  } else if (row.time.ps <= 0) {
    if (!row.typical_time) return add_warning(table, line_warning(log, line, "row lost: it has no average latency"));
    row.time = *row.typical_time;
  }
  table.rows.push_back(std::move(row));
}

/// The unit of the fitted column, as the header spells it.
std::string unit_text(std::string_view line) {
  for (const std::string_view unit : {"MB/sec", "MiB/sec", "Gb/sec"}) {
    if (contains(line, unit)) return std::string(unit);
  }
  return "usec";
}

void close_perftest_table(const LogText& log, MeasuredLog& table, std::vector<MeasuredLog>& tables) {
  if (table.rows.empty() && table.title.empty() && table.warnings.empty()) return;
  table.header.num_ranks = 2;
  if (table.header.connection_type == "RawEth") {  // raw_ethernet_* print the titles of send
    table.other_test = "raw Ethernet, " + table.title;
    table.benchmark.reset();
  }
  complete_from_provenance(log, table);
  if (!table.header.send_buffer) table.header.send_buffer = table.header.receive_buffer = BufferPlace::host;
  tables.push_back(std::move(table));
}

/// What stands above a title or behind the rows of the table before it belongs to the title's test; what a program
/// prints while it ends belongs to the rows above.
struct AboveTitle {
  std::optional<Benchmark> benchmark;
  std::optional<BufferPlace> memory;
};

void note_above_title(std::string_view line, AboveTitle& above) {
  if (const auto named = benchmark_in(line)) above.benchmark = named;
  if (const auto memory = memory_in(line)) above.memory = memory;
}

void begin_perftest_table(const PerftestTitle& title, const AboveTitle& above, MeasuredLog& table) {
  table.title = std::string(title.text);
  table.benchmark = title.benchmark;
  if (!table.benchmark) table.other_test = table.title;
  table.header.is_bidirectional = title.is_bidirectional;
  if (above.memory) table.header.send_buffer = table.header.receive_buffer = above.memory;
}

/// A header without a title below rows: the same test, or the one that a command line between them names.
MeasuredLog repeated_perftest_table(const LogText& log, const Line& line, MeasuredLog& before, const AboveTitle& above,
                                    std::vector<MeasuredLog>& tables) {
  auto table = begin_table(log, LogFormat::perftest, line.number);
  const bool is_other = above.benchmark && above.benchmark != before.benchmark;
  table.benchmark = is_other ? above.benchmark : before.benchmark;
  if (!is_other) {
    table.title = before.title;
    table.other_test = before.other_test;
    table.header = before.header;
  }
  if (above.memory) table.header.send_buffer = table.header.receive_buffer = above.memory;
  close_perftest_table(log, before, tables);
  return table;
}

}  // namespace

std::optional<PerftestTitle> perftest_title(std::string_view line) {
  line = trim(line);
  if (!line.ends_with(" Test")) return std::nullopt;
  const auto words = split_words(line);
  constexpr std::array<std::string_view, 5> k_verbs{"RDMA_Write", "RDMA_Read", "Send", "Atomic", "Raw"};
  const auto first = words.front().text;
  const bool is_verb = std::any_of(k_verbs.begin(), k_verbs.end(), [&](auto verb) {
    return first.starts_with(verb) && (first.size() == verb.size() || first[verb.size()] == '_');
  });
  const auto has = [&](std::string_view word) {
    return std::any_of(words.begin(), words.end(), [&](const Word& one) { return one.text == word; });
  };
  const bool is_bandwidth = has("BW");
  if (!is_verb || !(is_bandwidth || has("Latency"))) return std::nullopt;
  PerftestTitle title{line, std::nullopt, has("Bidirectional")};
  // Multicast and forwarding send elsewhere than to the one receiver.
  constexpr std::array<std::string_view, 6> k_plain{"Bidirectional", "Post", "List", "BW", "Latency", "Test"};
  const bool is_plain = std::all_of(words.begin() + 1, words.end(), [&](const Word& one) {
    return std::find(k_plain.begin(), k_plain.end(), one.text) != k_plain.end();
  });
  if (!is_plain) return title;
  if (first == "RDMA_Write") title.benchmark = is_bandwidth ? Benchmark::ib_write_bw : Benchmark::ib_write_lat;
  if (first == "RDMA_Read") title.benchmark = is_bandwidth ? Benchmark::ib_read_bw : Benchmark::ib_read_lat;
  if (first == "Send") title.benchmark = is_bandwidth ? Benchmark::ib_send_bw : Benchmark::ib_send_lat;
  return title;
}

bool starts_perftest(std::string_view line) {
  return perftest_title(line).has_value() || !perftest_columns(line).empty();
}

std::vector<MeasuredLog> read_perftest(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  auto table = begin_table(log, LogFormat::perftest, section.empty() ? 0 : section.front().number);
  std::vector<std::string> columns;
  AboveTitle above;
  for (const auto& line : section) {
    if (const auto title = perftest_title(line.text)) {
      close_perftest_table(log, table, tables);
      table = begin_table(log, LogFormat::perftest, line.number);
      columns.clear();
      begin_perftest_table(*title, std::exchange(above, {}), table);
    } else if (auto header = perftest_columns(line.text); !header.empty()) {
      if (!table.rows.empty()) table = repeated_perftest_table(log, line, table, std::exchange(above, {}), tables);
      columns = std::move(header);
      table.header.unit = unit_text(line.text);
    } else if (const auto words = split_words(line.text);
               !columns.empty() && !words.empty() && parse_count(words[0].text)) {
      read_perftest_row(log, line, columns, table);
    } else {
      if (table.rows.empty()) read_settings(line.text, table);
      if (!table.rows.empty() || table.title.empty()) note_above_title(line.text, above);
    }
  }
  close_perftest_table(log, table, tables);
  return tables;
}

}  // namespace fabricast::readers
