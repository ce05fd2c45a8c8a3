// SPDX-License-Identifier: Apache-2.0
#include "common/foreign_gpus.hpp"

#include <fmt/format.h>

#include <string_view>

namespace fabricast::models {

Diagnostics foreign_gpus(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    for (const auto gpu : topology.devices(DeviceKind::gpu, host)) {
      const auto& type = topology.device(gpu).type;
      const auto vendor = topology.attribute(type, "vendor");
      if (vendor.empty() || vendor == "nvidia") continue;
      return {make_error_at(
          workload.location,
          fmt::format("{} on {}: ROCm's kernels, copies and MPI are not modelled, those of CUDA are no stand-in",
                      to_string(workload.benchmark), type),
          "collectives of nccl-tests (RCCL of MI300X), MPI and perftest with host buffers, traffic, check and export "
          "work on these hosts")};
    }
  }
  return {};
}

}  // namespace fabricast::models
