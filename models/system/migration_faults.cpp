// SPDX-License-Identifier: Apache-2.0
// What speaks against a migration before its stun is asked for, and against the data of a remote GPU's step.
#include <fmt/format.h>

#include <algorithm>

#include "fabricast/vm_operations.hpp"
#include "system/sharing_planner.hpp"

namespace fabricast::models {

namespace {

/// Against the virtualization of one host: devices that stay where they are, another release or
/// amount of memory than the migration is told.
Diagnostics host_faults(const Virtualization& guest, const std::string& name, const MigrationSettings& asked,
                        const ParameterSet& parameters) {
  const auto gate = operation_gate(guest, {{guest.gpu}, {guest.nic}}, VmOperation::migration, parameters);
  if (!gate.is_open && !gate.is_inferred)
    return Diagnostics{
        make_error_at(asked.location, fmt::format("VMs of host '{}' cannot migrate: {}", name, gate.reason),
                      "hand GPUs over as vgpu and adapters by pvrdma or tcp, or leave the migration out")};
  if (guest.hypervisor != Hypervisor::esxi)
    return Diagnostics{make_error_at(
        asked.location,
        fmt::format("stun tables are known for ESXi, host '{}' runs {}", name, to_string(guest.hypervisor)),
        "set `hypervisor: esxi`")};
  const auto told = release_from(asked.release.substr(asked.release.find('-') + 1));
  if (guest.locations.contains("version") && told &&
      (told->major != guest.version.major || told->minor != guest.version.minor))
    return Diagnostics{make_error_at(
        asked.location,
        fmt::format("the stun table is of {}, host '{}' runs ESXi {}", asked.release, name, to_string(guest.version)),
        "give the same release in `migration` and `virtualization`, or `release: worst-case`")};
  if (guest.memory && *guest.memory != asked.memory)
    return Diagnostics{make_error_at(asked.location,
                                     fmt::format("the migrating VM has {}, VMs of host '{}' have {}",
                                                 to_string(asked.memory), name, to_string(*guest.memory)),
                                     "give the same `memory` in `migration` and `virtualization`")};
  if (asked.has_pvrdma != (guest.nic == NicMode::pvrdma))
    return Diagnostics{make_error_at(asked.location,
                                     fmt::format("the migrating VM has {} PVRDMA adapter, VMs of host '{}' have {}",
                                                 asked.has_pvrdma ? "a" : "no", name, to_string(guest.nic)),
                                     "set `migration: {pvrdma: on}` exactly when adapters are handed over by pvrdma")};
  return {};
}

}  // namespace

std::optional<Diagnostic> memory_fault(const Workload& workload) {
  const auto& remote = *workload.remote;
  for (const auto size : workload.sizes) {
    const auto moved = std::max(size, remote.from_gpu);
    if (remote.memory && moved > *remote.memory)
      return make_error_at(remote.location,
                           fmt::format("{} of a step's data, the client has {} of GPU memory", to_string(moved),
                                       to_string(*remote.memory)),
                           "raise `memory` in `remote`, or lower `sizes` and `from_gpu`");
  }
  return std::nullopt;
}

Diagnostics migration_faults(const PlanContext& context, const Workload& workload) {
  for (int host = 0; host < context.topology.num_hosts(); ++host) {
    const auto& guest = context.topology.virtualization(host);
    if (!guest.is_virtual()) continue;
    auto faults = host_faults(guest, context.topology.host_name(host), *workload.migration, context.parameters);
    if (!faults.empty()) return faults;
  }
  return {};
}

}  // namespace fabricast::models
