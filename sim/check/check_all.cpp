// SPDX-License-Identifier: Apache-2.0
#include "fabricast/check.hpp"
#include "fabricast/load.hpp"

namespace fabricast {

namespace {

void append(Diagnostics& all, const Diagnostics& found) { all.insert(all.end(), found.begin(), found.end()); }

/// What both kinds of file have; `scenario` when there is one.
template <typename Loaded>
Diagnostics check_cluster(const Loaded& loaded, const Scenario* scenario) {
  Diagnostics all = loaded.warnings;
  append(all, check_topology(loaded.topology, loaded.parameters));
  append(all, check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
  append(all, check_lossless(loaded.topology, loaded.parameters, scenario));
  return all;
}

}  // namespace

Diagnostics check_all(const LoadedScenario& loaded) {
  auto all = check_cluster(loaded, &loaded.scenario);
  append(all, check_scenario(loaded.topology, loaded.scenario, loaded.parameters));
  return all;
}

Diagnostics check_all(const LoadedTopology& loaded) { return check_cluster(loaded, nullptr); }

Diagnostics infeasible_hosts(const LoadedScenario& loaded) {
  auto found = check_virtualization(loaded.topology, loaded.parameters, loaded.device_types);
  std::erase_if(found, [](const Diagnostic& one) { return one.severity != Severity::error; });
  return found;
}

}  // namespace fabricast
