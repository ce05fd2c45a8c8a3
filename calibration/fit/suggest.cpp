// SPDX-License-Identifier: Apache-2.0
// A first calibration file from logs' own headers: a workload for each, and every parameter that a forecast of these
// logs depends on. What headers do not say (forced algorithm, GPU peer access) is left to the user, by comments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "fabricast/calibration.hpp"
#include "fit/dataset.hpp"

namespace fabricast {

namespace fit {

namespace {

/// Least change of any predicted time, when a parameter is halved or doubled, that makes it worth fitting.
constexpr double k_matters = 0.02;

std::string quoted(const std::string& text) { return fmt::format("\"{}\"", text); }

/// The keys of a workload that the header gives.
std::string workload_of(const MeasuredLog& log) {
  const auto& header = log.header;
  std::string out = fmt::format("benchmark: {}", to_string(*log.benchmark));
  const bool is_nccl = family_of(*log.benchmark) == BenchmarkFamily::nccl_tests;
  if (header.num_ranks && (is_nccl || is_collective(*log.benchmark)))
    out += fmt::format(", {}: {}", is_nccl ? "gpus" : "ranks", *header.num_ranks);
  if (header.ranks_per_host && !is_nccl && is_collective(*log.benchmark))
    out += fmt::format(", ranks_per_host: {}", *header.ranks_per_host);
  if (header.launch) out += fmt::format(", launch: {}", to_string(*header.launch));
  const auto place = [](BufferPlace where) { return where == BufferPlace::device ? "device" : "host"; };
  if (header.send_buffer && header.receive_buffer && !is_nccl)
    out += fmt::format(", buffers: [{}, {}]", place(*header.send_buffer), place(*header.receive_buffer));
  if (header.pairs) out += fmt::format(", pairs: {}", *header.pairs);
  if (header.window) out += fmt::format(", window: {}", *header.window);
  if (header.tx_depth && family_of(*log.benchmark) == BenchmarkFamily::perftest)
    out += fmt::format(", window: {}", *header.tx_depth);
  if (header.queue_pairs) out += fmt::format(", queue_pairs: {}", *header.queue_pairs);
  if (header.is_bidirectional) out += ", bidirectional: on";
  return out;
}

std::string software_of(const MeasuredLog& log) {
  if (log.header.nccl_version.empty()) return "";
  return fmt::format("    software: {{nccl: {{version: {}}}}}\n", quoted(log.header.nccl_version));
}

/// Software and device values that a fit may move: not data-sheet facts, sizes and counts.
bool is_fittable(const Parameter& p) {
  if (p.value <= 0 || p.dimension == Dimension::bytes || p.confidence == Confidence::high) return false;
  if (p.name.rfind("model.", 0) == 0 || p.name.rfind("pcie.", 0) == 0) return false;
  static const std::vector<std::string> layers{"nccl.", "mpi.", "cuda.", "gdrcopy.", "tcp.", "verbs."};
  const bool is_software =
      std::any_of(layers.begin(), layers.end(), [&](const auto& layer) { return p.name.rfind(layer, 0) == 0; });
  if (is_software) return p.dimension != Dimension::number || p.name.find(".max_") == std::string::npos;
  static const std::vector<std::string> fields{".latency",           ".p2p_read_bandwidth", ".p2p_write_bandwidth",
                                               ".nvlink_efficiency", ".memory_bandwidth",   ".payload_efficiency",
                                               ".message_rate"};
  return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return p.name.ends_with(field); });
}

double largest_change(Dataset& data, std::size_t parameter, const Values& x) {
  double largest = 0;
  for (std::size_t e = 0; e < data.experiments().size(); ++e) {
    const auto& uses = data.experiments()[e].uses;
    if (std::find(uses.begin(), uses.end(), static_cast<int>(parameter)) == uses.end()) continue;
    const auto base = data.predict(e, x);
    for (const double ratio : {0.5, 2.0}) {
      auto moved = x;
      moved[parameter] += std::log(ratio);
      const auto& seconds = data.predict(e, moved);
      for (std::size_t i = 0; i < base.size(); ++i)
        largest = std::max(largest, std::abs(std::log(seconds[i] / base[i])));
    }
  }
  return largest;
}

}  // namespace

}  // namespace fit

Result<std::string> suggest_calibration(const std::string& topology_file, const std::vector<std::string>& logs) {
  Diagnostics faults;
  const auto topology = load_topology(topology_file);
  if (!topology) faults = topology.error();
  std::string name = topology ? topology->spec.name : "";
  std::string text = fmt::format(
      "schema: fabricast/calibration/1\nname: {}\n"
      "description: suggested from the headers of the logs; add what they do not say (algorithm, protocol, nccl.p2p)\n"
      "topology: {}\nlogs:\n",
      name, topology_file);
  for (const auto& file : logs) {
    const auto tables = read_logs(file);
    if (!tables) {
      faults.insert(faults.end(), tables.error().begin(), tables.error().end());
      continue;
    }
    const auto table = std::find_if(tables->begin(), tables->end(),
                                    [](const MeasuredLog& log) { return !log.rows.empty() && log.benchmark; });
    if (table == tables->end()) {
      faults.push_back(make_error(fmt::format("'{}' has no table of a benchmark that is forecast", file)));
      continue;
    }
    text +=
        fmt::format("  - file: {}\n    workload: {{{}}}\n{}", file, fit::workload_of(*table), fit::software_of(*table));
  }
  if (!faults.empty()) return tl::unexpected(faults);
  Calibration trial;
  trial.name = name;
  trial.file = "suggestion";
  for (const auto& [parameter_name, parameter] : topology->parameters.all()) {
    if (!fit::is_fittable(parameter)) continue;
    CalibrationParameter one;
    one.pattern = parameter_name;
    trial.parameters.push_back(std::move(one));
  }
  for (const auto& file : logs) {
    const auto tables = read_logs(file);
    const auto table = std::find_if(tables->begin(), tables->end(),
                                    [](const MeasuredLog& log) { return !log.rows.empty() && log.benchmark; });
    CalibrationLog log;
    log.file = file;
    const auto software = fit::software_of(*table);
    log.scenario_text =
        fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\n{}workload: {{{}}}\n", topology_file,
                    software.empty() ? "" : software.substr(4), fit::workload_of(*table));
    trial.logs.push_back(std::move(log));
  }
  auto data = fit::Dataset::load(trial);
  if (!data) return tl::unexpected(data.error());
  fit::Values x;
  for (const auto& free : data->parameters()) x.push_back(std::log(free.parameter.value));
  text += "fit:\n";
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (fit::largest_change(*data, i, x) >= fit::k_matters)
      text += fmt::format("  {}: {{}}\n", data->parameters()[i].parameter.name);
  }
  return text + "hold_out: {every: 4}\nnoise: 0.02\n";
}

}  // namespace fabricast
