// SPDX-License-Identifier: Apache-2.0
// GPUs of other vendors: their hosts, fabric and collectives (nccl/rccl.hpp) are known, their kernels, copies and MPI
// are not, and CUDA's are no stand-in.
#pragma once

#include <string_view>

#include "fabricast/models/planner.hpp"

namespace fabricast::models {

/// Of a GPU; "nvidia" where its device names none.
std::string_view vendor_of(const Topology& topology, DeviceId gpu);

/// Why a workload that runs on GPUs is refused where one is not of NVIDIA; empty if none is.
Diagnostics foreign_gpus(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models
