// SPDX-License-Identifier: Apache-2.0
// The public loaders: files to checked documents to values to a graph, every fault of every file in one answer.
#include "fabricast/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "config/lossless_reader.hpp"
#include "config/parameter_check.hpp"
#include "config/plan.hpp"
#include "config/readers.hpp"
#include "config/schema.hpp"
#include "config/settings.hpp"
#include "config/virtualization.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/load_plan.hpp"
#include "fabricast/training.hpp"

namespace fabricast {

namespace {

using config::DeviceLibrary;
using config::Node;
using config::SettingScope;

std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

/// Collects faults and inputs of one load.
class Loader {
 public:
  Diagnostics faults;
  std::vector<InputFile> inputs;

  /// `named_by`: the place in another file that names this one.
  std::optional<Node> parse(const std::string& path, const Node* named_by = nullptr) {
    const auto text = config::read_text_file(path);
    if (!text) {
      faults.insert(faults.end(), text.error().begin(), text.error().end());
      if (named_by != nullptr) faults.back().notes.push_back({"the file is named here", named_by->location()});
      return std::nullopt;
    }
    return parse_text(path, *text);
  }

  std::optional<Node> parse_text(const std::string& path, const std::string& text) {
    note_input(inputs, path, text);
    const auto before = faults.size();
    auto node = config::parse_yaml(path, text, faults);
    // A duplicate key leaves a usable tree: go on, so that other faults show too.
    if (faults.size() > before && node.kind != Node::Kind::mapping) return std::nullopt;
    if (node.kind != Node::Kind::mapping) {
      faults.push_back(node.error(fmt::format("the document must be a mapping, found {}", describe(node.kind))));
      return std::nullopt;
    }
    return node;
  }

  /// True when the document is of the kind; its faults are collected either way.
  bool check(const Node& node, const std::string& kind) {
    const auto* schema = node.find("schema");
    const auto wanted = fmt::format("fabricast/{}/1", kind);
    if (schema != nullptr && schema->kind == Node::Kind::scalar && schema->scalar != wanted &&
        schema->scalar.rfind("fabricast/", 0) == 0) {
      faults.push_back(
          schema->error(fmt::format("this is a '{}' file, '{}' is expected here", schema->scalar, wanted)));
      return false;
    }
    Diagnostics own;
    config::check_node(node, config::schema_of(kind), own);
    faults.insert(faults.end(), own.begin(), own.end());
    return !has_errors(own);
  }

  ParameterSet parameters(const std::string& path) {
    ParameterSet set;
    const auto node = parse(path);
    if (node && check(*node, "parameters")) set = config::read_parameters(*node, faults);
    if (node) parameter_files_.push_back(*node);
    return set;
  }

  /// Faults of parameters beside others, with the text of their line.
  void add_parameter_faults(Diagnostics found) {
    std::vector<const Node*> documents;
    for (const auto& file : parameter_files_) documents.push_back(&file);
    add_source_lines(found, documents);
    faults.insert(faults.end(), found.begin(), found.end());
  }

  /// `file` is the path by which relative device files are found.
  std::optional<config::ReadTopology> topology(const Node& node, const std::string& file) {
    DeviceLibrary library;
    if (const auto* devices = node.find("devices")) {
      for (const auto& device : devices->items) {
        if (device.kind == Node::Kind::scalar)
          library.add_file(config::resolved(folder_of(file), device.scalar), faults, inputs);
      }
    }
    if (!check(node, "topology")) {
      find_types(node, library);
      return std::nullopt;
    }
    return config::read_topology(node, library, faults);
  }

  /// In a document with other faults: unknown device types are reported all the same.
  void find_types(const Node& node, DeviceLibrary& library) {
    for (const auto& item : node.items) find_types(item, library);
    for (const auto& entry : node.entries) {
      const auto& key = entry.key.scalar;
      const bool names_type = key == "type" || key == "processor" || key == "switch";
      const std::vector<std::string> kinds{key == "switch" ? "network_switch" : key};
      if (names_type && entry.value.kind == Node::Kind::scalar)
        library.find(entry.value.scalar, entry.value, faults, key == "type" ? std::vector<std::string>{} : kinds);
      find_types(entry.value, library);
    }
  }

