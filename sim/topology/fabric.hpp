// SPDX-License-Identifier: Apache-2.0
// Fabric generators: from a FabricSpec and the HCAs of all hosts to switches and cables. Each generator is one
// function; irregular parts are appended by name. What cannot be built (too few ports, unknown ends) is reported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/topology.hpp"
#include "topology/device_values.hpp"
#include "topology/spread_table.hpp"

namespace fabricast::topology {

/// Beyond these a fabric is a slip of the pen: the largest machines have some 10,000 switches and 200,000 cables.
constexpr std::int64_t k_max_switches = 100'000;
constexpr std::int64_t k_max_cables = 4'000'000;

/// An HCA as generators see it.
struct HcaPort {
  std::string name;  ///< host.hca
  std::string type;
  int host = 0;
  int ordinal = 0;  ///< n-th HCA of its host
};

struct FabricSwitch {
  std::string name;
  std::string type;
  std::vector<int> coordinates;      ///< torus only
  std::optional<SwitchPlace> place;  ///< none: added by hand, after the generator's
  SourceLocation location;
};

/// Ends are indices: HCAs from 0, then switches.
struct Cable {
  int a = 0;
  int b = 0;
  double rate = 0;  ///< bytes/s per direction; 0 = slower of the ends
  double length_m = 3;
  std::string parameter = "fabric.rate";  ///< what `rate` is called
  SourceLocation location{};              ///< of a cable by hand
};

struct Fabric {
  std::vector<FabricSwitch> switches;
  std::vector<Cable> cables;
  int num_routers = 0;        ///< dragonfly: the first switches, group after group
  int routers_per_group = 0;  ///< dragonfly
};

/// True when the generator counts with the ports of the switch type.
bool needs_ports(const FabricSpec& spec);

/// The generator's part and the part by hand.
Fabric make_fabric(const FabricSpec& spec, const std::vector<HcaPort>& hcas, DeviceValues& values);

/// Appends the switches and cables of the spec's lists.
void add_by_hand(const FabricSpec& spec, const std::vector<HcaPort>& hcas, Fabric& fabric, DeviceValues& values);

/// Cables of `rate` bytes/s that one port of the switch type takes: a splitter divides a port into 2, 4 or 8 as far as
/// `port_split` goes, each with its part of the port's rate.
int cables_per_port(DeviceValues& values, const std::string& switch_type, double rate);
/// Ports for cables counted by how many share one.
int ports_of(const std::map<int, int>& cables_by_split);

/// Reports switches with more cables than ports, and HCAs with more cables than ports, once per type.
void check_ports(const Fabric& fabric, const std::vector<HcaPort>& hcas, DeviceValues& values);

}  // namespace fabricast::topology
