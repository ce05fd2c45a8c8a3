// SPDX-License-Identifier: Apache-2.0
// What a thread block of Simple does with each byte of a step (NVIDIA/nccl src/device/prims_simple.h).
#pragma once

#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

/// Times that a primitive reads and writes each byte: its own buffers, and those of the connections.
struct Traffic {
  double reads = 0;
  double writes = 0;

  friend Traffic operator+(Traffic a, Traffic b) { return {a.reads + b.reads, a.writes + b.writes}; }
  friend Traffic operator*(double times, Traffic one) { return {times * one.reads, times * one.writes}; }
};

constexpr Traffic k_send{1, 1}, k_receive{1, 1};
constexpr Traffic k_copy_send{1, 2}, k_receive_copy_send{1, 2};
constexpr Traffic k_receive_reduce_send{2, 1}, k_receive_reduce_copy{2, 1};
constexpr Traffic k_receive_reduce_copy_send{2, 2};
/// The mean step of an all-reduce ring, whatever the number of ranks: `nccl.channel_bandwidth.simple` counts these.
constexpr Traffic k_ring_step{1.5, 1.5};

/// Through host memory it is known of whole steps only, over loopback sockets a proxy thread limits.
inline bool counts_traffic(const Operation& op) {
  return op.is(Protocol::simple) && !op.has_hop(TransportKind::host_memory) &&
         !(op.is_in_one_host() && op.has_hop(TransportKind::socket));
}

/// Time of a thread block, in that of a step of an all-reduce ring. Between 2 and 8 H200, one to eight channels, all
/// operations of all-reduce, all-gather, reduce-scatter and trees take what one time per byte read and one per byte
/// written give (calibration/data/h200-4gpu-blocks).
inline double time_of(const Operation& op, Traffic traffic) {
  const double read = op.context.parameters["nccl.read_share"_key];
  const auto time = [&](Traffic one) { return one.reads * read + one.writes * (1 - read); };
  return time(traffic) / time(k_ring_step);
}

}  // namespace fabricast::models::nccl
