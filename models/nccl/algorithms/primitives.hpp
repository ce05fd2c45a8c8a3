// SPDX-License-Identifier: Apache-2.0
// What a thread block of Simple and LL128 does with each byte of a step (NVIDIA/nccl src/device/prims_simple.h,
// prims_ll128.h).
#pragma once

#include "nccl/operation.hpp"

namespace fabricast::models::nccl {

/// Times that primitives move each byte: from and to buffers of the GPU, out of and into those of connections.
struct Traffic {
  double reads = 0;
  double writes = 0;
  double received = 0;
  double sent = 0;
};

Traffic operator+(const Traffic& a, const Traffic& b);
Traffic operator*(double times, const Traffic& one);

constexpr Traffic k_send{1, 0, 0, 1}, k_receive{0, 1, 1, 0};
constexpr Traffic k_copy_send{1, 1, 0, 1}, k_receive_copy_send{0, 1, 1, 1};
constexpr Traffic k_receive_reduce_send{1, 0, 1, 1}, k_receive_reduce_copy{1, 1, 1, 0};
constexpr Traffic k_receive_reduce_copy_send{1, 1, 1, 1};
/// What `nccl.channel_bandwidth.<protocol>` counts: the mean of those in the middle of an all-reduce ring.
constexpr Traffic k_ring_step{0.5, 0.5, 1, 1};

/// Between GPUs and over networks. Through host memory what a block takes is known of whole steps only, over loopback
/// sockets a proxy thread limits; lines of LL are counted otherwise.
bool counts_traffic(const Operation& op);

/// Time of a thread block, over that of `k_ring_step`. A byte read takes it `nccl.read_share` of what one read and
/// written takes, whatever the primitive; LL128 takes the same for its own buffers and longer for those of connections,
/// whose lines have flags: rates of all-reduce, all-gather, reduce-scatter and trees on 2 to 8 H200
/// (calibration/data/h200-4gpu-blocks).
double time_of(const Operation& op, const Traffic& traffic);

}  // namespace fabricast::models::nccl
