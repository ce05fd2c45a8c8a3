// SPDX-License-Identifier: Apache-2.0
// What a collective does with its device buffers beside its messages: docs/models/mpi.md.
#pragma once

#include <vector>

#include "mpi/buffers.hpp"
#include "mpi/end_points.hpp"

namespace fabricast::models::mpi {

/// Of a reduction, whole buffers to pageable host memory and back. `end`: a rank of the operation.
void add_device_staging(const PlanContext& context, const EndPoint& end, const DeviceCopies& staged,
                        OperationPlan& plan);
/// `size` bytes from one buffer of the rank's GPU to the other.
void add_own_copy(const PlanContext& context, const EndPoint& end, Bytes size, OperationPlan& plan);
/// A kernel that the core launches and waits for, as it does for a copy, combines `bytes` that came: two vectors are
/// read, one is written.
std::vector<Term> combining_kernel(const PlanContext& context, const EndPoint& end, double bytes);

}  // namespace fabricast::models::mpi
