// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU as the system that computes on it has it: the card's, a vGPU's or MIG instance's framebuffer, what a
// client of a remote GPU asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

struct GpuMemory {
  double bytes = 0;  ///< the profile's number in GiB, at most the card's
  std::string what;  ///< "h100-sxm", "MIG instance 1g.10gb of a h100-sxm"
};

/// Of `gpu`; empty where the catalogue does not say what its card has.
std::optional<GpuMemory> gpu_memory(const Topology& topology, const ParameterSet& parameters, DeviceId gpu);

/// The least of `gpus`.
std::optional<GpuMemory> least_memory(const Topology& topology, const ParameterSet& parameters,
                                      const std::vector<DeviceId>& gpus);

}  // namespace fabricast::models
