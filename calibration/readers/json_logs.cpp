// SPDX-License-Identifier: Apache-2.0
// JSON of nccl-tests (-J) and perftest (--out_json); which reader takes which file. nccl-tests dumps the whole
// environment of the run under "env", secrets included: it is dropped while parsing, except settings of NCCL and MPI. A
// file cut short keeps the results that are complete.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "readers/json_values.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

using nlohmann::json;

/// What is worth keeping of a file, also of one that breaks off: complete objects, and scalars at the top.
struct Harvest {
  json top = json::object();  ///< scalars and complete members of the top object
  std::vector<json> results;  ///< complete elements of nccl-tests' "results"
  std::map<std::string, std::string> settings;
  bool is_whole = false;
};

Harvest harvest(std::string_view text) {
  Harvest found;
  std::string member;  ///< the top object's member being read
  const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1) {
      member = parsed.get<std::string>();
      return true;
    }
    if (member == "env") {
      // A list of NAME=value; the container must be entered for its values to be seen.
      if (event == json::parse_event_t::value && parsed.is_string())
        add_settings(parsed.get_ref<const std::string&>(), found.settings);
      return event == json::parse_event_t::array_start;
    }
    const bool is_value = event == json::parse_event_t::value || event == json::parse_event_t::object_end ||
                          event == json::parse_event_t::array_end;
    if (is_value && depth == 1) found.top[member] = parsed;
    const bool is_result = event == json::parse_event_t::object_end && depth == 2 && member == "results";
    if (is_result) found.results.push_back(parsed);
    return true;
  };
  const auto whole = json::parse(text.begin(), text.end(), keep, false);
  found.is_whole = !whole.is_discarded();
  return found;
}

void read_devices(const json& config, MeasuredHeader& header) {
  const auto devices = config.find("devices");
  if (devices == config.end() || !devices->is_array()) return;
  for (const auto& device : *devices) {
    if (!device.is_object()) continue;
    MeasuredRank rank;
    rank.rank = int_of(device, "rank").value_or(static_cast<int>(header.ranks.size()));
    rank.group = int_of(device, "group").value_or(0);
    rank.host = text_of(device, "hostname");
    rank.device = int_of(device, "device").value_or(0);
    rank.bus_id = text_of(device, "device_hex");
    rank.device_name = text_of(device, "device_info");
    header.ranks.push_back(std::move(rank));
  }
}

void read_nccl_config(const json& top, MeasuredLog& table) {
  auto& header = table.header;
  header.unit = "us";
  if (const auto code = int_of(top, "nccl_version")) header.nccl_version = nccl_version_text(*code);
  const auto args = top.find("args");
  if (args != top.end() && args->is_array() && !args->empty() && args->front().is_string()) {
    name_program(args->front().get_ref<const std::string&>(), table);
  }
  const auto config = top.find("config");
  if (config == top.end() || !config->is_object()) return;
  header.threads = int_of(*config, "nthreads");
  header.gpus_per_thread = int_of(*config, "ngpus");
  header.warmup_iterations = int_of(*config, "warmup_iters").has_value() ? int_of(*config, "warmup_iters")
                                                                         : int_of(*config, "warmup_iterations");
  header.iterations = int_of(*config, "iterations");
  header.aggregated_iterations = int_of(*config, "aggregated_iterations");
  const auto blocking = config->find("blocking_collectives");
  if (blocking != config->end())
    header.is_blocking = blocking->is_boolean() ? blocking->get<bool>() : int_of(*config, "blocking_collectives") > 0;
  header.launch = launch_mode(header, int_of(*config, "graph").value_or(0) > 0);
  read_devices(*config, header);
}

