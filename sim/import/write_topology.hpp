// SPDX-License-Identifier: Apache-2.0
// The merged description as topology YAML: hosts, fabric, virtual machines; assumptions and unknowns as comments.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/import.hpp"
#include "import/inventory.hpp"

namespace fabricast::import {

Result<std::string> write_topology(Inventory& inventory, const ImportOptions& options);

/// A host in YAML: the body of `host:`, and what its adapters are called.
struct WrittenHost {
  std::string yaml;               ///< lines with an indent of 6
  std::vector<std::string> hcas;  ///< names: hca0, hca1, in the order of their ports' names
  std::vector<double> rates;      ///< Gb/s of each; 0 = not said
  bool is_infiniband = true;
  int num_gpus = 0;
};
Result<WrittenHost> write_host(const Machine& machine, Inventory& inventory, const ImportOptions& options);
/// An adapter that a listing of the fabric shows.
struct ListedAdapter {
  double gbit_per_s = 0;
  int devid = 0;  ///< 0 = not said

  auto operator<=>(const ListedAdapter&) const = default;
};
/// A host of which the fabric shows the adapters only.
WrittenHost write_bare_host(const std::vector<ListedAdapter>& adapters, bool is_infiniband, Inventory& inventory,
                            const ImportOptions& options);
/// The machine that a matrix of distances alone stands for.
Result<Machine> machine_of_distances(const Machine& seen, Inventory& inventory, const ImportOptions& options);
/// Every cable once, parallel ones counted; a cable that only one end shows is a finding. `ends`: names of nodes' ends.
std::string cables_of(const FabricSeen& fabric, const std::map<std::string, std::string>& ends, Inventory& inventory);
/// Cables between the switches of a scheduler's tree, (below, above) -> number.
struct PlacementCables {
  std::map<std::pair<std::string, std::string>, int> counts;
  bool is_cut = false;    ///< some switch has fewer up than down, for want of ports
  bool has_tier = false;  ///< some switch has too few ports for what comes up to it: it stands for several
};
/// With switches of `ports` ports; nothing when one would need more than it has.
std::optional<PlacementCables> placement_cables(const PlacementSeen& placement, int adapters, int ports);
/// `virtualization: {...}`, or empty.
std::string write_virtualization(Inventory& inventory);

}  // namespace fabricast::import
