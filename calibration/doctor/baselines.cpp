// SPDX-License-Identifier: Apache-2.0
// Row i of a log has the healthy time forecast_i exp(b_i), b = ln(measured / forecast) of a healthy run of the same
// benchmark, ranks, hosts and size: the measured time itself where both are of one description, and where the forecasts
// differ (another release of NCCL, bare metal below a VM) as much more as they do. Other counts do not serve: what
// limits them is another part of the cluster (NVLink in a host, adapters between hosts) with an error of its own.
#include "doctor/baselines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace fabricast::doctor {

namespace {

constexpr double k_most_apart = 4;       ///< neighbouring sizes, as the benchmarks' own steps of 2 and 4
constexpr std::size_t k_most_named = 3;  ///< tables in a message

/// False where both say something and not the same.
template <typename Value>
bool agree(const std::optional<Value>& a, const std::optional<Value>& b) {
  return !a || !b || *a == *b;
}

/// Of one benchmark, taken alike, as far as both tables say. Forced settings and releases may differ: they are what a
/// log may have wrong.
bool is_same_run(const MeasuredLog& a, const MeasuredLog& b) {
  const auto &one = a.header, &two = b.header;
  return agree(a.benchmark, b.benchmark) && agree(one.num_ranks, two.num_ranks) &&
         agree(one.num_hosts, two.num_hosts) && agree(one.ranks_per_host, two.ranks_per_host) &&
         agree(one.send_buffer, two.send_buffer) && agree(one.receive_buffer, two.receive_buffer) &&
         agree(one.launch, two.launch) && agree(one.pairs, two.pairs) && agree(one.window, two.window) &&
         agree(one.queue_pairs, two.queue_pairs) && agree(one.tx_depth, two.tx_depth) &&
         one.is_bidirectional == two.is_bidirectional && one.is_managed_memory == two.is_managed_memory;
}

bool is_same_hosts(const MeasuredLog& a, const MeasuredLog& b) {
  const std::set<std::string> one(a.header.hosts.begin(), a.header.hosts.end()),
      two(b.header.hosts.begin(), b.header.hosts.end());
  return !one.empty() && one == two;
}

/// ln(measured / forecast) of healthy runs at one size.
struct Bias {
  double ln = 0;
  std::string place;
  std::vector<std::size_t> from;  ///< all runs that have the size
};
using Biases = std::map<Bytes, Bias>;

class Cover {
 public:
  explicit Cover(const std::vector<Patient>& baselines) : baselines_(baselines), is_used_(baselines.size(), false) {
    for (const auto& one : baselines_) forecasts_.push_back(forecast(one.base, one.sizes));
  }

  void cover(Patient& patient) {
    const auto own = matching(patient);
    const auto biases = biases_of(own);
    patient.expected.clear();
    for (const auto size : patient.sizes) patient.expected.push_back(expected(biases, size));
    if (std::all_of(patient.expected.begin(), patient.expected.end(),
                    [](const auto& row) { return row.baseline.empty(); }))
      return;
    const bool is_bare = std::ranges::any_of(own, [&](std::size_t i) { return baselines_[i].is_bare_metal; });
    for (auto& row : patient.expected) row.is_beside_bare_metal = is_bare && !row.baseline.empty();
    std::erase_if(patient.words, [&](const std::string& words) {
      return std::all_of(own.begin(), own.end(), [&](std::size_t i) {
        const auto& theirs = baselines_[i].words;
        return std::find(theirs.begin(), theirs.end(), words) != theirs.end();
      });
    });
  }

  [[nodiscard]] bool is_used(const std::string& path) const {
    for (std::size_t i = 0; i < baselines_.size(); ++i) {
      if (is_used_[i] && baselines_[i].log.file == path) return true;
    }
    return false;
  }

 private:
  /// Of the same hosts where there are such, else of any: hosts are renamed, and healthy ones are alike.
  [[nodiscard]] std::vector<std::size_t> matching(const Patient& patient) const {
    std::vector<std::size_t> any, same;
    for (std::size_t i = 0; i < baselines_.size(); ++i) {
      if (forecasts_[i].empty() || !is_same_run(patient.log, baselines_[i].log)) continue;
      any.push_back(i);
      if (is_same_hosts(patient.log, baselines_[i].log)) same.push_back(i);
    }
    return same.empty() ? any : same;
  }

  [[nodiscard]] Biases biases_of(const std::vector<std::size_t>& of) const {
    std::map<Bytes, std::vector<HealthyTime>> all;
    Biases out;
    for (const auto i : of) {
      const auto& one = baselines_[i];
      for (std::size_t k = 0; k < one.sizes.size(); ++k) {
        auto time = middle(rows_of_size(one.log, one.log.file, one.sizes[k]));
        if (!time || forecasts_[i][k].ps <= 0) continue;
        time->seconds = std::log(time->seconds / forecasts_[i][k].seconds());
        all[one.sizes[k]].push_back(std::move(*time));
        out[one.sizes[k]].from.push_back(i);
      }
    }
    for (auto& [size, times] : all) {
      auto one = *middle(std::move(times));
      out[size].ln = one.seconds;
      out[size].place = std::move(one.place);
    }
    return out;
  }

