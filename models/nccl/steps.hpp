// SPDX-License-Identifier: Apache-2.0
// What the steps of an NCCL operation cost once its kernel runs: a schedule (schedules/: what a channel does in which
// order) with a protocol over transports (transports/: what a hop adds and how fast it is). Equations:
// docs/models/nccl.md.
#pragma once

#include <string>

#include "nccl/operation.hpp"

namespace fabricast::models::nccl {

/// `volta` (and older), `ampere` or `hopper`, by compute capability as 10 x major + minor.
struct Architecture {
  std::string name;     ///< whose values are used: the last part of parameters' names
  bool is_own = false;  ///< of this compute capability's major number
};
/// `architecture.<name>` are the compute capabilities from which on values of that name hold: the youngest that is not
/// above the GPU's, for older GPUs the oldest.
Architecture architecture_of(const ParameterSet& parameters, int compute_capability);

/// The pipelined part of an operation: one coupled flow of its channels with its latency terms.
Node steps_node(const Operation& operation);

}  // namespace fabricast::models::nccl