  /// What was found, each fault once: a topology inside a scenario is checked with the scenario and by itself.
  Diagnostics distinct() const {
    Diagnostics out;
    std::set<std::tuple<std::string_view, int, int, std::string_view>> known;
    std::map<std::string, std::size_t> order;  // files as their first faults came
    for (const auto& fault : faults) {
      const auto& at = fault.location;
      if (known.emplace(at.file, at.line, at.column, fault.message).second) out.push_back(fault);
      order.try_emplace(at.file, order.size());
    }
    std::ranges::stable_sort(out, {}, [&](const Diagnostic& one) {
      return std::tuple(order.at(one.location.file), one.location.line, one.location.column);
    });
    return out;
  }

  /// Faults found while building the graph carry a place but no text of the line.
  /// Faults that show once the topology is expanded.
  void note_built(const Result<Topology>& topology, const config::ReadTopology& read, const ParameterSet& parameters,
                  const std::vector<const Node*>& documents) {
    auto built =
        topology ? config::lossless_faults(read.spec.fabric, topology->is_infiniband(), parameters) : topology.error();
    add_source_lines(built, documents);
    faults.insert(faults.end(), built.begin(), built.end());
  }

  static void add_source_lines(Diagnostics& built, const std::vector<const Node*>& documents) {
    for (auto& fault : built) {
      for (const auto* document : documents) {
        if (!document->source || document->source->name != fault.location.file) continue;
        const auto& lines = document->source->lines;
        if (fault.location.line >= 1 && fault.location.line <= static_cast<int>(lines.size()))
          set_source_line(fault, lines[static_cast<std::size_t>(fault.location.line - 1)]);
      }
    }
  }

