// SPDX-License-Identifier: Apache-2.0
// Files that a fit reads.
#include <set>

#include "fabricast/calibration.hpp"
#include "fabricast/load.hpp"

namespace fabricast {

std::vector<std::string> input_files(const Calibration& calibration) {
  std::set<std::string> files(calibration.parameter_files.begin(), calibration.parameter_files.end());
  files.insert(calibration.file);
  std::set<std::string> seen;
  for (const auto& log : calibration.logs) {
    files.insert(log.file);
    auto key = log.scenario_file + '\n' + log.scenario_text;
    for (const auto& setting : log.settings) key += '\n' + setting.path + '=' + setting.value;
    if (!seen.insert(key).second) continue;
    const auto loaded = log.scenario_file.empty()
                            ? load_scenario_text(calibration.file, log.scenario_text, {}, log.settings)
                            : load_scenario(log.scenario_file, {}, log.settings);
    if (!loaded) continue;  // the fit says why
    for (const auto& input : loaded->inputs) files.insert(input.path);
  }
  return {files.begin(), files.end()};
}

}  // namespace fabricast
