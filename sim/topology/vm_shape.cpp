// SPDX-License-Identifier: Apache-2.0
// A machine as one of its VMs has it. Devices and links keep their numbers, so that VMs of one machine load the same
// links; what a VM does not hold is in no list of its kinds, so nobody finds it there.
#include <algorithm>
#include <set>

#include "fabricast/virtualization.hpp"
#include "topology/host_shape.hpp"

namespace fabricast::topology {

namespace {

/// Sockets the VM's memory is on: those it was given, else those of its devices, else all.
std::set<int> memory_sockets(const HostShape& machine, const Virtualization& vm) {
  std::set<int> sockets(vm.numa_nodes.begin(), vm.numa_nodes.end());
  if (!sockets.empty()) return sockets;
  for (const auto& device : machine.devices) {
    if (vm.held(device.name) == nullptr || device.socket < 0) continue;
    sockets.insert(vm.is_numa_aligned ? device.socket : (device.socket + 1) % machine.spec.num_sockets);
  }
  return sockets;
}

}  // namespace

HostShape vm_shape(const HostShape& machine, std::shared_ptr<const Virtualization> vm) {
  auto shape = machine;
  const auto sockets = memory_sockets(machine, *vm);
  const auto keep = [&](DeviceKind kind, auto is_held) {
    auto& all = shape.by_kind[static_cast<std::size_t>(kind)];
    std::erase_if(all, [&](int d) { return !is_held(shape.devices[static_cast<std::size_t>(d)]); });
    for (std::size_t i = 0; i < all.size(); ++i)
      shape.devices[static_cast<std::size_t>(all[i])].ordinal = static_cast<int>(i);
  };
  const auto is_held = [&](const Device& device) { return vm->held(device.name) != nullptr; };
  keep(DeviceKind::gpu, is_held);
  keep(DeviceKind::hca, is_held);
  if (!sockets.empty())
    keep(DeviceKind::memory, [&](const Device& memory) { return sockets.count(memory.socket) > 0; });
  shape.spec.virtualization = std::move(vm);
  return shape;
}

}  // namespace fabricast::topology
