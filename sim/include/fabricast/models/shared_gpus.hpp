// SPDX-License-Identifier: Apache-2.0
// Workloads of a scenario that run kernels on the same GPUs. CUDA lets processes of a GPU take turns (time slices, no
// MPS), each busy all the time: exchanges are kernels, too. One of n has its GPU for 1/n of the time less the context
// switches (docs/models/sharing.md, "Time slices of one GPU").
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

struct SharedGpus {
  std::size_t other = 0;  ///< index of the other workload
  std::vector<DeviceId> gpus;
};

/// GPUs of workload `index` that others use, too, where one of both computes steps (training, gpu_step) and the other
/// runs kernels there (the same, nccl-tests). Workloads that name no GPUs take the first ones.
std::vector<SharedGpus> shared_gpus(const Topology& topology, const std::vector<Workload>& workloads,
                                    std::size_t index);

/// What an operation of `workload`, planned by `planner`, of `time` waits for others on its devices: what the planner
/// says, and the turns of `others`, workloads that compute on its GPUs.
std::vector<Term> waits_in_turns(const PlanContext& context, const Planner& planner, const Workload& workload,
                                 const std::vector<SharedGpus>& others, Duration time);

/// GPUs that take part, sorted; empty where they are not there, which others say.
std::vector<DeviceId> gpus_of(const Topology& topology, const Workload& workload);

/// "job-a", or the benchmark and the place in the list: "training (workload 2)".
std::string name_of(const std::vector<Workload>& workloads, std::size_t index);

/// "n.gpu0", "8 GPUs (n.gpu0 to n.gpu7)".
std::string words_of(const Topology& topology, const std::vector<DeviceId>& gpus);

}  // namespace fabricast::models
