// SPDX-License-Identifier: Apache-2.0
// Logs to patients: each table with the scenario it was taken with, healthy. What a log's words say of its settings
// (NCCL_P2P_DISABLE=1, "via NET/Socket") is no part of the healthy scenario but evidence.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.hpp"
#include "doctor/changes.hpp"
#include "doctor/patients.hpp"
#include "doctor/virtual_costs.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/setting_hints.hpp"
#include "fabricast/virtualization.hpp"
#include "fit/stated_settings.hpp"

namespace fabricast::doctor {

namespace {

bool is_on(const std::string& value) { return !value.empty() && value != "0"; }

/// Causes that the log's own words name.
std::vector<std::string> words_of(const MeasuredLog& log) {
  std::vector<std::string> out;
  const auto& seen = log.header.nccl_seen;
  const auto say = [&](const char* cause, const std::string& words) {
    out.push_back(std::string(cause) + "\t" + words);
  };
  for (const auto& [name, value] : log.header.environment) {
    const auto text = name + "=" + value;
    if (name == "NCCL_P2P_DISABLE" && is_on(value)) say("p2p-off", text);
    if (name == "NCCL_P2P_LEVEL" && value == "LOC") say("p2p-off", text);
    if (name == "NCCL_SHM_DISABLE" && is_on(value)) say("shm-off", text);
    if (name == "NCCL_IB_DISABLE" && is_on(value)) say("tcp", text);
    if (name == "NCCL_NET" && (value == "Socket" || value == "socket")) say("tcp", text);
    if (name == "NCCL_NET_GDR_LEVEL" && (value == "0" || value == "LOC")) say("gpudirect-off", text);
    if (name == "NCCL_NVLS_ENABLE" && value == "0") say("nvls-off", text);
    if (name == "NCCL_PXN_DISABLE" && is_on(value)) say("pxn-off", text);
    const auto low = lower(value);
    if (name == "NCCL_PROTO") say(("protocol-" + low).c_str(), text);
    if (name == "NCCL_ALGO") say(("algorithm-" + low).c_str(), text);
    if (name == "NCCL_MAX_NCHANNELS" || name == "NCCL_MAX_CTAS") say(("channels-" + value).c_str(), text);
  }
  if (seen.has_socket && !seen.has_ib) say("tcp", "NCCL says NET/Socket, and nowhere NET/IB");
  if (seen.has_ib && !seen.has_gdr) say("gpudirect-off", "NCCL says NET/IB, and nowhere GDRDMA");
  if (seen.has_shm && !seen.has_p2p) say("p2p-off", "NCCL says SHM, and nowhere P2P");
  return out;
}

/// A key that says how a healthy run was set up; the others are what may be wrong.
bool is_healthy(const std::string& key) {
  static const std::set<std::string> wrong{"algorithm", "protocol", "channels",  "p2p",       "shm",
                                           "nvls",      "pxn",      "gdr_level", "transport", "gpudirect_rdma"};
  return !wrong.contains(key);
}

fit::Keys healthy(const fit::Keys& keys) {
  fit::Keys out;
  for (const auto& key : keys) {
    if (is_healthy(key.first)) out.push_back(key);
  }
  return out;
}

/// The hosts that the log names, where the topology has them: their GPUs, in order.
std::string devices_of(const MeasuredLog& log, const Topology& topology) {
  std::string out;
  int found = 0;
  for (const auto& rank : log.header.ranks) {
    int host = -1;
    for (int h = 0; h < topology.num_hosts(); ++h) {
      if (topology.host_name(h) == rank.host) host = h;
    }
    if (host < 0 || rank.device >= topology.count(DeviceKind::gpu, host)) return "";
    out += fmt::format("{}{}", out.empty() ? "" : ", ",
                       topology.device(topology.device_in_host(host, DeviceKind::gpu, rank.device)).name);
    ++found;
  }
  return found > 1 && found == log.header.num_ranks.value_or(0) ? "[" + out + "]" : "";
}

Case case_of(LoadedScenario loaded) {
  Case out;
  out.spec = loaded.topology.spec();
  out.scenario = std::move(loaded.scenario);
  out.scenario.workloads.resize(1);
  out.parameters = std::move(loaded.parameters);
  out.types = std::move(loaded.device_types);
  return out;
}

class Collector {
 public:
  Collector(const std::string& cluster, const DoctorOptions& options) : cluster_(cluster), options_(options) {}

