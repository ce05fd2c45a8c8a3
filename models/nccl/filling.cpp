// SPDX-License-Identifier: Apache-2.0
#include "nccl/filling.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast::models::nccl {

namespace {

/// The smallest size above `low` (which has too few) up to `high` with at least `channels`.
std::int64_t first_size(const CommunicatorFacts& facts, const Choice& choice, int channels, int max_channels,
                        std::int64_t low, std::int64_t high) {
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (channel_use(facts, choice, Bytes{middle}, max_channels).channels >= channels ? high : low) = middle;
  }
  return high;
}

}  // namespace

double filled_channels(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels) {
  const int channels = channel_use(facts, choice, size, max_channels).channels;
  if (channels >= max_channels) return channels;
  auto above = size.value;
  while (channel_use(facts, choice, Bytes{above}, max_channels).channels <= channels) above *= 2;
  const auto next = first_size(facts, choice, channels + 1, max_channels, size.value, above);
  const int more = channel_use(facts, choice, Bytes{next}, max_channels).channels;
  // One channel is enough until what two share is more than one gets at the next step.
  const double start = static_cast<double>(next) * channels / more;
  const double bytes = static_cast<double>(size.value);
  return std::max<double>(channels,
                          channels + (more - channels) * (bytes - start) / (static_cast<double>(next) - start));
}

ChannelUse filled_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels) {
  auto use = channel_use(facts, choice, size, max_channels);
  use.filled = filled_channels(facts, choice, size, max_channels);
  use.channels = static_cast<int>(std::ceil(use.filled));
  return use;
}

}  // namespace fabricast::models::nccl
