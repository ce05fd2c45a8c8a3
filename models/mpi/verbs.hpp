// SPDX-License-Identifier: Apache-2.0
// What perftest (ib_write_bw and its relatives) needs. It posts verbs itself: no shared memory, no copies of GPU
// memory, no distance beyond which it would leave GPUDirect RDMA. docs/models/point-to-point.md, "perftest".
#pragma once

#include "mpi/end_points.hpp"
#include "mpi/profile.hpp"

namespace fabricast::models::mpi {

/// Reads that one queue pair has under way: `-o`, by default max_qp_rd_atom of the device.
inline constexpr int k_reads_under_way = 16;

/// Why perftest cannot run between these ends; empty when it can, and for other benchmarks. Each end needs an adapter
/// with RDMA and reliable connections, in a VM one that reaches the guest, and GPU memory that the adapter may read.
Diagnostics verbs_faults(const PlanContext& context, const Workload& workload, const Profile& profile,
                         const Pair& pair);

}  // namespace fabricast::models::mpi
