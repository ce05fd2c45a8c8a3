// SPDX-License-Identifier: Apache-2.0
#include "common/foreign_gpus.hpp"

#include <fmt/format.h>

namespace fabricast::models {

std::string_view vendor_of(const Topology& topology, DeviceId gpu) {
  const auto vendor = topology.attribute(topology.device(gpu).type, "vendor");
  return vendor.empty() ? "nvidia" : vendor;
}

Diagnostics foreign_gpus(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    for (const auto gpu : topology.devices(DeviceKind::gpu, host)) {
      if (vendor_of(topology, gpu) == "nvidia") continue;
      return {make_error_at(
          workload.location,
          fmt::format("{} on {}: ROCm's kernels, copies and MPI are not modelled, those of CUDA are no stand-in",
                      to_string(workload.benchmark), topology.device(gpu).type),
          "collectives of nccl-tests (RCCL of MI300X to MI355X), MPI and perftest with host buffers, traffic, check "
          "and export work on these hosts")};
    }
  }
  return {};
}

}  // namespace fabricast::models
