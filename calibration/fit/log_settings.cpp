// SPDX-License-Identifier: Apache-2.0
// What logs print of how they were taken, for scenarios that leave it open: a forecast is compared with what was
// measured, not with a default.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fabricast/setting_hints.hpp"
#include "fit/stated_settings.hpp"

namespace fabricast {

namespace {

/// Values by path, as `--set` takes them.
using Values = std::map<std::string, std::string>;

/// How many GPUs or ranks took part, where nothing of the scenario says so and the topology has them.
void add_ranks(const LoadedScenario& loaded, const MeasuredHeader& header, Values& out) {
  const auto& workload = loaded.scenario.workloads.front();
  const auto& given = workload.given;
  const auto family = family_of(workload.benchmark);
  const bool is_collective_test = family == BenchmarkFamily::osu && is_collective(workload.benchmark);
  if (family != BenchmarkFamily::nccl_tests && !is_collective_test) return;
  if (!header.num_ranks || given.contains("gpus") || given.contains("ranks") || given.contains("devices")) return;
  const auto gpus = static_cast<int>(loaded.topology.devices(DeviceKind::gpu).size());
  if (*header.num_ranks >= gpus || *header.num_ranks < 1) return;
  out[is_collective_test ? "workload.ranks" : "workload.gpus"] = std::to_string(*header.num_ranks);
  const int hosts = header.num_hosts.value_or(1);
  const int per_host = header.ranks_per_host.value_or(0);
  if (hosts > 1 && hosts <= loaded.topology.num_hosts() && per_host * hosts == *header.num_ranks)
    out["workload.ranks_per_host"] = std::to_string(per_host);
}

/// What the log states; `by_columns`: of its release at least a time.
Values values_of(const LoadedScenario& loaded, const MeasuredLog& log, bool by_columns) {
  const auto benchmark = loaded.scenario.workloads.front().benchmark;
  if (!log.benchmark || family_of(*log.benchmark) != family_of(benchmark)) return {};
  const auto stated = fit::stated_settings(log);
  Values out;
  for (const auto& [key, value] : stated.workload) out["workload." + key] = value;
  for (const auto& [key, value] : stated.nccl) out["software.nccl." + key] = value;
  for (const auto& [key, value] : stated.software) out["software." + key] = value;
  if (by_columns && log.header.has_old_columns)
    out.emplace("software.nccl.version", fmt::format("\"{}\"", fit::k_release_of_old_columns));
  add_ranks(loaded, log.header, out);
  return out;
}

bool is_given(const Scenario& scenario, const std::string& path) {
  const auto key = path.substr(path.find('.') + 1);
  return path.starts_with("workload.") ? scenario.workloads.front().given.contains(key)
                                       : scenario.software.locations.contains(key);
}

/// What the scenario takes it to be, where that is no secret of the models.
Values taken_by(const LoadedScenario& loaded) {
  const auto& scenario = loaded.scenario;
  const auto& workload = scenario.workloads.front();
  const auto gpus = loaded.topology.devices(DeviceKind::gpu);
  const bool has_c2c_gpu = std::ranges::any_of(gpus, [&](DeviceId gpu) { return has_c2c(loaded.topology, gpu); });
  const auto& level = scenario.software.nccl_gdr_level;
  return {{"workload.launch", std::string(to_string(workload.launch))},
          {"workload.buffers", fit::buffers_text(workload.send_buffer, workload.receive_buffer)},
          {"workload.window", std::to_string(workload.window)},
          {"workload.pairs", std::to_string(workload.pairs)},
          {"workload.streams", std::to_string(workload.streams)},
          {"software.nccl.gdr_level", level.empty() && !has_c2c_gpu ? "pxb" : level},
          {"software.nccl.ib_qps_per_connection", std::to_string(scenario.software.nccl_ib_qps)},
          {"software.transport", scenario.software.transport},
          {"workload.algorithm", workload.algorithm},
          {"workload.protocol", workload.protocol},
          {"workload.queue_pairs", std::to_string(workload.queue_pairs)},
          {"software.nccl.version", "\"" + scenario.software.nccl_version + "\""}};
}

/// What all logs say alike.
Values agreed_values(const LoadedScenario& loaded, std::span<const MeasuredLog> logs, bool by_columns) {
  if (loaded.scenario.workloads.size() != 1 || logs.empty()) return {};
  auto said = values_of(loaded, logs.front(), by_columns);
  for (const auto& log : logs.subspan(1)) {
    const auto others = values_of(loaded, log, by_columns);
    std::erase_if(said, [&](const auto& one) {
      const auto same = others.find(one.first);
      return same == others.end() || same->second != one.second;
    });
  }
  return said;
}

/// "2.8" and "2.8.4" are the same release as far as both go.
bool is_same(std::string_view taken, std::string_view said) {
  const auto plain = [](std::string_view text) { return text.substr(0, text.find_last_not_of('"') + 1); };
  const auto one = plain(taken), other = plain(said);
  const auto& shorter = one.size() < other.size() ? one : other;
  const auto& longer = one.size() < other.size() ? other : one;
  return longer == shorter ||
         (shorter.starts_with('"') && longer.starts_with(shorter) && longer[shorter.size()] == '.');
}

}  // namespace

std::vector<Setting> settings_of_logs(const LoadedScenario& loaded, std::span<const MeasuredLog> logs) {
  const auto taken = taken_by(loaded);
  std::vector<Setting> out;
  for (const auto& [path, value] : agreed_values(loaded, logs, true)) {
    const auto same = taken.find(path);
    if (is_given(loaded.scenario, path) || (same != taken.end() && is_same(same->second, value))) continue;
    out.push_back({path, value});
  }
  return out;
}

AsLogged as_logged(const LoadedScenario& loaded, std::span<const MeasuredLog> logs,
                   const std::function<Result<LoadedScenario>(const std::vector<Setting>&)>& load,
                   const std::function<bool(const Setting&)>& is_wanted) {
  auto wanted = settings_of_logs(loaded, logs);
  if (is_wanted) std::erase_if(wanted, [&](const Setting& one) { return !is_wanted(one); });
  AsLogged out;
  if (wanted.empty()) return out;
  std::string refused;
  if (auto scenario = load(wanted)) {
    out.settings = std::move(wanted);
    out.scenario = std::move(*scenario);
  } else {  // those with which it loads, one by one
    for (const auto& one : wanted) {
      auto with = out.settings;
      with.push_back(one);
      if (auto next = load(with)) {
        out.settings = std::move(with);
        out.scenario = std::move(*next);
      } else {
        refused += fmt::format("; not {}={}: {}", one.path, one.value, next.error().front().message);
      }
    }
  }
  out.note = "the scenario leaves open, the log says:";
  for (const auto& one : out.settings) out.note += fmt::format(" {}={}", one.path, one.value);
  out.note += refused;
  return out;
}

std::string text_of_contradictions(const LoadedScenario& loaded, std::span<const MeasuredLog> logs) {
  const auto taken = taken_by(loaded);
  std::string out;
  for (const auto& [path, value] : agreed_values(loaded, logs, false)) {
    const auto same = taken.find(path);
    if (same == taken.end() || !is_given(loaded.scenario, path) || is_same(same->second, value)) continue;
    out +=
        fmt::format("{}{}={}, the log says {}", out.empty() ? "the scenario gives " : "; ", path, same->second, value);
  }
  std::set<std::string> others;
  for (const auto& log : logs) {
    others.insert(fit::other_devices(log, loaded.topology));
    others.insert(fit::other_packets(log, loaded.topology, loaded.parameters));
  }
  others.erase("");
  for (const auto& other : others) out += fmt::format("{}{}", out.empty() ? "" : "; ", other);
  return out;
}

}  // namespace fabricast
