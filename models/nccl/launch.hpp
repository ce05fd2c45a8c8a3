// SPDX-License-Identifier: Apache-2.0
// What starting one operation of a communicator costs: the kernel's own start, and the floor of a queue of operations.
#pragma once

#include "fabricast/models/planner.hpp"
#include "nccl/architecture.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// What the launch of a communicator's operations rests on.
struct Launch {
  LaunchMode mode = LaunchMode::process_per_gpu;
  Collective collective = Collective::all_reduce;
  Architecture architecture;
  DeviceId gpu;  ///< of rank 0
  int num_ranks = 1;
  int most_gpus = 1;  ///< of one host
};

/// What guests add to the kernel's start, and the floor of a queue of operations.
void add_launching(const PlanContext& context, const Launch& launch, double blocks, OperationPlan& plan);

/// The kernel's start, and the floor of a queue of operations: one thread launches kernel after kernel, and the more
/// channels a kernel has, the longer it prepares each.
void add_launch(const PlanContext& context, const Launch& launch, const Choice& choice, double channels,
                OperationPlan& plan);

/// One rank alone: a copy of its buffer in the GPU's memory, read and written (NVIDIA/nccl src/enqueue.cc and
/// src/device/onerank.cu, ncclLaunchOneRank).
Term copy_to_itself(const PlanContext& context, DeviceId gpu, Bytes size);

}  // namespace fabricast::models::nccl
