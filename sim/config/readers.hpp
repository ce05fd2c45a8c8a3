// SPDX-License-Identifier: Apache-2.0
// Checked documents to values.
#pragma once

#include "config/devices.hpp"
#include "fabricast/calibration.hpp"
#include "fabricast/load.hpp"

namespace fabricast::config {

/// A topology document (already checked) to a spec, with the parameters and types of every device it names.
struct ReadTopology {
  TopologySpec spec;
  ParameterSet device_parameters;  ///< device values and the topology's inline parameters
  std::vector<DeviceType> types;
};
ReadTopology read_topology(const Node& document, DeviceLibrary& library, Diagnostics& faults);

/// A scenario document (already checked) to values; file names are resolved against `folder`.
Scenario read_scenario(const Node& document, const std::string& folder, Diagnostics& faults);

/// A calibration document (already checked) to values.
Calibration read_calibration(const Node& document, const std::string& folder, Diagnostics& faults);

/// `file` relative to `folder`, unless absolute.
std::string resolved(const std::string& folder, const std::string& file);

}  // namespace fabricast::config
