// SPDX-License-Identifier: Apache-2.0
// What a healthy cluster reaches: the forecast per benchmark, count and size with the upper edge of its band, or, where
// logs of the healthy cluster are given, those times and a margin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "doctor/baselines.hpp"
#include "doctor/loss.hpp"
#include "doctor/patients.hpp"
#include "fabricast/inputs.hpp"

namespace fabricast {

namespace {

/// [n] -> GPUs of the first n hosts that have any.
std::vector<int> gpus_of_first(const Topology& topology) {
  std::vector<int> sums{0};
  for (int host = 0; host < topology.num_hosts(); ++host)
    if (const int own = topology.count(DeviceKind::gpu, host); own > 0) sums.push_back(sums.back() + own);
  return sums;
}

/// Hosts and ranks to forecast: 2, 4 ... ranks of one host, then 2, 4 ... hosts, then all.
std::vector<std::pair<int, int>> counts_of(const Topology& topology, Benchmark benchmark) {
  const int hosts = topology.num_hosts();
  std::set<std::pair<int, int>> out;
  if (family_of(benchmark) == BenchmarkFamily::nccl_tests) {
    const auto gpus = gpus_of_first(topology);
    const int of_one = gpus.size() > 1 ? gpus[1] : 0;
    for (int g = 2; g <= of_one; g *= 2) out.emplace(1, g);
    if (of_one > 1) out.emplace(1, of_one);
    for (std::size_t h = 2; h < gpus.size(); h *= 2) out.emplace(static_cast<int>(h), gpus[h]);
    if (gpus.size() > 2) out.emplace(static_cast<int>(gpus.size()) - 1, gpus.back());
  } else if (hosts > 1) {
    if (!is_collective(benchmark)) out.emplace(2, 2);
    for (int h = 2; is_collective(benchmark) && h <= hosts; h *= 2) out.emplace(h, h);
    if (is_collective(benchmark)) out.emplace(hosts, hosts);
  }
  return {out.begin(), out.end()};
}

/// Floors of one scenario's first workload.
Result<void> add_floors_of(LoadedScenario loaded, const ExpectOptions& options, Expectations& out) {
  loaded.scenario.workloads.resize(1);
  auto& workload = loaded.scenario.workloads.front();
  if (!options.sizes.empty()) workload.sizes = options.sizes;
  SimulateOptions simulate_options;
  simulate_options.with_terms = false;
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, simulate_options);
  if (!prediction) return tl::unexpected(prediction.error());
  const auto& forecast = prediction->workloads.front();
  for (const auto& row : forecast.rows) {
    Floor floor;
    floor.benchmark = forecast.benchmark;
    floor.hosts = forecast.num_hosts;
    floor.ranks = forecast.num_ranks;
    floor.size = row.size;
    floor.expected = row.time;
    floor.slowest = row.high_time;
    floor.expected_busbw = row.busbw;
    floor.lowest_busbw = {row.busbw.bytes_per_s * row.time.seconds() / std::max(1e-12, row.high_time.seconds())};
    floor.reason = row.bottleneck;
    out.floors.push_back(std::move(floor));
  }
  return {};
}

Result<void> add_floors(const std::string& cluster, const LoadedTopology& topology, Benchmark benchmark,
                        const ExpectOptions& options, Expectations& out) {
  const bool is_nccl = family_of(benchmark) == BenchmarkFamily::nccl_tests;
  for (const auto& [hosts, ranks] : counts_of(topology.topology, benchmark)) {
    const auto path = std::filesystem::absolute(cluster).lexically_normal().string();
    const auto count = is_nccl                    ? fmt::format(", gpus: {}", ranks)
                       : is_collective(benchmark) ? fmt::format(", ranks: {}, ranks_per_host: 1", ranks)
                                                  : "";
    auto settings = options.settings;
    for (auto& one : settings) one.path = "topology." + one.path;
    auto loaded = load_scenario_text(
        "expect",
        fmt::format("schema: fabricast/scenario/1\nname: expect\ntopology: \"{}\"\nworkload: {{benchmark: {}{}}}\n",
                    path, to_string(benchmark), count),
        options.parameter_files, settings);
    if (!loaded) return tl::unexpected(loaded.error());
    if (auto added = add_floors_of(std::move(*loaded), options, out); !added) return added;
  }
  return {};
}

/// Of the benchmark, ranks and hosts that the floor is for, as far as the log says them.
bool may_be_of(const MeasuredLog& table, const Floor& floor) {
  return table.benchmark == floor.benchmark && table.header.num_ranks.value_or(floor.ranks) == floor.ranks &&
         table.header.num_hosts.value_or(floor.hosts) == floor.hosts;
}

/// Places of a log's floors; where it does not say its ranks, those of the largest count.
std::vector<std::size_t> floors_of(const MeasuredLog& table, const std::vector<Floor>& floors) {
  std::vector<std::size_t> out;
  int ranks = 0;
  for (std::size_t i = 0; i < floors.size(); ++i)
    if (may_be_of(table, floors[i])) out.push_back(i);
  for (const auto i : out) ranks = std::max(ranks, floors[i].ranks);
  std::erase_if(out, [&](std::size_t i) { return floors[i].ranks != ranks; });
  return out;
}

/// Times of healthy runs take the forecast's place, with a margin.
Result<void> apply_baselines(const ExpectOptions& options, Expectations& out) {
  std::map<std::string, std::vector<MeasuredLog>> logs;
  for (const auto& path : options.baselines) {
    auto tables = read_logs(path);
    if (!tables) return tl::unexpected(tables.error());
    if (!tables->empty()) note_hash(out.inputs, path, tables->front().sha256);
    logs[path] = std::move(*tables);
  }
  std::set<std::string> used;
  std::vector<std::vector<doctor::HealthyTime>> times(out.floors.size());
  for (const auto& [path, tables] : logs) {
    for (const auto& table : tables) {
      for (const auto i : floors_of(table, out.floors)) {
        for (auto& time : doctor::rows_of_size(table, path, out.floors[i].size)) {
          times[i].push_back(std::move(time));
          used.insert(path);
        }
      }
    }
  }
  for (std::size_t i = 0; i < out.floors.size(); ++i) {
    auto& floor = out.floors[i];
    const auto time = doctor::middle(std::move(times[i]));
    if (!time) continue;
    floor.expected_busbw = {floor.expected_busbw.bytes_per_s * floor.expected.seconds() / time->seconds};
    floor.expected = from_seconds(time->seconds);
    floor.slowest = from_seconds(time->seconds / (1 - options.margin));
    floor.lowest_busbw = {floor.expected_busbw.bytes_per_s * (1 - options.margin)};
    floor.reason = time->place;
  }
  Diagnostics faults;
  for (const auto& [path, tables] : logs) {
    if (used.contains(path)) continue;
    std::vector<std::string> has, wanted;
    for (const auto& table : tables) has.push_back(doctor::what_of(table));
    for (const auto& floor : out.floors)
      wanted.push_back(fmt::format("{}, {} ranks on {} host{}", to_string(floor.benchmark), floor.ranks, floor.hosts,
                                   floor.hosts == 1 ? "" : "s"));
    faults.push_back(doctor::unused_baseline(path, "benchmark, ranks and size", has, wanted));
  }
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  return {};
}

double gbyte(Bandwidth rate) { return rate.bytes_per_s * 1e-9; }

Result<Expectations> floors_of_scenario(const std::string& cluster, const ExpectOptions& options) {
  auto scenario = load_scenario(cluster, options.parameter_files, options.settings);
  if (!scenario) return tl::unexpected(scenario.error());
  Expectations out;
  out.cluster = scenario->topology.name();
  out.inputs = scenario->inputs;
  if (auto added = add_floors_of(std::move(*scenario), options, out); !added) return tl::unexpected(added.error());
  return out;
}

Result<Expectations> floors_of_topology(const std::string& cluster, const ExpectOptions& options) {
  auto topology = load_topology(cluster, options.parameter_files, options.settings);
  if (!topology) return tl::unexpected(topology.error());
  Expectations out;
  out.cluster = topology->topology.name();
  out.inputs = topology->inputs;
  for (const auto benchmark : options.benchmarks) {
    if (auto added = add_floors(cluster, *topology, benchmark, options, out); !added)
      return tl::unexpected(added.error());
  }
  return out;
}

}  // namespace

