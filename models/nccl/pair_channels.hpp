// SPDX-License-Identifier: Apache-2.0
// Channels by which a pair of ranks sends and receives, and up to which size it takes LL (NVIDIA/nccl src/enqueue.cc,
// calcP2pChannelCount, addP2pToPlan; before 2.14 src/group.cc, getP2pChunkSize).
#pragma once

#include "nccl/operation.hpp"

namespace fabricast::models::nccl {

struct PairChannels {
  double all = 1;    ///< for sends and receives there are, a power of two
  double least = 1;  ///< of a pair that has bytes enough
  double most = 1;   ///< where parts would be too large otherwise
};

/// From 2.8 on the least number shrinks until all ranks together fit the channels there are, until 2.19 the largest
/// until they take them four times (later that is the connection's, nccl/pairs.cpp).
PairChannels channels_of_pair(const Software& software, const Communicator& group, const Pattern& pattern);

/// From 2.22 to 2.28 parts of LL are cut by its own buffer, and a pair takes LL as long as all channels that it may
/// have would get little each. Before, and from 2.29 on, the parts that it has with Simple must be small.
bool cuts_lines_apart(const Software& software, Library library);

/// Bytes up to which a pair inside a host takes LL; `limit` is that of one channel.
double largest_ll_of_pair(const Software& software, const Communicator& group, const Pattern& pattern, double limit);

}  // namespace fabricast::models::nccl
