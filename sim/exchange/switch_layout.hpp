// SPDX-License-Identifier: Apache-2.0
// Where a picture puts the switches: tiers as rows, the top tier first; a torus as planes, a dragonfly as groups. Every
// switch has a cell of its own, so no two overlap.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::exchange {

/// A cell in units of columns and rows from the top left; planes and groups are half a cell apart.
struct Cell {
  double column = 0, row = 0;
};

struct SwitchLayout {
  std::map<DeviceId, Cell> cells;
  struct Note {
    Cell cell;
    std::string words;  ///< "+ 448 more"
  };
  std::vector<Note> notes;
  double columns = 0, rows = 0;  ///< extent of all cells
};

/// Of a tier that is too large, those in `needed` (cabled to a host that is drawn) and the first of the others are
/// placed. `columns`: how many fit beside each other over the hosts.
SwitchLayout lay_out_switches(const Topology& topology, const std::set<DeviceId>& needed, int columns);

}  // namespace fabricast::exchange
