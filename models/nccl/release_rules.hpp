// SPDX-License-Identifier: Apache-2.0
// What a release of NCCL does not have yet, and releases that nobody read.
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

/// Channels of a communicator at most (MAXCHANNELS of src/include/devcomm.h): 16 in 2.4, 32 until 2.24, then 64.
int max_channels(int version);

/// Benchmark, launch or channels that software.nccl.version cannot run, and versions below the first one read. `ranks`:
/// not empty.
Diagnostics release_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks);

/// For a release younger than the sources read, the sentence that says so; else empty.
std::string younger_than_sources(const PlanContext& context, DeviceId gpu);

}  // namespace fabricast::models::nccl