Result<Expectations> expect(const std::string& cluster, const ExpectOptions& options) {
  const auto kind = file_kind(cluster);
  if (!kind) return tl::unexpected(kind.error());
  auto forecast = *kind == "scenario" ? floors_of_scenario(cluster, options) : floors_of_topology(cluster, options);
  if (!forecast) return forecast;
  auto& out = *forecast;
  if (out.floors.empty())
    return tl::unexpected(
        Diagnostics{make_error(fmt::format("'{}' has too few GPUs or hosts for these benchmarks", out.cluster),
                               "two GPUs in a host, or two hosts")});
  out.basis = options.baselines.empty()
                  ? "the forecast; the floor is the edge of its 80 % band"
                  : fmt::format("healthy runs of this cluster, less {:.0f} %; the forecast where they have no row",
                                100 * options.margin);
  if (auto applied = apply_baselines(options, out); !applied) return tl::unexpected(applied.error());
  return out;
}

std::string expectations_yaml(const Expectations& expectations) {
  std::string out = fmt::format(
      "# What {} should reach when it is healthy. Times in us, bandwidths in GB/s (bus bandwidth of nccl-tests).\n# "
      "From {}.\n",
      printable(expectations.cluster), expectations.basis);
  for (const auto& input : expectations.inputs)
    out += fmt::format("# {} sha256 {}\n", printable(input.path), input.sha256.substr(0, 16));
  out += fmt::format("schema: fabricast/floors/1\ncluster: {}\nfloors:\n", yaml_quoted(expectations.cluster));
  for (const auto& one : expectations.floors)
    out += fmt::format(
        "  - {{benchmark: {}, hosts: {}, ranks: {}, size_bytes: {}, expected_us: {:.6g}, slowest_us: {:.6g}, "
        "expected_GBps: {:.6g}, floor_GBps: {:.6g}, reason: {}}}\n",
        to_string(one.benchmark), one.hosts, one.ranks, one.size.value, one.expected.us(), one.slowest.us(),
        gbyte(one.expected_busbw), gbyte(one.lowest_busbw), yaml_quoted(one.reason));
  return out;
}

