// SPDX-License-Identifier: Apache-2.0
// Device types by name: the user's own files first, then the shipped catalogue. A type is read when it is first named.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/tree.hpp"
#include "fabricast/load.hpp"

namespace fabricast::config {

/// Reads one parameter entry ({value, low, high, source, confidence}); `dimension` from the field table or the unit.
Parameter read_parameter(const std::string& name, const Node& node, const Dimension* dimension, Diagnostics& faults);

class DeviceLibrary {
 public:
  struct Entry {
    DeviceType type;
    std::vector<Parameter> values;
    Node host;  ///< kind host: its description
  };

  /// Adds a user's device file.
  void add_file(const std::string& path, Diagnostics& faults, std::vector<InputFile>& inputs);

  /// The device called `name`, or null with a fault at `where`.
  const Entry* find(const std::string& name, const Node& where, Diagnostics& faults);

  /// Every shipped device.
  std::vector<const Entry*> all(Diagnostics& faults);

 private:
  const Entry* read(const Node& document, Diagnostics& faults);
  [[nodiscard]] static std::vector<std::string> shipped_names();

  std::map<std::string, Entry> entries_;
};

/// Parameters that override `known` ones: of the same dimension; of the closed software layers only known names, or
/// more exact ones of them.
void check_against(const ParameterSet& known, const ParameterSet& added, Diagnostics& faults);

/// Shipped parameters of software layers (models/params).
ParameterSet shipped_parameters(Diagnostics& faults);

/// Reads a parameters document that check_node has accepted.
ParameterSet read_parameters(const Node& document, Diagnostics& faults);

}  // namespace fabricast::config
