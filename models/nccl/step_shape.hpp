// SPDX-License-Identifier: Apache-2.0
// How one operation is cut into steps and chunks; shared by the costs inside a host (steps.cpp) and between hosts
// (network_steps.cpp).
#pragma once

#include <string>

#include "nccl/steps.hpp"

namespace fabricast::models::nccl {

void add_latency(Flow& flow, Term term);
bool has_hop(const Pattern& pattern, TransportKind kind);

/// How an operation is cut: bytes of payload per channel, per step, per chunk.
struct StepCosts::Shape {
  const Pattern& pattern;
  Choice choice;
  std::string protocol;
  double size = 0;
  double n = 0;
  bool is_pairs = false, is_one_way = false, is_tree = false, is_ring = false, is_nvls = false, is_shm = false,
       is_loopback = false;
  double share = 1;        ///< payload share of the protocol
  double per_channel = 0;  ///< bytes of the operation one channel handles, a full one
  double per_step = 0;     ///< of them in one step of a ring, all in a chain or tree
  double largest_chunk = 0;
  double chunk = 0;
  double loops = 1;       ///< chunks one after the other in a step
  double paid_loops = 1;  ///< as many times the hops are paid
  double channels = 1;
  double filled = 1;         ///< as many of them as are filled like a full one (filling.hpp)
  double steps = 1;          ///< of a ring
  double pair_channels = 1;  ///< send and receive: channels that one pair of ranks uses
};

}  // namespace fabricast::models::nccl
