// SPDX-License-Identifier: Apache-2.0
// Device types by name: the user's own files first, then the shipped catalogue. A type is read when it is first named.
#pragma once

#include <map>
#include <string>
#include <string_view>
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

  /// The device called `name`, or null with a fault at `where` that names devices of `kinds` (none: of any).
  const Entry* find(const std::string& name, const Node& where, Diagnostics& faults,
                    const std::vector<std::string>& kinds = {});

  /// What to write where a device of `kinds` is expected and one of another kind, `name`, was found.
  static std::string hint_of_kind(std::string_view name, const std::vector<std::string>& kinds);

  /// The kind of a shipped device by the folder it lies in, without reading it; empty for none of that name.
  static std::string shipped_kind(std::string_view name);
  [[nodiscard]] static std::vector<std::string> shipped_names();

  /// Every shipped device.
  std::vector<const Entry*> all(Diagnostics& faults);

 private:
  const Entry* read(const Node& document, Diagnostics& faults);

  std::map<std::string, Entry> entries_;
};

/// Shipped parameters of software layers (models/params).
ParameterSet shipped_parameters(Diagnostics& faults);

/// Reads a parameters document that check_node has accepted.
ParameterSet read_parameters(const Node& document, Diagnostics& faults);

}  // namespace fabricast::config
