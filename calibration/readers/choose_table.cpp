// SPDX-License-Identifier: Apache-2.0
// Which rows of a log a workload's forecast is compared with: those of its test, of its ranks where the log has several
// tables, of all tables taken alike. What is left aside is said.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "readers/readers.hpp"

namespace fabricast {
namespace readers {
namespace {

/// "all_reduce_perf or sendrecv_perf".
std::string alternatives(const std::vector<Benchmark>& benchmarks) {
  std::vector<std::string_view> words;
  for (const auto one : benchmarks) words.push_back(to_string(one));
  return fmt::format("{}", fmt::join(words, " or "));
}

/// What the table says that it is of, when this is not `wanted`; empty else.
std::string other_test_of(const MeasuredLog& table, Benchmark wanted) {
  if (!table.other_test.empty()) return "is of '" + table.other_test + "'";
  if (table.benchmark)
    return table.benchmark == wanted ? std::string() : fmt::format("is of {}", to_string(*table.benchmark));
  if (!is_of_format(wanted, table.format)) return fmt::format("is a table of {}", to_string(table.format));
  const auto& possible = table.possible_benchmarks;
  if (!possible.empty() && std::find(possible.begin(), possible.end(), wanted) == possible.end())
    return "has columns of " + alternatives(possible);
  const bool has_latencies = table.header.unit == "us" || table.header.unit == "usec";
  if (is_nccl(table) || table.format == LogFormat::forecast || has_latencies != is_bandwidth_test(wanted)) return {};
  return has_latencies ? "has latencies" : "has bandwidths";
}

/// False where both say something and not the same.
template <typename Value>
bool contradicts(const std::optional<Value>& a, const std::optional<Value>& b) {
  return a && b && *a != *b;
}
template <typename Texts>
bool texts_contradict(const Texts& a, const Texts& b) {
  return !a.empty() && !b.empty() && a != b;
}

std::string datatypes_of(const MeasuredLog& table) {
  std::set<std::string> all;
  for (const auto& row : table.rows) all.insert(row.datatype + " " + row.reduction);
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::string refusal_of(const MeasuredLog& table, Benchmark wanted) {
  if (const auto other = other_test_of(table, wanted); !other.empty())
    return fmt::format("the log {}, the scenario of {}", other, to_string(wanted));
  const auto& header = table.header;
  if (header.aggregated_iterations.value_or(1) > 1)
    return fmt::format(
        "the log's operations were started {} at a time as one group (agg iters, -m), which is not forecast",
        *header.aggregated_iterations);
  if (header.is_blocking.value_or(false))
    return "every operation of the log was waited for, with a barrier behind it (Blocking Enabled, -z), which is not "
           "forecast";
  if (table.format == LogFormat::iperf3 && !header.connection_type.empty() && header.connection_type != "TCP")
    return fmt::format("the log's datagrams went by {} at a rate that was given, TCP is forecast",
                       header.connection_type);
  if (table.format == LogFormat::iperf3 && header.is_bidirectional)
    return "the log's streams went both ways at once (--bidir), one way is forecast";
  if (header.is_dual_port) return "both ports of the adapter carried the log's messages (Dual-port), one is forecast";
  return {};
}

std::string differences_of(const MeasuredLog& a, const MeasuredLog& b) {
  const auto &one = a.header, &two = b.header;
  std::vector<std::string_view> out;
  const auto note = [&](bool is_different, std::string_view what) {
    if (is_different) out.push_back(what);
  };
  note(contradicts(a.benchmark, b.benchmark), "benchmark");
  note(texts_contradict(a.workload, b.workload), "workload");
  note(contradicts(one.num_ranks, two.num_ranks), "ranks");
  note(contradicts(one.num_hosts, two.num_hosts) || contradicts(one.ranks_per_host, two.ranks_per_host),
       "ranks per host");
  note(texts_contradict(one.hosts, two.hosts), "hosts");
  note(texts_contradict(one.device_names, two.device_names), "GPUs");
  note(contradicts(one.launch, two.launch), "launch");
  note(contradicts(one.send_buffer, two.send_buffer) || contradicts(one.receive_buffer, two.receive_buffer) ||
           one.is_managed_memory != two.is_managed_memory || one.accelerator != two.accelerator,
       "buffers");
  note(contradicts(one.window, two.window), "window");
  note(contradicts(one.pairs, two.pairs), "pairs");
  note(contradicts(one.streams, two.streams), "streams");
  note(contradicts(one.queue_pairs, two.queue_pairs), "queue pairs");
  note(contradicts(one.tx_depth, two.tx_depth), "TX depth");
  note(contradicts(one.post_list, two.post_list), "post list");
  note(contradicts(one.mtu, two.mtu), "MTU");
  note(one.is_bidirectional != two.is_bidirectional, "direction");
  note(texts_contradict(one.connection_type, two.connection_type), "connection type");
  note(texts_contradict(one.device, two.device), "adapter");
  note(texts_contradict(one.nccl_version, two.nccl_version), "NCCL's release");
  note(datatypes_of(a) != datatypes_of(b), "element type");
  note(texts_contradict(one.environment, two.environment), "settings");
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace readers

namespace {

/// How well a table fits: its benchmark first, then its ranks, then where they run, then its name.
int fitness(const MeasuredLog& table, const Workload& workload) {
  const bool is_benchmark = table.benchmark == workload.benchmark;
  const auto wanted = workload.gpus ? workload.gpus : workload.ranks;
  const bool is_of_ranks = !wanted || !table.header.num_ranks || *table.header.num_ranks == *wanted;
  const auto per_host = workload.ranks_per_host;
  const bool is_of_hosts = !per_host || !table.header.ranks_per_host || *table.header.ranks_per_host == *per_host;
  const bool is_of_name = table.workload == workload.name;
  return (is_benchmark ? 8 : 0) + (is_of_ranks ? 4 : 0) + (is_of_hosts ? 2 : 0) + (is_of_name ? 1 : 0);
}

/// Before the rows' own warnings, which may be many.
void put_first(MeasuredLog& table, std::string message) {
  table.warnings.insert(table.warnings.begin(),
                        {Severity::warning, {table.file, table.line, 1}, std::move(message), {}, {}});
}

/// Tables of one workload: the first, with the rows of those taken like it.
MeasuredLog with_repeats(const std::vector<const MeasuredLog*>& tables, Benchmark benchmark) {
  auto best = *tables.front();
  int num_alike = 1;
  std::string other;
  for (const auto* table : std::vector(tables.begin() + 1, tables.end())) {
    if (const auto differences = readers::differences_of(*tables.front(), *table); !differences.empty()) {
      if (other.empty()) other = differences;
      continue;
    }
    ++num_alike;
    best.rows.insert(best.rows.end(), table->rows.begin(), table->rows.end());
    best.warnings.insert(best.warnings.end(), table->warnings.begin(), table->warnings.end());
  }
  if (num_alike > 1)
    put_first(best, fmt::format("the log has {} tables of {} taken alike: they are repeats, the median of a size is "
                                "compared",
                                num_alike, to_string(benchmark)));
  if (!other.empty())
    put_first(best, fmt::format("the log has {} tables of {}; the one that begins here is used, others differ in {}",
                                tables.size(), to_string(benchmark), other));
  return best;
}

/// iperf3 before 3.16, by its release; false where that is not known.
bool has_one_thread(const std::string& version) {
  const auto minor = version.starts_with("3.") ? readers::leading_count(version.substr(2)) : std::nullopt;
  return minor && *minor < 16;
}

/// What rows may have wrong of themselves.
void warn_of_rows(MeasuredLog& table) {
  const auto is_wrong = [](const MeasuredRow& row) { return row.num_wrong.value_or(0) > 0; };
  if (const auto count = std::count_if(table.rows.begin(), table.rows.end(), is_wrong); count > 0)
    put_first(table,
              fmt::format("{} of {} rows have wrong results ({}): what took this time is not the operation", count,
                          table.rows.size(), table.format == LogFormat::osu ? "Validation: Fail" : "#wrong"));
  if (table.header.is_managed_memory)
    put_first(table, "the log's buffers are managed memory, they are forecast as the GPU's own");
  if (table.header.post_list.value_or(1) > 1)
    put_first(table, fmt::format("the log's messages were posted {} at once (Post List), they are forecast one by one",
                                 *table.header.post_list));
  if (table.format == LogFormat::sockperf && table.header.connection_type == "TCP")
    put_first(table, "the log's messages went over TCP (# TCP), UDP is forecast");
  if (table.header.streams.value_or(1) > 1 && has_one_thread(table.header.tool_version))
    put_first(table,
              fmt::format("iperf3 {} serves all streams with one thread (3.16 and later each with its own), they "
                          "are forecast on cores of their own",
                          table.header.tool_version));
}

std::optional<MeasuredLog> benchmark_table(const std::vector<MeasuredLog>& tables, const Workload& workload) {
  std::vector<const MeasuredLog*> best;
  const MeasuredLog* refused = nullptr;
  const MeasuredLog* lost = nullptr;  // every row of it; its warnings say why
  for (const auto& table : tables) {
    const bool is_refused = !readers::refusal_of(table, workload.benchmark).empty();
    if (table.rows.empty()) {
      if (refused == nullptr && !table.other_test.empty()) refused = &table;
      if (lost == nullptr && !is_refused && !table.warnings.empty()) lost = &table;
      continue;
    }
    if (is_refused) {
      if (refused == nullptr) refused = &table;
      continue;
    }
    const int gain = best.empty() ? 1 : fitness(table, workload) - fitness(*best.front(), workload);
    if (gain > 0) best.clear();
    if (gain >= 0) best.push_back(&table);
  }
  if (!best.empty()) {
    auto table = with_repeats(best, workload.benchmark);
    warn_of_rows(table);
    return table;
  }
  if (lost != nullptr) return *lost;
  if (refused == nullptr) return std::nullopt;
  auto table = *refused;
  table.refusal = readers::refusal_of(table, workload.benchmark);
  table.rows.clear();
  return table;
}

std::optional<MeasuredLog> training_table(const std::vector<MeasuredLog>& tables, const Scenario& scenario,
                                          const std::vector<std::string>& parts) {
  std::optional<MeasuredLog> best;
  int num_others = 0;
  for (const auto& table : tables) {
    auto rows = readers::training_rows(table, scenario, parts);
    if (!rows) continue;
    if (!best || best->rows.empty())
      best = std::move(rows);
    else if (!rows->rows.empty())
      ++num_others;
  }
  if (num_others > 0)
    put_first(*best,
              fmt::format("the log has {} more tables of training; the one that begins here is used", num_others));
  return best;
}

std::optional<MeasuredLog> copies_table(const std::vector<MeasuredLog>& tables, const Scenario& scenario) {
  std::vector<MeasuredLog> found;
  for (const auto& table : tables) {
    if (auto copies = readers::copy_rows(table, scenario)) found.push_back(std::move(*copies));
  }
  if (found.empty()) return std::nullopt;
  std::vector<const MeasuredLog*> all;
  for (const auto& table : found) {
    if (table.format == found.front().format) all.push_back(&table);
  }
  auto best = with_repeats(all, Benchmark::host_copies);
  if (all.size() < found.size())
    put_first(best, fmt::format("the log has copies of several programs; those of {}, which begin here, are used",
                                to_string(best.format)));
  return best;
}

}  // namespace

std::optional<MeasuredLog> table_for(const std::vector<MeasuredLog>& tables, const Scenario& scenario,
                                     const std::vector<std::string>& parts) {
  const auto& workload = scenario.workloads.front();
  auto best = workload.benchmark == Benchmark::training      ? training_table(tables, scenario, parts)
              : workload.benchmark == Benchmark::host_copies ? copies_table(tables, scenario)
                                                             : benchmark_table(tables, workload);
  const auto tuning = std::find_if(tables.begin(), tables.end(),
                                   [](const auto& table) { return table.format == LogFormat::nccl_tuning; });
  if (tuning == tables.end() || (best && !best->refusal.empty())) return best;
  if (!best) return *tuning;
  best->tuning = tuning->tuning;
  return best;
}

}  // namespace fabricast
