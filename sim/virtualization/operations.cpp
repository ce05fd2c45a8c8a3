// SPDX-License-Identifier: Apache-2.0
// Operations of a VM by device. Sources: vSphere documentation on DirectPath I/O (6.0 to 8.0), networking guide 6.7
// p. 153 (virtual functions), VM administration guide 6.5 p. 110 (PVRDMA), KB 313479, 94881 and 88271 (vGPU), VMware
// blog 2018-07 (suspend from 6.7), RHEL 9 guide (VFIO, vGPU migration), Hyper-V documentation (DDA).
#include "fabricast/vm_operations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "virtualization/gate.hpp"

namespace fabricast {

namespace {

constexpr ReleaseNumber k_evacuation{7, 0, 3};
constexpr const char* k_kvm_vgpu =
    "KVM moves and suspends VMs with a vGPU from RHEL 9.4 on, between equal GPUs and drivers; its release is not known "
    "here";

ReleaseNumber first_with(const ParameterSet& parameters, const char* feature) {
  return release_of_code(parameters.number(fmt::format("support.{}_first", feature)));
}

bool is_esxi(const Virtualization& vm) { return vm.hypervisor == Hypervisor::esxi; }
bool is_dynamic(const Virtualization& vm, const ParameterSet& parameters) {
  return is_esxi(vm) && vm.has_dynamic_directpath && vm.version >= first_with(parameters, "dynamic_directpath");
}

/// A device given to one VM as a whole.
Gate passthrough_gate(const Virtualization& vm, const char* what, VmOperation operation,
                      const ParameterSet& parameters) {
  if (operation == VmOperation::hot_add && vm.hypervisor == Hypervisor::hyper_v)
    return closed("nothing documents that a device is added to a running VM of hyper-v", true);
  if (operation == VmOperation::hot_add && !is_esxi(vm)) return {};
  if (operation == VmOperation::clone) return {};  // powered off
  const bool restarts = operation == VmOperation::ha || operation == VmOperation::drs_placement;
  if (restarts && is_dynamic(vm, parameters)) return {};
  if (operation == VmOperation::ha && !is_esxi(vm)) return {};
  if (operation == VmOperation::ha) return closed(fmt::format("{} with a fixed address ties the VM to its host", what));
  if (operation == VmOperation::drs_placement && is_esxi(vm))
    return closed(fmt::format("{} ties the VM to its host, DRS only lists it", what));
  return closed(fmt::format("{} ties the VM to its host", what));
}

Gate vgpu_gate(const Virtualization& vm, VmOperation operation, const ParameterSet& parameters) {
  const auto needs = [&](const char* feature, const char* what) -> Gate {
    const auto release = first_with(parameters, feature);
    if (!is_esxi(vm) || vm.version >= release) return {};
    return closed(
        fmt::format("{} with a vGPU needs ESXi {}, this is {}", what, to_string(release), to_string(vm.version)));
  };
  switch (operation) {
    case VmOperation::migration:
      if (auto gate = needs("vgpu_vmotion", "vMotion"); !gate.is_open) return gate;
      if (vm.has_unified_memory) return closed("unified memory blocks migration of a vGPU");
      if (vm.hypervisor == Hypervisor::kvm) return closed(k_kvm_vgpu, true);
      return {};
    case VmOperation::suspend:
    case VmOperation::snapshot:
      if (vm.hypervisor == Hypervisor::kvm) return closed(k_kvm_vgpu, true);
      return needs("vgpu_suspend", operation == VmOperation::suspend ? "suspending a VM" : "a snapshot with memory");
    case VmOperation::drs_balancing:
      if (auto gate = needs("vgpu_drs_balancing", "balancing by DRS"); !gate.is_open) return gate;
      if (vm.has_unified_memory) return closed("unified memory blocks migration of a vGPU");
      return {};
    case VmOperation::fault_tolerance:
      return closed("fault tolerance takes no vGPU");
    case VmOperation::hot_add:
      if (is_esxi(vm)) return closed("a vGPU is added with the VM powered off");
      return closed(
          fmt::format("nothing documents that a vGPU is added to a running VM of {}", to_string(vm.hypervisor)), true);
    case VmOperation::clone:
    case VmOperation::ha:
    case VmOperation::drs_placement:
      return {};
  }
  return {};
}

Gate pvrdma_gate(VmOperation operation) {
  if (operation == VmOperation::suspend)
    return closed("nothing documents that a VM with a PVRDMA adapter can be suspended", true);
  if (operation == VmOperation::fault_tolerance) return closed("fault tolerance takes no PVRDMA adapter", true);
  if (operation == VmOperation::hot_add) return closed("a PVRDMA adapter is added with the VM powered off");
  return {};
}

Gate gpu_gate(const Virtualization& vm, GpuMode mode, VmOperation operation, const ParameterSet& parameters) {
  switch (mode) {
    case GpuMode::passthrough:
      return passthrough_gate(vm, "a passed-through GPU", operation, parameters);
    case GpuMode::vgpu:
      return vgpu_gate(vm, operation, parameters);
    case GpuMode::mig:
      return vgpu_gate(vm, operation, parameters);  // an instance is handed over as a MIG-backed vGPU
    default:
      return {};
  }
}

Gate nic_gate(const Virtualization& vm, NicMode mode, VmOperation operation, const ParameterSet& parameters) {
  if (mode == NicMode::passthrough) return passthrough_gate(vm, "a passed-through adapter", operation, parameters);
  if (mode == NicMode::sr_iov) {
    auto fixed = vm;
    fixed.has_dynamic_directpath = false;  // of whole devices only
    return passthrough_gate(fixed, "a virtual function", operation, parameters);
  }
  return mode == NicMode::pvrdma ? pvrdma_gate(operation) : Gate{};
}

}  // namespace

std::string_view to_string(VmOperation operation) {
  switch (operation) {
    case VmOperation::migration:
      return "migration";
    case VmOperation::suspend:
      return "suspend";
    case VmOperation::snapshot:
      return "snapshot";
    case VmOperation::clone:
      return "clone";
    case VmOperation::ha:
      return "HA restart";
    case VmOperation::drs_placement:
      return "DRS placement";
    case VmOperation::drs_balancing:
      return "DRS balancing";
    case VmOperation::fault_tolerance:
      return "fault tolerance";
    case VmOperation::hot_add:
      return "hot-add";
  }
  return "";
}

const std::vector<VmOperation>& vm_operations() {
  static const std::vector<VmOperation> all{
      VmOperation::migration, VmOperation::suspend,       VmOperation::snapshot,      VmOperation::clone,
      VmOperation::ha,        VmOperation::drs_placement, VmOperation::drs_balancing, VmOperation::fault_tolerance,
      VmOperation::hot_add};
  return all;
}

Gate operation_gate(const Virtualization& vm, const HeldModes& held, VmOperation operation,
                    const ParameterSet& parameters) {
  if (!vm.is_virtual()) return closed("bare metal");
  const bool is_of_vsphere = operation == VmOperation::drs_placement || operation == VmOperation::drs_balancing ||
                             operation == VmOperation::fault_tolerance;
  if (is_of_vsphere && !is_esxi(vm))
    return closed(fmt::format("it is a feature of vSphere, the hypervisor is {}", to_string(vm.hypervisor)));
  Gate doubt;
  const auto take = [&](Gate gate) {
    if (gate.is_open) return false;
    if (!gate.is_inferred) return doubt = std::move(gate), true;
    if (doubt.is_open) doubt = std::move(gate);
    return false;
  };
  for (const auto mode : held.gpus)
    if (take(gpu_gate(vm, mode, operation, parameters))) return doubt;
  for (const auto mode : held.nics)
    if (take(nic_gate(vm, mode, operation, parameters))) return doubt;
  return doubt;
}

std::string operation_condition(const Virtualization& vm, const HeldModes& held, VmOperation operation,
                                const ParameterSet& parameters) {
  const bool has_vgpu =
      std::ranges::any_of(held.gpus, [](GpuMode mode) { return mode == GpuMode::vgpu || mode == GpuMode::mig; });
  if (!operation_gate(vm, held, operation, parameters).is_open) return "";
  const bool is_tied = std::ranges::count(held.gpus, GpuMode::passthrough) +
                           std::ranges::count(held.nics, NicMode::passthrough) +
                           std::ranges::count(held.nics, NicMode::sr_iov) >
                       0;
  if (!is_esxi(vm) && operation == VmOperation::ha && is_tied)
    return "cold, by the cluster's manager, on a host with a free device of the same kind";
  if (!is_esxi(vm)) return "";
  if (has_vgpu && operation == VmOperation::migration)
    return vm.version >= k_evacuation
               ? "vgpu.hotmigrate.enabled=true in vCenter; VgpuMMAutomationTimeoutSecs=-1 evacuates by itself"
               : "vgpu.hotmigrate.enabled=true in vCenter";
  if (has_vgpu && operation == VmOperation::drs_balancing)
    return "PassthroughDrsAutomation=1, LBMaxVmotionPerHost=1, and a stun limit above the estimate";
  if (has_vgpu && operation == VmOperation::ha) return "on a host with the same profile free";
  const bool is_passed =
      std::ranges::count(held.gpus, GpuMode::passthrough) + std::ranges::count(held.nics, NicMode::passthrough) > 0;
  if (is_passed && operation == VmOperation::ha) return "on a host with a free device of the same vendor and model";
  return "";
}

std::string held_devices(const Virtualization& vm) {
  std::string out;
  for (const auto& one : vm.devices) {
    std::string what;
    if (one.gpu)
      what = one.gpu == GpuMode::remote ? fmt::format("remote {}, share {:g}", one.remote, one.share)
                                        : fmt::format("by {}", to_string(*one.gpu));
    if (one.nic) what = fmt::format("by {}", to_string(*one.nic));
    if (!one.profile.empty()) what += " " + one.profile;
    if (one.functions > 1) what += fmt::format(", {} functions", one.functions);
    if (one.rate_limit) what += fmt::format(" ({:g} Gb/s)", one.rate_limit->bytes_per_s * 8e-9);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", one.device, what);
  }
  return out.empty() ? "no device" : out;
}

}  // namespace fabricast
