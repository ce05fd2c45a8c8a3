// SPDX-License-Identifier: Apache-2.0
// Planners of gpu_sharing, remote_gpu and vgpu_migration: their operations are times without flows.
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

/// What the hosts' virtualization says against the migration of vgpu_migration; empty on bare metal, where the workload
/// alone describes the VM.
Diagnostics migration_faults(const PlanContext& context, const Workload& workload);

/// A step whose data do not fit into the memory that the client of a remote GPU has.
std::optional<Diagnostic> memory_fault(const Workload& workload);

/// vgpu_migration of a VM of the topology: a flow from its machine to another.
Result<std::unique_ptr<Planner>> make_vm_migration_planner(const PlanContext& context, const Workload& workload);

/// remote_gpu: a client and another host with a GPU.
Result<std::unique_ptr<Planner>> make_remote_gpu_planner(const PlanContext& context, const Workload& workload);

Result<std::unique_ptr<Planner>> make_sharing_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models
