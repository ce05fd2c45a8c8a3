// SPDX-License-Identifier: Apache-2.0
// How many ranks and hosts took part: from device lines, from the printed bandwidths (busbw / algbw is a function of
// the number of ranks), else from what the collector of the file wrote.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "readers/nccl_content.hpp"
#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

/// The number before `unit` in a text: ("osu_allreduce, 16 ranks", "rank") -> 16.
std::optional<int> count_before(std::string_view text, std::string_view unit) {
  for (auto at = text.find(unit); at != std::string_view::npos; at = text.find(unit, at + 1)) {
    auto head = trim(text.substr(0, at));
    if (head.ends_with('-')) head.remove_suffix(1);
    auto begin = head.size();
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(head[begin - 1])) != 0) --begin;
    if (begin < head.size()) return leading_count(head.substr(begin));
  }
  return std::nullopt;
}

/// The number a provenance line begins with, unless it begins a range or a list ("1-16", "1 and 2").
std::optional<int> single_count(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789");
  const auto rest = end == std::string_view::npos ? std::string_view{} : text.substr(end);
  const bool is_range =
      rest.starts_with('-') || rest.starts_with("..") || rest.starts_with(" and ") || rest.starts_with(" to ");
  return is_range ? std::nullopt : leading_count(text);
}

std::optional<int> ranks_of_provenance(const LogText& log, const MeasuredLog& table) {
  const auto value = [&](const char* key) {
    const auto it = log.provenance.find(key);
    return it == log.provenance.end() ? std::string_view{} : std::string_view(it->second);
  };
  if (is_nccl(table)) {
    const auto gpus = single_count(value("gpus"));
    return gpus && *gpus > 0 ? gpus : std::nullopt;
  }
  for (const std::string_view text :
       {value("benchmark"), std::string_view(log.name).substr(log.name.find_last_of('/') + 1)}) {
    if (const auto pairs = count_before(text, "pair")) return 2 * *pairs;
    if (const auto ranks = count_before(text, "rank")) return ranks;
  }
  const auto gpus = single_count(value("gpus"));
  const bool on_devices = table.header.send_buffer == BufferPlace::device;
  return on_devices && gpus && *gpus > 0 ? gpus : std::nullopt;
}

}  // namespace

void summarize_ranks(MeasuredHeader& header) {
  if (header.ranks.empty()) return;
  std::set<int> groups;
  std::map<std::string, int> per_host;
  for (const auto& rank : header.ranks) {
    groups.insert(rank.group);
    if (++per_host[rank.host] == 1) header.hosts.push_back(rank.host);
    const auto& names = header.device_names;
    if (!rank.device_name.empty() && std::find(names.begin(), names.end(), rank.device_name) == names.end()) {
      header.device_names.push_back(rank.device_name);
    }
  }
  // An abridged list shows some of the ranks only: the highest number says how many there are.
  const auto highest = std::max_element(header.ranks.begin(), header.ranks.end(),
                                        [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto num_all = std::max(header.ranks.size(), static_cast<std::size_t>(highest->rank) + 1);
  header.num_ranks = static_cast<int>(num_all / groups.size());
  header.num_hosts = static_cast<int>(header.hosts.size());
  if (num_all > header.ranks.size()) {
    if (num_all % header.hosts.size() == 0) header.ranks_per_host = static_cast<int>(num_all / header.hosts.size());
    return;
  }
  header.ranks_per_host = std::max_element(per_host.begin(), per_host.end(), [](const auto& a, const auto& b) {
                            return a.second < b.second;
                          })->second;
}

std::optional<int> RankInterval::only() const {
  const double least = std::ceil(low);
  const bool is_single = least >= 2 && least <= high && least + 1 > high;
  return is_single ? std::optional(static_cast<int>(least)) : std::nullopt;
}

RankInterval ranks_of_printed_bandwidths(const MeasuredLog& table) {
  constexpr double k_most_ranks = 1e6;
  constexpr double k_half_unit = 0.0051e9;  // printed with two decimals of GB/s
  RankInterval interval{1, k_most_ranks};
  if (!table.benchmark || bus_bandwidth_factor(*table.benchmark, 2) == bus_bandwidth_factor(*table.benchmark, 4))
    return interval;
  const double scale = bus_bandwidth_factor(*table.benchmark, 2) * 2;  // factor = scale (n - 1) / n
  for (const auto& row : table.rows) {
    if (!row.printed_algbw || !row.printed_busbw || row.printed_algbw->bytes_per_s < 1e9) continue;
    const double ratio = row.printed_busbw->bytes_per_s / row.printed_algbw->bytes_per_s / scale;
    const double slack =
        ratio * (k_half_unit / row.printed_algbw->bytes_per_s + k_half_unit / row.printed_busbw->bytes_per_s);
    interval.low = std::max(interval.low, 1 / std::max(1 - (ratio - slack), 1 / k_most_ranks));
    interval.high = std::min(interval.high, 1 / std::max(1 - (ratio + slack), 1 / k_most_ranks));
  }
  return interval;
}

namespace {

/// Where no device line says it, the ranks that the printed bandwidths belong to outweigh a header written by hand.
/// True when they contradict it.
bool correct_ranks(const LogText& log, MeasuredLog& table) {
  const auto interval = ranks_of_printed_bandwidths(table);
  const auto given = table.header.num_ranks;
  if (interval.low > interval.high || (given && interval.low <= *given && *given <= interval.high)) return false;
  const auto inferred = interval.only();
  if (!table.header.ranks.empty() || !inferred) return false;
  if (given) {
    Diagnostic warning{Severity::warning, {log.name, table.line, 1}, {}, {}, {}};
    warning.message =
        fmt::format("the printed bandwidths belong to {} ranks, not to the {} of the file's header", *inferred, *given);
    add_warning(table, std::move(warning));
  }
  table.header.num_ranks = inferred;
  return given.has_value();
}

}  // namespace

void complete_from_provenance(const LogText& log, MeasuredLog& table) {
  if (!table.benchmark && table.other_test.empty()) {
    const auto it = log.provenance.find("benchmark");
    if (it != log.provenance.end()) table.benchmark = benchmark_in(it->second);
    if (table.benchmark && !is_of_format(*table.benchmark, table.format)) table.benchmark.reset();
    if (!table.benchmark && is_nccl(table)) recognise_benchmark(log.name, table);
  }
  if (!table.header.num_ranks) table.header.num_ranks = ranks_of_provenance(log, table);
  if (is_nccl(table) && correct_ranks(log, table)) return;
  if (table.header.num_hosts) return;
  const auto hosts = log.provenance.find("hosts");
  if (hosts != log.provenance.end()) table.header.num_hosts = single_count(hosts->second);
  const auto [ranks, num_hosts] = std::pair(table.header.num_ranks.value_or(0), table.header.num_hosts.value_or(0));
  if (!table.header.ranks_per_host && num_hosts > 0 && ranks > 0 && ranks % num_hosts == 0) {
    table.header.ranks_per_host = ranks / num_hosts;
  }
}

}  // namespace fabricast::readers

namespace fabricast {

void set_benchmark(MeasuredLog& table, Benchmark benchmark) {
  table.benchmark = benchmark;
  table.possible_benchmarks.clear();
  if (!table.header.num_ranks) table.header.num_ranks = readers::ranks_of_printed_bandwidths(table).only();
  readers::recompute_bandwidths(table);
}

}  // namespace fabricast
