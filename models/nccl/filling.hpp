// SPDX-License-Identifier: Apache-2.0
// Between the sizes at which NCCL opens one more channel, those there are get up to twice the bytes, and what opens
// then may be another HCA: a forecast that repeats this falls at each such size. Here the next channel opens as soon as
// there is more than those there are had when the last one opened, and the bytes of a full one stay the same until it
// is full. At the sizes where NCCL opens a channel both are the same.
#pragma once

#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Between `channel_use(...).channels` and one step more, in proportion to the size; at most `max_channels`.
double filled_channels(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels);

/// channel_use() with the channels that open early.
ChannelUse filled_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels);

}  // namespace fabricast::models::nccl
