// SPDX-License-Identifier: Apache-2.0
// --set path=value: edits a document before it is checked, so that a bad value is reported like one in the file.
#pragma once

#include <vector>

#include "config/tree.hpp"
#include "fabricast/load.hpp"

namespace fabricast::config {

/// Applies the settings whose path does not start with `topology.` (`is_topology` false), or those that do, with the
/// prefix taken off (`is_topology` true). `whole` is for stand-alone topology files: every setting, prefix optional.
enum class SettingScope { scenario, topology_of_scenario, whole };
void apply_settings(Node& document, const std::vector<Setting>& settings, SettingScope scope, Diagnostics& faults);

}  // namespace fabricast::config
