// SPDX-License-Identifier: Apache-2.0
// What a workload and the software settings may ask of NCCL: every fault, each with its place and its fix.
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// What a benchmark of nccl-tests runs.
Collective collective_of(Benchmark benchmark);

/// Algorithms that a workload of nccl-tests may ask for; none where NCCL has no choice.
std::vector<std::string> algorithm_names(Benchmark benchmark);

/// Where a setting of `software.nccl` was written, else the workload.
SourceLocation where_set(const PlanContext& context, const Workload& workload, const std::string& key);

/// Faults of the workload's algorithm, protocol and root, and of the settings of NVLink SHARP, for these ranks.
Diagnostics workload_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks);

/// Adapters whose network plugin comes with settings that leave rings and trees cannot keep a promise of `nvls: on`.
Diagnostic nvls_beside_plugin(const PlanContext& context, const Workload& workload);

/// `collnet: on` where the fabric, the hosts or the release have none.
Diagnostic no_collnet(const PlanContext& context, const Workload& workload, const std::string& reason);
/// The same of `symmetric_memory: on`; of a step or trace some communicators have its kernels and others not.
Diagnostic no_symmetric_memory(const PlanContext& context, const Workload& workload, const std::string& reason);

}  // namespace fabricast::models::nccl