  Result<void> load() {
    const auto kind = file_kind(cluster_);
    if (!kind) return tl::unexpected(kind.error());
    if (*kind == "topology") {
      auto topology = load_topology(cluster_, options_.parameter_files, options_.settings);
      if (!topology) return tl::unexpected(topology.error());
      inputs_ = topology->inputs;
      topology_ = std::move(*topology);
    } else {
      auto scenario = load_scenario(cluster_, options_.parameter_files, options_.settings);
      if (!scenario) return tl::unexpected(scenario.error());
      inputs_ = scenario->inputs;
      scenario_ = std::move(*scenario);
    }
    return {};
  }

  Result<std::vector<Patient>> collect(const std::vector<std::string>& logs, Diagnostics& warnings) {
    std::vector<Patient> out;
    for (const auto& path : logs) {
      auto tables = read_logs(path);
      if (!tables) return tl::unexpected(tables.error());
      if (!tables->empty()) note_hash(inputs_, path, tables->front().sha256);
      const auto before = out.size();
      if (scenario_) add_to_scenario(*tables, out, warnings);
      if (topology_) add_to_topology(*tables, out, warnings);
      if (out.size() == before)
        warnings.push_back(
            {Severity::warning, {path, 0, 0}, "no table of a benchmark that can be forecast here", "", {}});
    }
    return out;
  }

  [[nodiscard]] const std::vector<InputFile>& inputs() const { return inputs_; }

 private:
  static void add(Case base, MeasuredLog log, std::vector<Patient>& out) {
    Patient one{std::move(base), std::move(log), {}, {}, false, {}};
    one.sizes = sizes_of(one.log);
    one.words = words_of(one.log);
    if (!one.sizes.empty()) out.push_back(std::move(one));
  }

  static void warn_of_other_devices(const MeasuredLog& log, const Topology& topology, Diagnostics& warnings) {
    const auto other = fit::other_devices(log, topology);
    if (!other.empty()) warnings.push_back({Severity::warning, {log.file, log.line, 0}, other, "", {}});
  }

  void add_to_scenario(const std::vector<MeasuredLog>& tables, std::vector<Patient>& out, Diagnostics& warnings) {
    auto table = table_for(tables, scenario_->scenario);
    if (table && !table->refusal.empty())
      warnings.push_back({Severity::warning, {table->file, table->line, 0}, table->refusal, "", {}});
    if (!table || table->rows.empty()) return;
    warn_of_other_devices(*table, scenario_->topology, warnings);
    const auto load = [&](const std::vector<Setting>& more) {
      auto settings = options_.settings;
      settings.insert(settings.end(), more.begin(), more.end());
      return load_scenario(cluster_, options_.parameter_files, settings);
    };
    auto logged = as_logged(*scenario_, {&*table, 1}, load,
                            [](const Setting& one) { return is_healthy(one.path.substr(one.path.rfind('.') + 1)); });
    add(case_of(logged.scenario ? std::move(*logged.scenario) : *scenario_), std::move(*table), out);
  }

