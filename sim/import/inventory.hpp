// SPDX-License-Identifier: Apache-2.0
// What all sources say of a cluster, in one neutral description. 0, -1 and empty texts mean "the source does not say".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"

namespace fabricast::import {

/// PCIe generation and lanes.
struct PcieRate {
  int generation = 0;
  int width = 0;

  friend bool operator==(const PcieRate&, const PcieRate&) = default;
};

enum class PciKind { bridge, gpu, nic, nvswitch };

struct NetPort {
  std::string name;  ///< mlx5_0
  int number = -1;   ///< NCCL's dev
  double gbit_per_s = 0;
};

/// NVLinks of a GPU to one target.
struct NvlinkEnd {
  std::string target;  ///< PCI address; empty = an NVSwitch the source does not see
  int count = 0;
  bool to_switch = false;
};

/// A device of the PCIe tree, or a bridge: one PCIe switch (root and downstream ports are folded away).
struct PciDevice {
  PciKind kind = PciKind::bridge;
  std::string address;  ///< 0000:18:00.0
  int parent = -1;      ///< index of the switch above; -1 = below the processor
  std::string root;     ///< host bridge it hangs below; devices of one host bridge share a root complex
  int numa = -1;
  int vendor = 0;
  int device = 0;
  int subsystem = 0;  ///< subsystem device
  std::optional<bool> is_infiniband;
  PcieRate slot;     ///< what the link could come up with
  PcieRate trained;  ///< what it came up with
  int gpu = -1;      ///< CUDA's number of a GPU
  int compute_capability = 0;
  bool has_c2c = false;  ///< a GPU on NVLink-C2C
  std::string model;     ///< as printed
  std::string type;      ///< of the catalogue, where what lies around the device says it; empty: by its numbers
  std::vector<NetPort> ports;
  std::vector<NvlinkEnd> nvlinks;
  std::optional<bool> redirects;  ///< a bridge whose access control sends peer requests up
  std::optional<bool> has_ats;    ///< address translation service switched on
  bool is_virtual_function = false;
  bool is_display = false;  ///< PCI class 0300: may be no more than a picture of the console
  SourceLocation place;
};

struct ProcessorSeen {
  std::string vendor;  ///< GenuineIntel, AuthenticAMD
  int family = -1;     ///< as CPUID adds it up: 6, 23, 25
  int model = -1;
  int stepping = -1;
  std::string name;
};

/// nvidia-smi's matrix: distance classes between devices of one host.
struct DistanceMatrix {
  std::vector<std::string> names;                ///< GPU0, NIC0 (or mlx5_0)
  std::map<std::string, std::string> nic_names;  ///< NIC0 -> mlx5_0
  std::vector<std::vector<std::string>> cells;
  std::vector<int> numa;  ///< of each row; -1
  std::vector<SourceLocation> rows;
};

struct Machine {
  std::string name;                ///< of the host; empty when not said
  std::vector<PciDevice> devices;  ///< parents before children
  ProcessorSeen processor;
  int num_sockets = 0;                ///< 0 = not said
  std::map<int, int> socket_of_numa;  ///< where the source says it
  bool hides_tree = false;            ///< a guest: every device on one bus, no NUMA node
  int highest_numa = -1;              ///< NUMA node that the source names, with devices or without; -1 = none
  bool has_numa = false;
  std::optional<DistanceMatrix> distances;
  SourceLocation place;
  std::string format;
};

// ---- fabric -------------------------------------------------------------------------------------------------------

struct FabricPort {
  std::string peer;  ///< identifier of the other end
  int peer_port = 0;
  double gbit_per_s = 0;
  SourceLocation place;
  std::string peer_description;  ///< as this end's line says it
};

struct FabricNode {
  std::string id;  ///< S-0002c90000000001
  bool is_switch = false;
  bool is_aggregation = false;  ///< in-network reduction of a switch, no host
  std::string description;      ///< "node018 HCA-1", "MF0;sw1:MQM8700/U1"
  int num_ports = 0;
  int vendor_device = 0;  ///< devid
  std::map<int, FabricPort> ports;
  SourceLocation place;
};

struct FabricSeen {
  std::vector<FabricNode> nodes;
  SourceLocation place;
};

/// Leaves with their hosts, and switches above switches, as a scheduler knows them.
struct PlacementSwitch {
  std::string name;
  std::vector<std::string> hosts;
  std::vector<std::string> children;
  SourceLocation place;
};
struct PlacementSeen {
  std::vector<PlacementSwitch> switches;
  bool is_block = false;  ///< blocks, not switches
  SourceLocation place;
};

/// A device handed to a VM.
struct HandedDevice {
  std::string host_address;
  std::string guest_address;
  std::string profile;           ///< of a vGPU
  bool is_below_switch = false;  ///< in the guest
  std::string mode;              ///< empty = passed through; sr-iov, vgpu, vmxnet3, virtio, pvrdma
  SourceLocation place;
};

struct VirtualMachine {
  std::string name;
  std::string hypervisor;  ///< kvm, esxi
  int vcpus = 0;
  long long memory_mib = 0;
  std::optional<bool> is_pinned, is_numa_aligned, has_huge_pages, is_reserved;
  std::optional<bool> has_device_translation;  ///< the guest's IOMMU translates for devices (ATS)
  std::vector<HandedDevice> devices;
  SourceLocation place;
};

/// What was said of one file in passing: assumptions and unknowns go to the YAML's head.
struct Inventory {
  std::vector<Machine> machines;
  std::vector<FabricSeen> fabrics;
  std::vector<PlacementSeen> placements;
  std::vector<VirtualMachine> vms;
  std::vector<std::string> assumed;
  std::vector<std::string> unknown;
  std::vector<std::string> sources;  ///< "nccl-topo: host.xml"
  Diagnostics findings;
};

}  // namespace fabricast::import