std::optional<Benchmark> benchmark_of_experiment(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, Benchmark>, 10> k_names{{
      {"AllReduce", Benchmark::all_reduce_perf},
      {"AllGather", Benchmark::all_gather_perf},
      {"ReduceScatter", Benchmark::reduce_scatter_perf},
      {"Broadcast", Benchmark::broadcast_perf},
      {"Reduce", Benchmark::reduce_perf},
      {"AlltoAll", Benchmark::alltoall_perf},
      {"AllToAll", Benchmark::alltoall_perf},
      {"SendRecv", Benchmark::sendrecv_perf},
      {"Gather", Benchmark::gather_perf},
      {"Scatter", Benchmark::scatter_perf},
  }};
  const auto it = std::find_if(k_names.begin(), k_names.end(), [&](const auto& n) { return n.first == name; });
  return it == k_names.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Duration> positive_us(const std::optional<double>& us) {
  constexpr double k_longest_us = 1e12;
  return us && *us > 0 && *us < k_longest_us ? std::optional(from_us(*us)) : std::nullopt;
}

void read_iterations(const json& result, MeasuredRow& row) {
  const auto per_iteration = result.find("out_of_place_per_iter");
  if (per_iteration == result.end() || !per_iteration->is_object()) return;
  const auto times = per_iteration->find("times_us");
  if (times == per_iteration->end() || !times->is_array()) return;
  for (const auto& time : *times) {
    if (!time.is_number()) continue;
    if (const auto duration = positive_us(time.get<double>())) row.iterations.push_back(*duration);
  }
}

/// Whether the command line asks for the CPU's time (`-C 1`) in the place of the wall time.
bool has_cpu_times(const json& top) {
  const auto args = top.find("args");
  if (args == top.end() || !args->is_array()) return false;
  for (std::size_t i = 0; i < args->size(); ++i) {
    const auto text = (*args)[i].is_string() ? (*args)[i].get<std::string>() : std::string();
    if (text == "-C1" || text == "--report_cputime=1") return true;
    const bool is_last = i + 1 == args->size();
    if ((text == "-C" || text == "--report_cputime") && !is_last) return (*args)[i + 1] == "1";
  }
  return false;
}

/// The time of one half in us; of the CPU's times the wall time behind alg_bw.
std::optional<double> time_us_of(const json& half, Bytes size, bool is_cpu_time) {
  const auto rate = number_of(half, "alg_bw");
  if (!is_cpu_time) return number_of(half, "time");
  return rate && *rate > 0 ? std::optional(static_cast<double>(size.value) / (*rate * 1e3)) : std::nullopt;
}

/// A row of "results"; nothing when it has no size or no time.
std::optional<MeasuredRow> nccl_result_row(const json& result, bool is_cpu_time) {
  const auto size = bytes_of(result, "size");
  if (!size) return std::nullopt;
  MeasuredRow row;
  row.size = *size;
  row.datatype = text_of(result, "type");
  row.reduction = text_of(result, "redop");
  if (const auto count = number_of(result, "actual_iterations"))
    row.num_iterations = std::llround(std::min(*count, 1e15));
  const auto half = [&](const char* key) {
    const auto it = result.find(key);
    return it != result.end() && it->is_object() ? &*it : nullptr;
  };
  const json* out_of_place = half("out_of_place");
  if (const json* in_place = half("in_place"))
    row.in_place_time = positive_us(time_us_of(*in_place, *size, is_cpu_time));
  const auto time = out_of_place != nullptr ? positive_us(time_us_of(*out_of_place, *size, is_cpu_time)) : std::nullopt;
  if (!time && !row.in_place_time) return std::nullopt;
  row.is_in_place_only = !time;
  row.time = time ? *time : *row.in_place_time;
  const json& first = time ? *out_of_place : *half("in_place");
  if (const auto wrong = number_of(first, "nwrong")) row.num_wrong = std::llround(std::clamp(*wrong, 0.0, 1e18));
  if (const auto rate = number_of(first, "alg_bw")) row.printed_algbw = Bandwidth{*rate * 1e9};
  if (const auto rate = number_of(first, "bus_bw")) row.printed_busbw = Bandwidth{*rate * 1e9};
  read_iterations(result, row);
  return row;
}

MeasuredLog nccl_table(const LogText& log, const Harvest& found) {
  auto table = begin_table(log, LogFormat::nccl_tests_json, 0);
  read_nccl_config(found.top, table);
  table.header.environment = found.settings;
  const bool is_cpu_time = has_cpu_times(found.top);
  if (is_cpu_time)
    add_warning(table, file_warning(log.name, "these times are the CPU's (-C); wall times are taken from alg_bw"));
  for (const auto& result : found.results) {
    const auto experiment = text_of(result, "experiment_name");
    if (!table.benchmark && table.other_test.empty()) {
      table.benchmark = benchmark_of_experiment(experiment);
      if (!table.benchmark) table.other_test = experiment;
    }
    if (auto row = nccl_result_row(result, is_cpu_time))
      table.rows.push_back(std::move(*row));
    else
      add_warning(table, file_warning(log.name, "a result was left out: it has no size or no time"));
  }
  if (!found.is_whole) add_warning(table, file_warning(log.name, "the file breaks off; its complete results are kept"));
  summarize_ranks(table.header);
  complete_from_provenance(log, table);
  recompute_bandwidths(table);
  return table;
}

struct BandwidthUnit {
  double bytes_per_s;
  const char* name;
};
constexpr BandwidthUnit k_mebibytes{0x1p20, "MiB/sec"};
constexpr BandwidthUnit k_gigabits{1e9 / 8, "Gb/sec"};

/// perftest's JSON names no unit; the message rate, when it is there, tells which of the two fits.
BandwidthUnit unit_of(const json& results, Bytes size, MeasuredLog& table) {
  const auto average = number_of(results, "BW_average");
  const auto rate = number_of(results, "MsgRate");
  if (average && rate && *average > 0 && *rate > 0 && size.value > 0) {
    const double unit = *rate * 1e6 * static_cast<double>(size.value) / *average;
    for (const auto& candidate : {k_mebibytes, k_gigabits}) {
      constexpr double k_tolerance = 0.05;
      if (std::abs(unit / candidate.bytes_per_s - 1) > k_tolerance) continue;
      add_warning(table,
                  file_warning(table.file, std::string("the file names no unit of bandwidth; its message rate fits ") +
                                               candidate.name));
      return candidate;
    }
  }
  add_warning(table, file_warning(table.file, "the file names no unit of bandwidth; MiB/sec is assumed"));
  return k_mebibytes;
}

void read_perftest_info(const json& top, MeasuredLog& table) {
  const auto info = top.find("test_info");
  if (info == top.end() || !info->is_object()) return;
  table.header.device = text_of(*info, "Device");
  table.header.connection_type = text_of(*info, "Connection_type");
  table.header.link_type = text_of(*info, "Link_type");
  table.header.queue_pairs = int_of(*info, "Number_of_qps");
  table.header.tx_depth = int_of(*info, "TX_depth");
  table.header.mtu = bytes_of(*info, "Mtu");
  if (info->contains("cuda_device")) table.header.send_buffer = table.header.receive_buffer = BufferPlace::device;
  for (const auto& [key, value] : info->items()) {
    if (!value.is_string()) continue;
    if (const auto title = perftest_title(value.get_ref<const std::string&>())) {
      table.title = std::string(title->text);
      table.benchmark = title->benchmark;
      if (!table.benchmark) table.other_test = table.title;
      table.header.is_bidirectional = title->is_bidirectional;
    }
  }
}

void read_latencies(const json& results, MeasuredRow& row) {
  row.min_time = positive_us(number_of(results, "t_min"));
  row.max_time = positive_us(number_of(results, "t_max"));
  row.std_dev = positive_us(number_of(results, "t_stdev"));
  row.typical_time = positive_us(number_of(results, "t_typical"));
  for (const auto& [key, value] : results.items()) {
    const auto at = key.find("99");
    const auto time = at == std::string::npos ? std::nullopt : positive_us(number_of(results, key.c_str()));
    if (time) row.percentiles.push_back({key.find("99.9") == std::string::npos ? 0.99 : 0.999, *time});
  }
}

std::optional<MeasuredLog> perftest_table(const LogText& log, const Harvest& found) {
  const auto results = found.top.find("results");
  if (results == found.top.end() || !results->is_object()) return std::nullopt;
  const auto size = bytes_of(*results, "MsgSize");
  if (!size) return std::nullopt;
  auto table = begin_table(log, LogFormat::perftest_json, 0);
  read_perftest_info(found.top, table);
  MeasuredRow row;
  row.size = *size;
  if (const auto count = number_of(*results, "n_iterations")) row.num_iterations = std::llround(std::min(*count, 1e15));
  if (const auto average = positive_us(number_of(*results, "t_avg"))) {
    table.header.unit = "usec";
    row.time = *average;
    read_latencies(*results, row);
  } else if (const auto bandwidth = number_of(*results, "BW_average"); bandwidth && *bandwidth > 0 && size->value > 0) {
    const auto unit = unit_of(*results, *size, table);
    table.header.unit = unit.name;
    row.bandwidth = Bandwidth{*bandwidth * unit.bytes_per_s};
    row.time = from_seconds(static_cast<double>(size->value) / row.bandwidth->bytes_per_s);
    const auto peak = number_of(*results, "BW_peak");
    if (peak && *peak > 0) row.peak_bandwidth = Bandwidth{*peak * unit.bytes_per_s};
    if (const auto rate = number_of(*results, "MsgRate"); rate && *rate > 0) row.messages_per_s = *rate * 1e6;
  }
  if (row.time.ps > 0)
    table.rows.push_back(std::move(row));
  else
    add_warning(table, file_warning(log.name, "the file has neither a bandwidth nor an average latency"));
  add_warning(table,
              file_warning(log.name, "perftest keeps only the last size in JSON; use its text output for a sweep"));
  table.header.num_ranks = 2;
  if (!table.benchmark && table.other_test.empty()) table.benchmark = benchmark_in(log.name);
  complete_from_provenance(log, table);
  if (!table.header.send_buffer) table.header.send_buffer = table.header.receive_buffer = BufferPlace::host;
  return table;
}

}  // namespace

