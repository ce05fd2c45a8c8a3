// SPDX-License-Identifier: Apache-2.0
// Several sources of one cluster to one description: which machines are the same host, which fabric nodes are its
// adapters, and where two sources say different things.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/inventory.hpp"

namespace fabricast::import {

/// The machines that differ: others of the same host are merged into the one that says most. Their contradictions are
/// findings with both places.
void merge_machines(Inventory& inventory);

/// A host as the fabric shows it.
struct FabricHost {
  std::string name;
  std::vector<int> nodes;  ///< of FabricSeen::nodes, one per adapter, in order of their names
};
/// Hosts of a fabric by the host part of their adapters' descriptions, in the order of the file.
std::vector<FabricHost> hosts_of(const FabricSeen& fabric, Inventory& inventory);

/// Leaves that the scheduler names against the switches that the fabric shows: findings.
void check_placement(const PlacementSeen& placement, const FabricSeen& fabric, const std::vector<FabricHost>& hosts,
                     Inventory& inventory);

/// Devices that VMs get against those that the host has: findings.
void check_guests(Inventory& inventory);

/// A warning at one place with a note at the other.
Diagnostic contradiction(SourceLocation where, std::string message, SourceLocation other, std::string there);

/// A name as topologies take it: letters, digits, '-' and '_'; domains are cut off hosts.
std::string clean_name(std::string_view text);

}  // namespace fabricast::import
