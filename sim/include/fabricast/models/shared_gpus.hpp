// SPDX-License-Identifier: Apache-2.0
// Workloads of a scenario that run kernels on the same GPUs. CUDA lets processes of a GPU take turns (no MPS);
// forecasts of steps do not: each computes as if it were alone there, which `check` and the result say.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// GPUs that take part, sorted; empty where they are not there, which others say.
std::vector<DeviceId> gpus_of(const Topology& topology, const Workload& workload);

/// "job-a", or the benchmark and the place in the list: "training (workload 2)".
std::string name_of(const std::vector<Workload>& workloads, std::size_t index);

/// "n.gpu0", "8 GPUs (n.gpu0 to n.gpu7)".
std::string words_of(const Topology& topology, const std::vector<DeviceId>& gpus);

}  // namespace fabricast::models
