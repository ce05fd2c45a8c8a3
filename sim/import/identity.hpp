// SPDX-License-Identifier: Apache-2.0
// Names of the catalogue for what a source printed: PCI numbers of GPUs and adapters, CPUID of processors, device
// numbers of InfiniBand switches. Sources: pciutils' pci.ids, CPUID tables of the vendors, the linked code of NCCL.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/inventory.hpp"

namespace fabricast::import {

/// A name of the catalogue, and what was assumed on the way to it (empty: nothing).
struct Identity {
  std::string name;  ///< empty = nothing of the catalogue is like it
  std::string assumed;
  PcieRate card;  ///< what the card can do
};

Identity gpu_identity(const PciDevice& device);
Identity hca_identity(const PciDevice& device);
/// Elastic Fabric Adapters are told apart by what lies around them: sets their types, and joins those of one GPU as the
/// NCCL plugin does.
void settle_elastic_adapters(Machine& machine, Inventory& inventory);
Identity processor_identity(const ProcessorSeen& processor);
/// NVSwitch generation by the GPU's compute capability.
Identity nvswitch_identity(const std::string& gpu, int compute_capability);
/// By device number, else by description and rate of its ports.
Identity switch_identity(int devid, const std::string& description, double gbit_per_s, bool is_infiniband);
/// Ports of a switch that switch_identity() names.
int switch_ports(const std::string& name);
/// The processor that hosts of a PCIe generation had: of the vendor by its CPUID, empty = of any.
Identity usual_processor(int pcie_generation, std::string_view vendor);
/// For hosts that only the fabric shows: by the adapter's device number, else, or where none of that
/// number is as fast, by the rate of its port.
Identity adapter_of_listing(int devid, double gbit_per_s, bool is_infiniband);

/// Every name in the tables, for a test against the catalogue.
std::vector<std::pair<std::string, PcieRate>> all_identities();
/// Every switch that switch_identity() can name.
std::vector<std::string> all_switches();

}  // namespace fabricast::import
