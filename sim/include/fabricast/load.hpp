// SPDX-License-Identifier: Apache-2.0
// YAML files to values. Every reader reports all faults of all files it opened, with file, line and column.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

/// `--set path=value`, applied to the YAML before it is read. `workload.gpus=8` edits the scenario; a path that begins
/// with `topology.` edits the topology. List elements are named by their `name:` or by number from 0. A new key may be
/// added.
struct Setting {
  std::string path;
  std::string value;
};

/// An input file that took part, for provenance.
struct InputFile {
  std::string path;
  std::string sha256;
};

struct LoadedScenario {
  Scenario scenario;
  Topology topology;
  ParameterSet parameters;  ///< shipped defaults, then the scenario's files, then `parameter_files`
  std::vector<InputFile> inputs;
  Diagnostics warnings;
  std::vector<DeviceType> device_types;  ///< to build the topology again with other parameter values
};

/// Reads a scenario, its topology and the parameter files, and builds the graph.
Result<LoadedScenario> load_scenario(const std::string& path, const std::vector<std::string>& parameter_files = {},
                                     const std::vector<Setting>& settings = {});

/// The same from text; `name` stands for the file in messages, and file names are resolved against its folder.
Result<LoadedScenario> load_scenario_text(const std::string& name, const std::string& text,
                                          const std::vector<std::string>& parameter_files = {},
                                          const std::vector<Setting>& settings = {});

struct LoadedTopology {
  TopologySpec spec;
  Topology topology;
  ParameterSet parameters;
  std::vector<DeviceType> device_types;
  std::vector<InputFile> inputs;
  Diagnostics warnings;
};

Result<LoadedTopology> load_topology(const std::string& path, const std::vector<std::string>& parameter_files = {},
                                     const std::vector<Setting>& settings = {});

struct LoadedParameters {
  ParameterSet parameters;
  Diagnostics warnings;
};

/// Reads a parameter file (schema fabricast/parameters/1). Names of devices that the catalogue does not have are let
/// through: a cluster may bring its own.
Result<LoadedParameters> load_parameters(const std::string& path);

/// The parameters and device types shipped with the program (compiled in from models/params and models/catalogue).
/// Devices are read on demand by name; pass `all` to read every one (for `list`).
struct Catalogue {
  ParameterSet parameters;
  std::vector<DeviceType> device_types;
};
Result<Catalogue> load_whole_catalogue();
Result<ParameterSet> load_shipped_parameters();

/// Checks one of the user's device files.
Result<DeviceType> load_device(const std::string& path);

/// What a file says it is: topology, scenario, parameters or device.
Result<std::string> file_kind(const std::string& path);

/// JSON Schema (draft-07) of a file kind: topology, scenario, parameters, device, calibration. Made from the readers'
/// own key tables.
std::string json_schema(const std::string& file_kind);

}  // namespace fabricast