  ExpectedRow expected(const Biases& biases, Bytes size) {
    const auto above = biases.lower_bound(size);
    if (above == biases.end()) return {};
    if (above->first == size) {
      use(above->second);
      return {std::exp(above->second.ln), above->second.place};
    }
    if (above == biases.begin()) return {};
    const auto below = std::prev(above);
    const auto ln = [](Bytes at) { return std::log(static_cast<double>(at.value)); };
    const double apart = ln(above->first) - ln(below->first);
    if (apart > std::log(k_most_apart) * (1 + 1e-12)) return {};
    use(above->second);
    use(below->second);
    const double share = (ln(size) - ln(below->first)) / apart;
    return {std::exp(below->second.ln * (1 - share) + above->second.ln * share),
            fmt::format("between {} and {}", below->second.place, above->second.place)};
  }
  void use(const Bias& bias) {
    for (const auto i : bias.from) is_used_[i] = true;
  }

  const std::vector<Patient>& baselines_;
  std::vector<std::vector<Duration>> forecasts_;
  std::vector<bool> is_used_;
};

std::vector<std::string> tables_of(const std::vector<Patient>& patients, const std::string& path) {
  std::vector<std::string> out;
  for (const auto& one : patients) {
    if (path.empty() || one.log.file == path) out.push_back(what_of(one.log));
  }
  return out;
}

std::string listed(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() <= k_most_named) return fmt::format("{}", fmt::join(names, "; "));
  const auto more = names.size() - k_most_named;
  names.resize(k_most_named);
  return fmt::format("{}; {} more", fmt::join(names, "; "), more);
}

}  // namespace

std::optional<HealthyTime> middle(std::vector<HealthyTime> times) {
  if (times.empty()) return std::nullopt;
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), at, times.end(), [](const HealthyTime& a, const HealthyTime& b) {
    return std::tie(a.seconds, a.place) < std::tie(b.seconds, b.place);
  });
  return std::move(*at);
}

std::vector<HealthyTime> rows_of_size(const MeasuredLog& table, const std::string& path, Bytes size) {
  std::vector<HealthyTime> out;
  for (const auto& row : table.rows) {
    if (row.size == size && row.time.ps > 0) out.push_back({row.time.seconds(), fmt::format("{}:{}", path, row.line)});
  }
  return out;
}

std::string what_of(const MeasuredLog& table) {
  auto out = table.benchmark ? std::string(to_string(*table.benchmark)) : "a benchmark that is not named";
  if (const auto ranks = table.header.num_ranks) out += fmt::format(", {} ranks", *ranks);
  if (const auto hosts = table.header.num_hosts)
    out += fmt::format("{} {} host{}", table.header.num_ranks ? " on" : ",", *hosts, *hosts == 1 ? "" : "s");
  if (table.header.launch) out += fmt::format(", launch {}", to_string(*table.header.launch));
  const auto place = [](BufferPlace where) { return where == BufferPlace::device ? "device" : "host"; };
  if (table.header.send_buffer && table.header.receive_buffer)
    out += fmt::format(", buffers {} and {}", place(*table.header.send_buffer), place(*table.header.receive_buffer));
  const auto sizes = sizes_of(table);
  if (!sizes.empty()) out += ", " + to_string(sizes.front());
  if (sizes.size() > 1) out += " to " + to_string(sizes.back());
  return out;
}

Diagnostic unused_baseline(const std::string& path, const std::string& must, const std::vector<std::string>& has,
                           const std::vector<std::string>& wanted) {
  Diagnostic out{
      Severity::error, {path, 0, 0}, fmt::format("this baseline serves nothing: {} must be the same", must), "", {}};
  out.notes.push_back({fmt::format("it has {}", has.empty() ? "no table that can be used here" : listed(has)), {}});
  out.notes.push_back({fmt::format("needed is {}", listed(wanted)), {}});
  return out;
}

Diagnostics cover(std::vector<Patient>& patients, const std::vector<Patient>& baselines,
                  const std::vector<std::string>& paths) {
  Cover all(baselines);
  for (auto& patient : patients) all.cover(patient);
  Diagnostics out;
  for (const auto& path : paths) {
    if (!all.is_used(path))
      out.push_back(unused_baseline(path, "benchmark, ranks, hosts, launch, buffers and size",
                                    tables_of(baselines, path), tables_of(patients, "")));
  }
  return out;
}

}  // namespace fabricast::doctor