std::string expectations_json(const Expectations& expectations) {
  nlohmann::ordered_json out;
  out["schema"] = "fabricast/floors/1";
  out["cluster"] = printable(expectations.cluster);
  out["basis"] = expectations.basis;
  out["inputs"] = nlohmann::ordered_json::array();
  for (const auto& input : expectations.inputs)
    out["inputs"].push_back({{"path", printable(input.path)}, {"sha256", input.sha256}});
  out["floors"] = nlohmann::ordered_json::array();
  for (const auto& one : expectations.floors)
    out["floors"].push_back({{"benchmark", std::string(to_string(one.benchmark))},
                             {"hosts", one.hosts},
                             {"ranks", one.ranks},
                             {"size_bytes", one.size.value},
                             {"expected_time_ps", one.expected.ps},
                             {"slowest_time_ps", one.slowest.ps},
                             {"expected_busbw_bytes_per_s", one.expected_busbw.bytes_per_s},
                             {"floor_busbw_bytes_per_s", one.lowest_busbw.bytes_per_s},
                             {"reason", printable(one.reason)}});
  return out.dump(1) + "\n";
}

std::string superbench_rules(const Expectations& expectations) {
  static const std::map<Benchmark, const char*> names{{Benchmark::all_reduce_perf, "allreduce"},
                                                      {Benchmark::all_gather_perf, "allgather"},
                                                      {Benchmark::reduce_scatter_perf, "reducescatter"},
                                                      {Benchmark::broadcast_perf, "broadcast"},
                                                      {Benchmark::reduce_perf, "reduce"},
                                                      {Benchmark::alltoall_perf, "alltoall"}};
  std::string out = fmt::format(
      "# SuperBench rules of {}: `sb result diagnosis -r`. Floors in GB/s from {}.\nversion: v0.11\nsuperbench:\n  "
      "rules:\n",
      printable(expectations.cluster), expectations.basis);
  // SuperBench's metrics do not name the count: the largest of one host, which its benchmark runs.
  std::map<std::pair<Benchmark, Bytes>, const Floor*> best;
  for (const auto& one : expectations.floors) {
    auto& into = best[{one.benchmark, one.size}];
    if (one.hosts == 1 && (into == nullptr || one.ranks > into->ranks)) into = &one;
  }
  for (const auto& [key, floor] : best) {
    const auto name = names.find(key.first);
    if (floor == nullptr || name == names.end() || floor->lowest_busbw.bytes_per_s < 1e8) continue;
    out += fmt::format(
        "    {}_{}_{}gpu:\n      function: value\n      criteria: 'lambda x: x < {:.4g}'\n      categories: NCCL\n     "
        " metrics:\n        - nccl-bw.*/{}_{}_busbw:\\d+\n",
        name->second, key.second.value, floor->ranks, gbyte(floor->lowest_busbw), name->second, key.second.value);
  }
  return out;
}

FloorCheck check_floors(const MeasuredLog& log, const std::vector<Floor>& floors, double most_below) {
  FloorCheck out;
  std::vector<doctor::LossRow> rows;
  std::vector<std::pair<double, std::string>> lines;
  const auto own = floors_of(log, floors);
  for (const auto& row : log.rows) {
    for (const auto i : own) {
      const auto& floor = floors[i];
      if (row.size != floor.size || row.time.ps <= 0) continue;
      const double ratio = row.time.seconds() / floor.expected.seconds();
      const bool is_below = row.time > floor.slowest;
      ++out.num_rows;
      out.num_below += is_below ? 1 : 0;
      rows.push_back({row.size >= doctor::k_large, ratio, is_below});
      if (is_below)
        lines.emplace_back(
            ratio, fmt::format("{}:{}: {} takes {}, {} expected, {} at most", log.file, row.line, to_string(row.size),
                               to_string(row.time), to_string(floor.expected), to_string(floor.slowest)));
      break;
    }
  }
  const auto loss = doctor::loss_of(rows, most_below);
  out.is_missed = loss.is_missed();
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto is_open = [&](const Floor& floor) { return may_be_of(log, floor) && floor.ranks != floors[own[0]].ranks; };
  if (!own.empty() && std::ranges::any_of(floors, is_open))
    out.lines.push_back(
        fmt::format("{} does not say its number of ranks: {} are taken", log.file, floors[own[0]].ranks));
  if (loss.is_lost)
    out.lines.push_back(
        fmt::format("{}: {:.0f} % slower than expected in the median from 1 MiB on, {:.0f} % over all rows", log.file,
                    100 * (loss.of_large - 1), 100 * (loss.of_all - 1)));
  for (const auto& [ratio, text] : lines) out.lines.push_back(text);
  return out;
}

}  // namespace fabricast
