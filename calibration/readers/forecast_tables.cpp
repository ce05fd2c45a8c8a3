// SPDX-License-Identifier: Apache-2.0
// What `fabricast run` prints: its JSON and CSV of every benchmark, its text of those whose programs print no table (or
// another one): times and rates of copies, steps and sockets, clients of a shared GPU, remote GPUs, migrations,
// traffic. Rows are keyed as the forecast keys them: bytes, GPUs of a step, the number of a client from 1. Whoever
// measured such a thing writes his times into the same columns.
#include <algorithm>
#include <array>
#include <cmath>

#include "readers/json_values.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

/// `# fabricast 0.1.0: forecast of NAME (BENCHMARK), ...`
struct ForecastTitle {
  std::string name;
  Benchmark benchmark = Benchmark::iperf3;
};

std::optional<ForecastTitle> forecast_title(std::string_view line) {
  constexpr std::string_view k_forecast = ": forecast of ";
  const auto at = line.find(k_forecast);
  if (!line.starts_with("# fabricast ") || at == std::string_view::npos) return std::nullopt;
  const auto close = line.find("), ", at);
  const auto open = line.rfind(" (", close);
  if (open == std::string_view::npos || close == std::string_view::npos || open < at + k_forecast.size())
    return std::nullopt;
  const auto benchmark = benchmark_from_name(line.substr(open + 2, close - open - 2));
  if (!benchmark) return std::nullopt;
  const auto begin = at + k_forecast.size();
  return ForecastTitle{std::string(line.substr(begin, open - begin)), *benchmark};
}

/// Whether its text is a table that no other reader knows.
bool has_own_table(Benchmark benchmark) {
  const auto family = family_of(benchmark);
  return family == BenchmarkFamily::system || family == BenchmarkFamily::sharing || family == BenchmarkFamily::traffic;
}

MeasuredLog forecast_table(const LogText& log, std::optional<Benchmark> benchmark, std::string name, int line) {
  auto table = begin_table(log, LogFormat::forecast, line);
  table.workload = std::move(name);
  table.benchmark = benchmark;
  return table;
}

/// Adds a row; of a step its GPUs are the key.
void add_row(MeasuredLog& table, Bytes size, Duration time, std::optional<int> gpus, int line) {
  if (gpus) {
    MeasuredStep step;
    step.text = table.workload;
    step.gpus = gpus;
    step.step = time;
    step.line = line;
    table.steps.push_back(std::move(step));
    return;
  }
  MeasuredRow row;
  row.size = size;
  row.time = time;
  row.line = line;
  if (size.value > 0) row.bandwidth = average_rate(size, time);
  table.rows.push_back(std::move(row));
}

/// "1 MiB", "512 B": a size of two words; nothing for other words.
std::optional<Bytes> size_of_words(std::string_view number, std::string_view unit) {
  const auto value = parse_printed(number);
  constexpr std::array<std::string_view, 5> k_units{"B", "KiB", "MiB", "GiB", "TiB"};
  const auto at = std::ranges::find(k_units, unit);
  if (!value || value->value < 0 || at == k_units.end()) return std::nullopt;
  return Bytes{std::llround(std::ldexp(value->value, 10 * static_cast<int>(at - k_units.begin())))};
}

/// Microseconds of the first unit of a head, "period (us)"; 0 for none.
double us_of_unit(std::string_view head) {
  const auto open = head.find('('), close = head.find(')', open);
  if (close == std::string_view::npos) return 0;
  const auto unit = head.substr(open + 1, close - open - 1);
  return unit == "us" ? 1 : unit == "ms" ? 1e3 : unit == "s" ? 1e6 : 0;
}

/// A row of a text; its key comes first. Nothing when a number is missing.
struct KeyedTime {
  Bytes key;
  double us = 0;
};
std::optional<KeyedTime> keyed_time(const std::string& line, Benchmark benchmark, double unit_us, int num_before) {
  const auto words = split_words(line);
  if (benchmark == Benchmark::gpu_sharing) {
    const auto label = line.find_first_not_of(' ');
    const auto end = line.find("  ", label);
    const auto rest = end == std::string::npos ? std::vector<Word>{} : split_words(std::string_view(line).substr(end));
    const auto time = rest.empty() ? std::nullopt : parse_printed(rest[0].text);
    return time ? std::optional(KeyedTime{Bytes{num_before + 1}, time->value * unit_us}) : std::nullopt;
  }
  const bool is_sharing = family_of(benchmark) == BenchmarkFamily::sharing;
  if (words.size() < (is_sharing ? 3U : 2U)) return std::nullopt;
  const auto count = parse_count(words[0].text);
  const auto key =
      is_sharing ? size_of_words(words[0].text, words[1].text) : (count ? std::optional(Bytes{*count}) : std::nullopt);
  const auto time = parse_printed(words[is_sharing ? 2 : 1].text);
  return key && time ? std::optional(KeyedTime{*key, time->value * unit_us}) : std::nullopt;
}

/// `# incast of 2000000 B: 1143.672 us (1120.000 to 1315.293)`
std::optional<KeyedTime> traffic_time(const std::string& line) {
  const auto words = split_words(line);
  for (std::size_t i = 0; i + 4 < words.size(); ++i) {
    if (words[i].text != "of" || words[i + 2].text != "B:" || words[i + 4].text != "us") continue;
    const auto size = parse_count(words[i + 1].text);
    const auto time = parse_printed(words[i + 3].text);
    if (size && time) return KeyedTime{Bytes{*size}, time->value};
  }
  return std::nullopt;
}

