// SPDX-License-Identifier: Apache-2.0
// Broadcast and reduce: one way along the ring, the whole message in one step.
#include <fmt/format.h>

#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

namespace {

class Chain : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  [[nodiscard]] Work work(const Cut& cut) const override { return {cut.per_channel, first_chunk(cut), 1}; }

  /// NCCL gives a channel as many threads as one step of a ring needs (64 to 512). A chain moves a whole message in one
  /// step: with LL every thread passes on line after line of 8 bytes, and waits for the flag of each.
  void add_preparation(Flow& flow) const override {
    if (!op_.is(Protocol::ll)) return;
    const double threads = std::clamp(op_.size / (8 * op_.num_ranks()), 64.0, 512 * op_.filled);
    const double loops = std::max(1.0, op_.size / (8 * threads));
    const auto& one = op_.parameter("nccl.thread_loop_time"_stem, op_.protocol);
    add_latency(flow, {fmt::format("{:.0f} lines per thread", loops), from_seconds((loops - 1) * one.value), one.name,
                       one.source});
  }
  /// With LL and LL128 the root is already in the next iteration. Simple writes into the receiver's own buffer, so
  /// every rank waits until the next one has begun. Over several hosts the channels pass them in different orders: a
  /// rank that is late in one channel holds up all others.
  [[nodiscard]] bool are_iterations_apart() const override {
    return !op_.is(Protocol::simple) && (op_.is_in_one_host() || op_.channels < 2);
  }
  [[nodiscard]] std::string bandwidth_name(bool through_host_memory) const override {
    return op_.is(Protocol::ll) && !through_host_memory ? "chain.ll" : op_.protocol;
  }
  [[nodiscard]] std::string slice_name() const override { return op_.is(Protocol::simple) ? "chain" : op_.protocol; }

 protected:
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.pipelined"_stem); }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_chain(const Operation& operation) { return std::make_unique<Chain>(operation); }

}  // namespace fabricast::models::nccl
