// SPDX-License-Identifier: Apache-2.0
// MPI collectives: the schedule's rounds, each message timed as a point-to-point message and all messages of a round
// sharing what they share; receivers of a reduction combine at memory speed. Reductions on device buffers are staged
// through pageable host memory, as Open MPI's coll/cuda does. docs/MODELS.md, "MPI collectives".
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::mpi {

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload);

/// The same in place (as Horovod calls it) of processes that drive `gpus`, one each, from the GPU's socket: reductions
/// are staged through its memory.
/// `alike`: as many equal collectives of other processes run on every socket at the same time, this one counted.
Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload,
                                                         const std::vector<DeviceId>& gpus, int alike);

}  // namespace fabricast::models::mpi