// ---- CSV ----------------------------------------------------------------------------------------------------------

/// Cells of an RFC 4180 line without their quotes.
std::vector<std::string> quoted_cells(std::string_view line) {
  std::vector<std::string> out(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"')
      out.back() += line[i++];
    else if (line[i] == '"')
      is_quoted = !is_quoted;
    else if (line[i] == ',' && !is_quoted)
      out.emplace_back();
    else
      out.back() += line[i];
  }
  return out;
}

bool is_csv_head(std::string_view line) {
  return line.starts_with("workload,") && contains(line, ",size_bytes,time_ps,") && contains(line, ",scenario,");
}

void read_csv_line(const LogText& log, const Line& line, const std::vector<std::string>& head,
                   std::vector<MeasuredLog>& tables) {
  const auto cells = quoted_cells(line.text);
  const auto cell = [&](std::string_view name) {
    const auto at = static_cast<std::size_t>(std::ranges::find(head, name) - head.begin());
    return at < cells.size() ? cells[at] : std::string();
  };
  const auto name = cell("workload");
  const bool is_new = tables.empty() || tables.back().workload != name;
  if (is_new) tables.push_back(forecast_table(log, benchmark_from_name(name), name, line.number));
  const auto size = parse_count(cell("size_bytes")), time = parse_count(cell("time_ps"));
  if (cells.size() != head.size() || !size || !time || *time <= 0)
    return add_warning(tables.back(), line_warning(log, line, "row lost: its size or time is missing or cut"));
  const auto gpus = parse_count(cell("gpus"));
  const bool is_step = gpus && *gpus > 0 && *gpus < 1'000'000'000;
  add_row(tables.back(), Bytes{*size}, Duration{*time}, is_step ? std::optional(static_cast<int>(*gpus)) : std::nullopt,
          line.number);
}

}  // namespace

bool starts_forecast(std::string_view line) {
  const auto title = forecast_title(line);
  return (title && has_own_table(title->benchmark)) || is_csv_head(line);
}

void name_workloads(const LogText& log, std::vector<MeasuredLog>& tables) {
  for (const auto& line : log.lines) {
    const auto title = forecast_title(line.text);
    if (!title) continue;
    for (auto& table : tables) {
      const int begin = table.rows.empty() ? table.line : table.rows.front().line;
      if (begin > line.number && table.format != LogFormat::forecast) table.workload = title->name;
    }
  }
}

std::vector<MeasuredLog> read_forecast(const LogText& log, Lines section) {
  std::vector<MeasuredLog> tables;
  std::vector<std::string> csv_head;
  double unit_us = 1;
  bool is_own = false;  // the workload whose lines these are
  for (const auto& line : section) {
    if (is_csv_head(line.text)) {
      csv_head = quoted_cells(line.text);
    } else if (const auto title = forecast_title(line.text)) {
      csv_head.clear();
      unit_us = 1;
      is_own = has_own_table(title->benchmark);
      if (is_own) tables.push_back(forecast_table(log, title->benchmark, title->name, line.number));
    } else if (!csv_head.empty()) {
      if (!trim(line.text).empty()) read_csv_line(log, line, csv_head, tables);
    } else if (!is_own || trim(line.text).empty()) {
      continue;
    } else if (tables.back().benchmark == Benchmark::traffic) {
      if (const auto row = traffic_time(line.text); row && row->us > 0)
        add_row(tables.back(), row->key, from_us(row->us), std::nullopt, line.number);
    } else if (line.text.starts_with('#')) {
      const double unit = us_of_unit(line.text);
      if (unit > 0 && tables.back().rows.empty()) unit_us = unit;
    } else {
      auto& table = tables.back();
      const auto row = keyed_time(line.text, *table.benchmark, unit_us, static_cast<int>(table.rows.size()));
      if (row && row->us > 0)
        add_row(table, row->key, from_us(row->us), std::nullopt, line.number);
      else
        add_warning(table, line_warning(log, line, "row lost: its size or time is missing"));
    }
  }
  return tables;
}

std::vector<MeasuredLog> forecast_json(const nlohmann::json& top, const LogText& log) {
  std::vector<MeasuredLog> tables;
  const auto workloads = top.find("workloads");
  if (!text_of(top, "schema").starts_with("fabricast/result/") || workloads == top.end() || !workloads->is_array())
    return tables;
  for (const auto& workload : *workloads) {
    if (!workload.is_object() || !workload.contains("rows") || !workload["rows"].is_array()) continue;
    auto table = forecast_table(log, benchmark_from_name(text_of(workload, "benchmark")), text_of(workload, "name"), 0);
    table.header.num_ranks = int_of(workload, "num_ranks");
    table.header.num_hosts = int_of(workload, "num_hosts");
    for (const auto& row : workload["rows"]) {
      if (!row.is_object()) continue;
      const auto size = bytes_of(row, "size_bytes"), time = bytes_of(row, "time_ps");
      const auto finished = row.find("is_finished");
      const bool is_cut = finished != row.end() && finished->is_boolean() && !finished->get<bool>();
      if (!size || !time || time->value <= 0 || is_cut)
        add_warning(table, file_warning(log.name, "a row was left out: it has no size or no time"));
      else
        add_row(table, *size, Duration{time->value},
                table.benchmark == Benchmark::training ? int_of(row, "gpus") : std::nullopt, 0);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace fabricast::readers
