// SPDX-License-Identifier: Apache-2.0
// What adapters must have for perftest (ib_write_bw and its relatives) and for MPI libraries. perftest posts verbs
// itself: no shared memory, no copies of GPU memory, no distance beyond which it would leave GPUDirect RDMA.
// docs/models/point-to-point.md, "perftest".
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

/// Why the library that `software.mpi` names cannot carry messages between hosts over these adapters: openib
/// knows neither Slingshot-11 nor Aries, UCX not the one, MVAPICH2 not the other; openib and MVAPICH2 need reliable
/// connections, which EFA has not, and UCX came to EFA with 1.18 [openucx/ucx uct/ib/efa; Open MPI docs, OFI]. Empty
/// where it can, over TCP, and inside one host.
Diagnostics library_faults(const PlanContext& context, const Profile& profile, const Pair& pair);

}  // namespace fabricast::models::mpi
