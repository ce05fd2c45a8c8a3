// SPDX-License-Identifier: Apache-2.0
// Small clusters made from YAML text, for tests of everything above the reader.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fabricast/fabricast.hpp"

namespace fabricast::test {

/// Writes a file below the test's own temporary folder and returns its path.
std::string write_file(const std::string& name, const std::string& text);

/// The faults' text with the folder of temporary files left out.
std::string shown(const Diagnostics& faults);

LoadedTopology topology(const std::string& text);

LoadedScenario scenario(const std::string& text, const std::vector<Setting>& settings = {});

Prediction run(const LoadedScenario& loaded, const SimulateOptions& options = {});

/// A shipped example.
LoadedScenario shipped(const std::string& name, const std::vector<Setting>& settings = {});

/// GPUs that hold any step: for laws of time, whatever a step keeps.
LoadedScenario with_memory(LoadedScenario loaded);

/// Of the first workload.
const Row& row_at(const Prediction& prediction, Bytes size);

double us(const Prediction& prediction, Bytes size);
/// Of all terms of this name.
double us(const Row& row, const std::string& term);

}  // namespace fabricast::test