namespace {

/// Complete objects behind each other, as runs are appended to one file; the last may break off.
std::vector<std::string_view> documents_of(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_string && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      is_string = !is_string;
    else if (!is_string && text[i] == '{' && depth++ == 0)
      begin = i;
    else if (!is_string && text[i] == '}' && depth > 0 && --depth == 0)
      out.push_back(text.substr(begin, i + 1 - begin));
  }
  if (depth > 0) out.push_back(text.substr(begin));
  return out;
}

/// iperf3 --json-stream: an object for each event, put together to what -J prints at the end.
class EventStream {
 public:
  /// Takes an event; false when the object is none.
  bool take(const json& top, const LogText& log, std::vector<MeasuredLog>& tables) {
    const auto event = text_of(top, "event");
    const auto data = top.find("data");
    if (event.empty() || data == top.end()) return false;
    if (event == "start") finish(log, tables);
    if (event == "interval")
      test_["intervals"].push_back(*data);
    else
      test_[event] = *data;
    return true;
  }

  void finish(const LogText& log, std::vector<MeasuredLog>& tables) {
    if (auto streams = iperf3_json(test_, log)) tables.push_back(std::move(*streams));
    test_ = json::object();
  }

 private:
  json test_ = json::object();
};

void read_document(std::string_view text, const LogText& log, EventStream& events, std::vector<MeasuredLog>& tables) {
  const auto found = harvest(text);
  if (events.take(found.top, log, tables)) return;
  if (!found.results.empty() || found.top.contains("nccl_version")) {
    tables.push_back(nccl_table(log, found));
  } else if (auto streams = iperf3_json(found.top, log)) {
    tables.push_back(std::move(*streams));
  } else if (auto verbs = perftest_table(log, found)) {
    tables.push_back(std::move(*verbs));
  } else {
    for (auto& table : forecast_json(found.top, log)) tables.push_back(std::move(table));
  }
}

}  // namespace

std::vector<MeasuredLog> read_json(std::string_view text, const std::string& name) {
  std::vector<MeasuredLog> tables;
  EventStream events;
  for (const auto document : documents_of(text)) read_document(document, {name, {}, {}}, events, tables);
  events.finish({name, {}, {}}, tables);
  return tables;
}

}  // namespace fabricast::readers
