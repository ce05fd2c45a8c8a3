// SPDX-License-Identifier: Apache-2.0
// Which gradients travel together.
//
// PyTorch's DDP, after the first iteration: tensors in the order in which their gradients were ready; a tensor joins
// the bucket, then the bucket is closed when its bytes reach the cap. So a bucket exceeds the cap by up to its last
// tensor, and nothing is split. `bucket_cap_mb` unset: 1 MiB for the first bucket, 25 MiB for the others; set, also for
// the first. [pytorch, torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; nn/parallel/
// distributed.py] Bytes are those of parameters: a hook that casts halves only what is on the wire.
#pragma once

#include <span>
#include <vector>

#include "fabricast/training.hpp"

namespace fabricast::models::training {

struct Bucket {
  Bytes bytes;
  int tensors = 0;
  Duration ready;  ///< of its last gradient, after backward began
};

std::vector<Bucket> ddp_buckets(std::span<const GradientTensor> tensors, std::optional<Bytes> cap);

/// What Horovod's coordinator finds at each of its cycles, cut at the fusion threshold: tensors in order, as long as
/// the next one fits. `ready` is the cycle's. [horovod, controller.cc, FuseResponses]
std::vector<Bucket> horovod_buffers(std::span<const GradientTensor> tensors, Bytes fusion, Duration cycle);

}  // namespace fabricast::models::training