  void add_to_topology(const std::vector<MeasuredLog>& tables, std::vector<Patient>& out, Diagnostics& warnings) {
    for (const auto& table : tables) {
      if (!table.matrices.empty() || !table.copies.empty()) continue;
      warn_of_other_devices(table, topology_->topology, warnings);
      for (const auto& entry : fit::suggest_entries(table, topology_->topology)) {
        for (const auto& comment : entry.comments) {
          if (comment.find("does not say how many") != std::string::npos)
            warnings.push_back({Severity::warning, {table.file, table.line, 0}, comment, "", {}});
        }
        auto workload = healthy(entry.workload);
        if (const auto devices = devices_of(table, topology_->topology); !devices.empty()) {
          std::erase_if(workload, [](const auto& key) {
            return key.first == "gpus" || key.first == "ranks_per_host" || key.first == "devices";
          });
          fit::set_key(workload, "devices", devices);
        }
        auto software = healthy(entry.software);
        const auto nccl = healthy(entry.nccl);
        if (!nccl.empty()) fit::set_key(software, "nccl", fit::flow_mapping(nccl));
        const auto path = std::filesystem::absolute(cluster_).lexically_normal().string();
        const auto text =
            fmt::format("schema: fabricast/scenario/1\nname: doctor\ntopology: \"{}\"\n{}workload: {}\n", path,
                        software.empty() ? "" : fmt::format("software: {}\n", fit::flow_mapping(software)),
                        fit::flow_mapping(workload));
        auto settings = options_.settings;
        for (auto& one : settings) {
          if (!one.path.starts_with("topology.")) one.path = "topology." + one.path;
        }
        auto loaded = load_scenario_text(table.file + " (as a scenario)", text, options_.parameter_files, settings);
        if (!loaded) {
          warnings.push_back({Severity::warning,
                              {table.file, table.line, 0},
                              fmt::format("this table does not fit the cluster: {}", loaded.error().front().message),
                              "",
                              {}});
          continue;
        }
        add(case_of(std::move(*loaded)), table, out);
      }
    }
  }

  const std::string& cluster_;
  const DoctorOptions& options_;
  std::optional<LoadedTopology> topology_;
  std::optional<LoadedScenario> scenario_;
  std::vector<InputFile> inputs_;
};

}  // namespace

Result<Patients> patients_of(const std::string& cluster, const std::vector<std::string>& logs,
                             const DoctorOptions& options, Diagnostics& warnings, std::vector<InputFile>& inputs) {
  Collector collector(cluster, options);
  if (auto loaded = collector.load(); !loaded) return tl::unexpected(loaded.error());
  auto sick = collector.collect(logs, warnings);
  if (!sick) return tl::unexpected(sick.error());
  auto healthy = collector.collect(options.baselines, warnings);
  if (!healthy) return tl::unexpected(healthy.error());
  auto bare = collector.collect(options.bare_metal_baselines, warnings);
  if (!bare) return tl::unexpected(bare.error());
  inputs = collector.inputs();
  for (auto& one : *bare) {
    if (!take_off_vms(one.base))
      return tl::unexpected(
          Diagnostics{{Severity::error,
                       {one.log.file, 0, 0},
                       "a baseline of bare metal is for a cluster with virtual machines, and this one has none",
                       "",
                       {{"--baseline takes logs of the cluster as it is described", {}}}}});
    one.is_bare_metal = true;
    healthy->push_back(std::move(one));
  }
  return Patients{std::move(*sick), std::move(*healthy)};
}

std::vector<Duration> forecast(const Case& one, const std::vector<Bytes>& sizes, Fidelity fidelity) {
  auto topology = build_topology(one.spec, one.parameters, one.types);
  if (!topology) return {};
  if (!one.weak_leaf.empty()) topology = with_weak_leaf(*topology, one.weak_leaf);
  auto scenario = one.scenario;
  scenario.workloads.front().sizes = sizes;
  SimulateOptions options;
  options.with_terms = false;
  options.fidelity = fidelity;
  const auto prediction = simulate(*topology, scenario, one.parameters, options);
  if (!prediction || prediction->workloads.front().rows.size() != sizes.size()) return {};
  std::vector<Duration> out;
  for (const auto& row : prediction->workloads.front().rows) out.push_back(row.time);
  return out;
}

}  // namespace fabricast::doctor
