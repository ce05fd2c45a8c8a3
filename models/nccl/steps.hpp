// SPDX-License-Identifier: Apache-2.0
// What the steps of an NCCL operation cost once its kernel runs: an algorithm (algorithms/: what a channel does in
// which order) with a protocol over transports (transports/: what a hop adds and how fast it is). Equations:
// docs/models/nccl.md.
#pragma once

#include "nccl/operation.hpp"

namespace fabricast::models::nccl {

/// The pipelined part of an operation: one coupled flow of its channels with its latency terms.
Node steps_node(const Operation& operation);

/// Thread blocks of a kernel of sends and receives: the channels on which a rank exchanges with all its peers.
double blocks_of_pairs(const Operation& operation);

}  // namespace fabricast::models::nccl