 private:
  std::vector<Node> parameter_files_;
};

ParameterSet merged_parameters(Loader& loader, const config::ReadTopology& read,
                               const std::vector<std::string>& files) {
  auto set = config::shipped_parameters(loader.faults);
  const auto add = [&](const ParameterSet& added) {
    loader.add_parameter_faults(config::check_declared(added, &read.types));
    set.merge(added);
  };
  add(read.device_parameters);
  for (const auto& file : files) add(loader.parameters(file));
  return set;
}

}  // namespace

Result<LoadedTopology> load_topology(const std::string& path, const std::vector<std::string>& parameter_files,
                                     const std::vector<Setting>& settings) {
  Loader loader;
  auto node = loader.parse(path);
  if (!node) return tl::unexpected(loader.distinct());
  config::apply_settings(*node, settings, SettingScope::whole, loader.faults);
  auto read = loader.topology(*node, path);
  if (!read || has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  auto parameters = merged_parameters(loader, *read, parameter_files);
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  auto topology = build_topology(read->spec, parameters, read->types);
  loader.note_built(topology, *read, parameters, {&*node});
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  return LoadedTopology{read->spec, *topology, std::move(parameters), read->types, loader.inputs, loader.faults};
}

namespace {

/// Further files that workloads name.
std::vector<std::string> files_of(const std::optional<Scenario>& scenario) {
  std::vector<std::string> out;
  if (!scenario) return out;
  for (const auto& workload : scenario->workloads) {
    if (workload.training) out.insert(out.end(), workload.training->files.begin(), workload.training->files.end());
  }
  return out;
}

Result<LoadedScenario> load_parsed(Loader& loader, std::optional<Node> node, const std::string& path,
                                   const std::vector<std::string>& parameter_files,
                                   const std::vector<Setting>& settings) {
  if (!node) return tl::unexpected(loader.distinct());
  config::apply_settings(*node, settings, SettingScope::scenario, loader.faults);
  std::optional<Scenario> scenario;
  if (loader.check(*node, "scenario")) scenario = config::read_scenario(*node, folder_of(path), loader.faults);

  for (const auto& file : files_of(scenario)) note_file(loader.inputs, file);

  // The topology is read even when the scenario has faults, so that one run shows all.
  std::optional<Node> topology_node;
  std::string topology_file = path;
  if (const auto* topology = node->find("topology")) {
    if (topology->kind == Node::Kind::scalar) {
      topology_file = config::resolved(folder_of(path), topology->scalar);
      topology_node = loader.parse(topology_file, topology);
    } else if (topology->kind == Node::Kind::mapping) {
      topology_node = *topology;
    }
  }
  std::optional<config::ReadTopology> read;
  if (topology_node) {
    config::apply_settings(*topology_node, settings, SettingScope::topology_of_scenario, loader.faults);
    config::override_virtualization(*node, *topology_node);
    read = loader.topology(*topology_node, topology_file);
  }
  if (!scenario || !read || has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  auto files = scenario->parameter_files;
  files.insert(files.end(), parameter_files.begin(), parameter_files.end());
  auto parameters = merged_parameters(loader, *read, files);
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  auto topology = build_topology(read->spec, parameters, read->types);
  loader.note_built(topology, *read, parameters, {&*node, &*topology_node});
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  return LoadedScenario{std::move(*scenario), *topology,     std::move(parameters),
                        loader.inputs,        loader.faults, read->types};
}

}  // namespace

Result<LoadedScenario> load_scenario(const std::string& path, const std::vector<std::string>& parameter_files,
                                     const std::vector<Setting>& settings) {
  Loader loader;
  auto node = loader.parse(path);
  return load_parsed(loader, std::move(node), path, parameter_files, settings);
}

Result<LoadedScenario> load_scenario_text(const std::string& name, const std::string& text,
                                          const std::vector<std::string>& parameter_files,
                                          const std::vector<Setting>& settings) {
  Loader loader;
  auto node = loader.parse_text(name, text);
  return load_parsed(loader, std::move(node), name, parameter_files, settings);
}

Result<Calibration> load_calibration(const std::string& path) {
  Loader loader;
  const auto node = loader.parse(path);
  if (!node || !loader.check(*node, "calibration")) return tl::unexpected(loader.distinct());
  auto calibration = config::read_calibration(*node, folder_of(path), loader.faults);
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  return calibration;
}

Result<CostModel> load_cost_model(const std::string& path) {
  Loader loader;
  const auto node = loader.parse(path);
  if (!node || !loader.check(*node, "cost")) return tl::unexpected(loader.distinct());
  auto cost = config::read_cost(*node, loader.faults);
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  return cost;
}

Result<SweepPlan> load_sweep_plan(const std::string& path) {
  Loader loader;
  const auto node = loader.parse(path);
  if (!node || !loader.check(*node, "plan")) return tl::unexpected(loader.distinct());
  std::string cost_file;
  auto plan = config::read_plan(*node, folder_of(path), cost_file, loader.faults);
  if (!cost_file.empty()) {
    const auto prices = loader.parse(cost_file);
    if (prices && loader.check(*prices, "cost")) plan.cost = config::read_cost(*prices, loader.faults);
  }
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  for (const auto& input : loader.inputs) plan.inputs.emplace_back(input.path, input.sha256);
  return plan;
}

Result<LoadedParameters> load_parameters(const std::string& path) {
  Loader loader;
  auto set = loader.parameters(path);
  loader.add_parameter_faults(config::check_declared(set, nullptr));
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  return LoadedParameters{std::move(set), loader.distinct()};
}

Result<DeviceType> load_device(const std::string& path) {
  Loader loader;
  DeviceLibrary library;
  library.add_file(path, loader.faults, loader.inputs);
  if (has_errors(loader.faults)) return tl::unexpected(loader.distinct());
  const auto node = loader.parse(path);
  const auto* entry = library.find(node->find("name")->scalar, *node, loader.faults);
  if (entry == nullptr) return tl::unexpected(loader.distinct());
  return entry->type;
}

Result<ParameterSet> load_shipped_parameters() {
  Diagnostics faults;
  auto set = config::shipped_parameters(faults);
  if (has_errors(faults)) return tl::unexpected(faults);
  return set;
}

Result<Catalogue> load_whole_catalogue() {
  Diagnostics faults;
  Catalogue catalogue;
  catalogue.parameters = config::shipped_parameters(faults);
  DeviceLibrary library;
  for (const auto* entry : library.all(faults)) {
    catalogue.device_types.push_back(entry->type);
    for (const auto& value : entry->values) catalogue.parameters.set(value);
  }
  if (has_errors(faults)) return tl::unexpected(faults);
  return catalogue;
}

Result<std::string> file_kind(const std::string& path) {
  Loader loader;
  const auto node = loader.parse(path);
  if (!node) return tl::unexpected(loader.distinct());
  const auto* schema = node->find("schema");
  for (const auto* kind : {"topology", "scenario", "parameters", "device", "calibration", "network", "plan", "cost"}) {
    if (schema != nullptr && schema->scalar == fmt::format("fabricast/{}/1", kind)) return std::string(kind);
  }
  const auto& where = schema == nullptr ? *node : *schema;
  loader.faults.push_back(where.error(
      schema == nullptr ? std::string("the file does not say what it is")
                        : fmt::format("unknown schema '{}'", schema->scalar),
      "the first key is `schema: fabricast/scenario/1` (or topology, parameters, device, calibration, plan, cost)"));
  return tl::unexpected(loader.distinct());
}

}  // namespace fabricast
