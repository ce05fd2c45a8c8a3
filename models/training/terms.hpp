// SPDX-License-Identifier: Apache-2.0
// How the parts of a step are called, in terms and in the split that a row prints.
#pragma once

namespace fabricast::models::training {

/// Streams of the GPU that a step is told of.
inline constexpr int k_compute = 0;
inline constexpr int k_nccl = 1;
inline constexpr int k_mpi = 2;  ///< of Horovod's form by hosts

inline constexpr const char* k_forward = "forward pass";
inline constexpr const char* k_backward = "backward pass";
inline constexpr const char* k_optimizer = "optimiser";
inline constexpr const char* k_bubble = "pipeline bubble";
inline constexpr const char* k_straggler = "waiting for the slowest GPU";
inline constexpr const char* k_launch = "waiting for the launching thread";

}  // namespace fabricast::models::training
