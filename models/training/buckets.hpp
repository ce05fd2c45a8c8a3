// SPDX-License-Identifier: Apache-2.0
// Which gradients travel together.
//
// PyTorch's DDP, after the first iteration: tensors in the order in which their gradients were ready; a tensor joins
// the bucket, then the bucket is closed when its bytes reach the cap. So a bucket exceeds the cap by up to its last
// tensor, and nothing is split. `bucket_cap_mb` unset: 1 MiB for the first bucket, 25 MiB for the others; set, also for
// the first. [pytorch, torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; nn/parallel/
// distributed.py] Bytes are those of parameters: a hook that casts halves only what is on the wire.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// Elements that Horovod's FUSION_BUFFER_ATOMIC_UNIT counts. [horovod, common.h]
inline constexpr int k_atomic_unit = 64;

struct Bucket {
  Bytes bytes;
  int tensors = 0;
  Duration ready;  ///< of its last gradient, after backward began
};

std::vector<Bucket> ddp_buckets(std::span<const GradientTensor> tensors, std::optional<Bytes> cap);

/// What Horovod's coordinator finds at each of its cycles, cut at the fusion threshold: tensors in order, as long as
/// the next one fits. `ready` is the cycle's; cycles lie so that the last gradient waits for half of one. `busy`: how
/// long a buffer keeps the thread that runs the cycles; it finds what has become ready meanwhile at once when it is
/// through. Empty: exchanges do not keep it. [horovod, controller.cc, FuseResponses; operations.cc, RunLoopOnce]
std::vector<Bucket> horovod_buffers(std::span<const GradientTensor> tensors, Bytes fusion, Duration cycle,
                                    const std::function<Duration(const Bucket&)>& busy = {});

/// The fusion threshold in use where every host has `local_size` ranks: rounded up to whole shares of 64 doubles per
/// rank. [horovod, controller.cc, TensorFusionThresholdBytes]
Bytes fusion_threshold(Bytes asked, int local_size);

}  // namespace fabricast::models::training
