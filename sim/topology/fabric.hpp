// SPDX-License-Identifier: Apache-2.0
// Fabric generators: from a FabricSpec and the HCAs of all hosts to switches and cables. Each generator is one
// function; irregular parts are appended by name. What cannot be built (too few ports, unknown ends) is reported.
#pragma once

#include <string>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

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
  std::vector<int> coordinates;  ///< torus only
  int group = -1;                ///< dragonfly only
};

/// Ends are indices: HCAs from 0, then switches.
struct Cable {
  int a = 0;
  int b = 0;
  double rate = 0;  ///< bytes/s per direction; 0 = slower of the ends
  double length_m = 3;
};

struct Fabric {
  std::vector<FabricSwitch> switches;
  std::vector<Cable> cables;
};

Fabric make_fabric(const FabricSpec& spec, const std::vector<HcaPort>& hcas, const ParameterSet& parameters,
                   Diagnostics& faults);

}  // namespace fabricast::topology
