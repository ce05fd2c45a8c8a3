// SPDX-License-Identifier: Apache-2.0
// Switches of the catalogue as scenarios get them: shipped defaults, through the same functions.
#include <map>

#include "engine/switch_config.hpp"
#include "tests/packet/networks.hpp"
#include "tests/support/clusters.hpp"

namespace fabricast::packet::testing {

SwitchConfig catalogue_switch(const std::string& asic) {
  static std::map<std::string, SwitchConfig> made;
  if (const auto known = made.find(asic); known != made.end()) return known->second;
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 2, type: server-1v100-cx4-100g}]\n"
      "fabric: {single_switch: {switch: sn2700, lossless: {preset: " +
      asic + "}}}\n");
  auto config = engine::switch_config(lossless_settings(loaded.topology, loaded.parameters), 100_Gbps);
  config.latency = 300_ns;  // SN2700, as in the catalogue; the packet engine's presets have theirs
  return made[asic] = config;
}

}  // namespace fabricast::packet::testing
