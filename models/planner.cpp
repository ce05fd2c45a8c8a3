// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/planner.hpp"

#include "common/foreign_gpus.hpp"
#include "mpi/collective.hpp"
#include "mpi/point_to_point.hpp"
#include "nccl/planner.hpp"
#include "system/planners.hpp"
#include "system/sharing_planner.hpp"
#include "traffic/planner.hpp"
#include "training/planner.hpp"

namespace fabricast::models {

namespace {

/// NCCL's planner asks itself: training and replays call it, too.
bool uses_gpus_without_nccl(const Workload& workload) {
  switch (family_of(workload.benchmark)) {
    case BenchmarkFamily::training:
    case BenchmarkFamily::sharing:
      return true;
    case BenchmarkFamily::system:
      return workload.benchmark == Benchmark::host_copies || workload.benchmark == Benchmark::gpu_step;
    case BenchmarkFamily::osu:
    case BenchmarkFamily::perftest:
      return workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
    case BenchmarkFamily::nccl_tests:
    case BenchmarkFamily::traffic:
      return false;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_planner(const PlanContext& context, const Workload& workload) {
  if (uses_gpus_without_nccl(workload)) {
    if (auto faults = foreign_gpus(context, workload); !faults.empty()) return tl::unexpected(std::move(faults));
  }
  if (family_of(workload.benchmark) == BenchmarkFamily::sharing) return make_sharing_planner(context, workload);
  if (family_of(workload.benchmark) == BenchmarkFamily::nccl_tests)
    return nccl::make_collective_planner(context, workload);
  if (workload.benchmark == Benchmark::host_copies) return system::make_host_copies_planner(context, workload);
  if (workload.benchmark == Benchmark::gpu_step) return system::make_gpu_step_planner(context, workload);
  if (family_of(workload.benchmark) == BenchmarkFamily::system) return system::make_socket_planner(context, workload);
  if (workload.benchmark == Benchmark::training) return training::make_training_planner(context, workload);
  if (workload.benchmark == Benchmark::traffic) return traffic::make_traffic_planner(context, workload);
  if (is_collective(workload.benchmark)) return mpi::make_collective_planner(context, workload);
  return mpi::make_point_to_point_planner(context, workload);
}

}  // namespace fabricast::models
