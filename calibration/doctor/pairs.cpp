// SPDX-License-Identifier: Apache-2.0
// Group structure from some of the pairs. Hosts whose every pair is slow are set aside; the others' values have two
// levels where there are groups (below one switch, or not): the border is the gap that splits them best (least sum of
// squares of logarithms, as in Jenks' natural breaks), and groups are what near pairs connect.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "doctor/median.hpp"
#include "fabricast/doctor.hpp"

namespace fabricast {

namespace {

constexpr double k_slow_host = 1.25;  ///< of the median of pairs without the host
constexpr std::size_t k_few = 2;      ///< hosts of a group that may be a part of another
constexpr double k_two_levels = 4;    ///< gap between the levels over the scatter within them

/// The border between two levels; nothing when one level explains them as well.
std::optional<double> border_of(std::vector<double> logs) {
  if (logs.size() < 4) return std::nullopt;
  std::sort(logs.begin(), logs.end());
  const auto n = logs.size();
  std::vector<double> sum(n + 1), squares(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    sum[i + 1] = sum[i] + logs[i];
    squares[i + 1] = squares[i] + logs[i] * logs[i];
  }
  const auto spread = [&](std::size_t from, std::size_t to) {
    const double count = static_cast<double>(to - from), s = sum[to] - sum[from];
    return std::max(0.0, squares[to] - squares[from] - s * s / count);
  };
  std::size_t best = 1;
  for (std::size_t cut = 1; cut < n; ++cut) {
    if (spread(0, cut) + spread(cut, n) < spread(0, best) + spread(best, n)) best = cut;
  }
  const double low = sum[best] / static_cast<double>(best), high = (sum[n] - sum[best]) / static_cast<double>(n - best);
  const double within = std::sqrt((spread(0, best) + spread(best, n)) / static_cast<double>(n));
  if (high - low < k_two_levels * within || high - low < 0.03) return std::nullopt;
  return (logs[best - 1] + logs[best]) / 2;
}

}  // namespace

PairGroups group_pairs(const std::vector<PairValue>& pairs) {
  PairGroups out;
  std::map<std::string, std::vector<double>> by_host;
  for (const auto& one : pairs) {
    by_host[one.a].push_back(one.value);
    by_host[one.b].push_back(one.value);
  }
  std::set<std::string> slow;
  for (const auto& [host, values] : by_host) {
    std::vector<double> others;
    for (const auto& one : pairs) {
      if (one.a != host && one.b != host) others.push_back(one.value);
    }
    std::sort(others.begin(), others.end());
    // Slower than nearly all pairs of others: a pair of far hosts is no fault.
    const double high = others.empty() ? 0 : others[others.size() * 9 / 10];
    const double least = *std::min_element(values.begin(), values.end());
    if (values.size() >= 2 && high > 0 && least > high * (1 + (k_slow_host - 1) / 2)) slow.insert(host);
  }
  std::vector<double> logs;
  for (const auto& one : pairs) {
    if (!slow.contains(one.a) && !slow.contains(one.b) && one.value > 0) logs.push_back(std::log(one.value));
  }
  out.slow_hosts.assign(slow.begin(), slow.end());
  const auto border = border_of(logs);
  std::map<std::string, std::string> top;
  for (const auto& [host, values] : by_host) top[host] = host;
  const auto find = [&](std::string host) {
    while (top[host] != host) host = top[host];
    return host;
  };
  std::vector<double> near, far;
  for (const auto& one : pairs) {
    if (slow.contains(one.a) || slow.contains(one.b) || one.value <= 0) continue;
    const bool is_near = !border || std::log(one.value) <= *border;
    (is_near ? near : far).push_back(one.value);
    if (is_near) top[find(one.a)] = find(one.b);
  }
  out.near = doctor::upper_median(near);
  out.far = far.empty() ? out.near : doctor::upper_median(far);
  const auto collect = [&] {
    std::map<std::string, std::vector<std::string>> groups;
    for (const auto& [host, values] : by_host) {
      if (!slow.contains(host)) groups[find(host)].push_back(host);
    }
    return groups;
  };
  auto groups = collect();
  // A few hosts that no near pair was measured of belong to the only group that no far pair parts them from.
  for (const auto& [name, members] : std::map(groups)) {
    if (members.size() > k_few) continue;
    std::set<std::string> apart;
    for (const auto& one : pairs) {
      if (slow.contains(one.a) || slow.contains(one.b)) continue;
      if (find(one.a) == name) apart.insert(find(one.b));
      if (find(one.b) == name) apart.insert(find(one.a));
    }
    std::vector<std::string> open;
    for (const auto& [other, theirs] : groups) {
      if (other != name && theirs.size() > k_few && !apart.contains(other)) open.push_back(other);
    }
    if (open.size() == 1) top[name] = open.front();
  }
  groups = collect();
  for (auto& [name, members] : groups) out.groups.push_back(std::move(members));
  std::sort(out.groups.begin(), out.groups.end());
  return out;
}

Result<std::vector<PairValue>> read_pairs(std::string_view text, const std::string& name) {
  std::vector<PairValue> out;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    auto line = std::string(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == ',' || c == ';' || c == '\t' || c == '\r'; }, ' ');
    std::vector<std::string> words;
    for (std::size_t i = 0; i < line.size();) {
      const auto begin = line.find_first_not_of(' ', i);
      if (begin == std::string::npos) break;
      i = std::min(line.find(' ', begin), line.size());
      words.push_back(line.substr(begin, i - begin));
    }
    if (words.empty() || words[0].starts_with('#')) continue;
    double value = 0;
    const bool is_number = words.size() >= 3 &&
                           std::from_chars(words[2].data(), words[2].data() + words[2].size(), value).ec == std::errc{};
    if (!is_number && out.empty()) continue;  // the header
    if (!is_number || !std::isfinite(value) || value <= 0)
      return tl::unexpected(Diagnostics{{Severity::error,
                                         {name, number, 1},
                                         fmt::format("'{}' is not HOST, HOST, TIME", line.substr(0, 60)),
                                         line,
                                         {}}});
    out.push_back({words[0], words[1], value});
  }
  if (out.empty())
    return tl::unexpected(Diagnostics{{Severity::error, {name, 0, 0}, "no pair of hosts with a time", "", {}}});
  return out;
}

}  // namespace fabricast
