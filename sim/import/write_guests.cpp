// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "import/write_topology.hpp"

namespace fabricast::import {

namespace {

/// The mode word that the handed devices make.
std::string mode_of(const VirtualMachine& vm, Inventory& inventory) {
  std::map<std::string, int> count;
  for (const auto& one : vm.devices) ++count[one.mode];
  if (count.contains("vgpu")) return "vgpu";
  if (count.contains("sr-iov")) return "sr-iov";
  if (count.contains("pvrdma")) return "pvrdma";
  if (count[""] == 0) {
    inventory.assumed.push_back(fmt::format(
        "'{}' is handed no PCI device: its GPUs, if any, are passed through and its network is software", vm.name));
    return "tcp";
  }
  return "passthrough";
}

}  // namespace

std::string write_virtualization(Inventory& inventory) {
  if (inventory.vms.empty()) {
    const bool is_guest = !inventory.machines.empty() && inventory.machines.front().hides_tree;
    if (!is_guest) return "";
    const auto& machine = inventory.machines.front();
    bool hides_nvswitches = false, has_nvswitches = false;
    for (const auto& one : machine.devices) {
      for (const auto& link : one.nvlinks) {
        has_nvswitches = has_nvswitches || link.to_switch;
        hides_nvswitches = hides_nvswitches || (link.to_switch && link.target.empty());
      }
    }
    inventory.assumed.push_back(
        "every device is on one bus and no NUMA node is named: a guest that hides the PCIe tree, passed through by "
        "KVM");
    if (hides_nvswitches)
      inventory.assumed.push_back("NVLinks end at no PCI address: the guest does not hold the NVSwitches");
    std::string out = "{mode: passthrough, hypervisor: kvm, guest_topology: hidden";
    if (has_nvswitches) out += hides_nvswitches ? ", nvswitches: shared" : ", nvswitches: passthrough";
    return out + "}";
  }
  const auto& vm = inventory.vms.front();
  std::string out = fmt::format("{{mode: {}, hypervisor: {}", mode_of(vm, inventory), vm.hypervisor);
  if (inventory.vms.size() > 1) out += fmt::format(", vms_per_host: {}", inventory.vms.size());
  if (vm.vcpus > 0) out += fmt::format(", vcpus: {}", std::min(vm.vcpus, 1024));
  if (vm.is_pinned) out += fmt::format(", pinning: {}", *vm.is_pinned ? "on" : "off");
  if (vm.is_numa_aligned) out += fmt::format(", numa: {}", *vm.is_numa_aligned ? "on" : "off");
  if (vm.memory_mib > 0) out += fmt::format(", memory: {} MiB", vm.memory_mib);
  if (vm.has_huge_pages) out += fmt::format(", huge_pages: {}", *vm.has_huge_pages ? "on" : "off");
  if (vm.is_reserved)
    out += fmt::format(", memory_reservation: {}", *vm.is_reserved || vm.hypervisor != "esxi" ? "full" : "partial");
  if (vm.has_device_translation) out += fmt::format(", ats: {}", *vm.has_device_translation ? "on" : "off");
  bool has_profile = false, is_structured = false;
  for (const auto& one : vm.devices) {
    if (!one.profile.empty() && !std::exchange(has_profile, true))
      inventory.unknown.push_back(fmt::format(
          "vGPU profile '{}': set `profile` to its name in the catalogue (`fabricast list profiles`)", one.profile));
    is_structured = is_structured || one.is_below_switch;
  }
  if (vm.hypervisor == "kvm") out += fmt::format(", guest_topology: {}", is_structured ? "shown" : "hidden");
  for (std::size_t i = 1; i < inventory.vms.size(); ++i) {
    if (inventory.vms[i].vcpus != vm.vcpus || inventory.vms[i].devices.size() != vm.devices.size()) {
      inventory.assumed.push_back(fmt::format("the virtual machines differ: all are written like '{}'", vm.name));
      break;
    }
  }
  return out + "}";
}

}  // namespace fabricast::import
