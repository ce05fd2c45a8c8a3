// SPDX-License-Identifier: Apache-2.0
// MVAPICH2 copies the GPU buffers of some collectives to host memory, runs the host's collective and copies the result
// back [MVAPICH2 2.x ibv_param.c, rdma_cuda_*_naive_limit; ch3_shmem_coll.c, cuda_stage_alloc; alltoall_osu.c,
// allgather_osu.c, gather_osu.c]. docs/models/mpi.md, "Device buffers of MVAPICH2".
#pragma once

#include <memory>

#include "mpi/transfer.hpp"

namespace fabricast::models::mpi {

/// Whether it may do so with collectives of this kind.
bool may_copy_buffers_whole(const Profile& profile, Benchmark benchmark);

/// Whether its limits allow it with a collective of `num_ranks` >= 1 whose blocks have `size` bytes.
bool are_buffers_copied_whole(Benchmark benchmark, int num_ranks, Bytes size);

/// `on_devices` for sizes that are not copied whole or up to the profile's limit of GPUDirect RDMA, below which
/// messages are taken to go between GPUs (the GDR builds' sources are not public), else `on_host` with the copies.
/// `end`: a rank, on a device.
std::unique_ptr<Planner> make_staged_collective(const PlanContext& context, const Profile& profile, Benchmark benchmark,
                                                const EndPoint& end, std::unique_ptr<Planner> on_devices,
                                                std::unique_ptr<Planner> on_host);

}  // namespace fabricast::models::mpi
