// SPDX-License-Identifier: Apache-2.0
// PAT, parallel aggregated trees: all-gather and reduce-scatter of hosts with one GPU each. A hop for every doubling of
// the ranks, in which a rank passes on as many blocks as it has; those of small operations fit into one message.
// Source: NVIDIA/nccl src/device/all_gather.h, src/include/device.h (2.23 to 2.29).
#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"
#include "schedules/algorithms.hpp"

namespace fabricast::models::nccl {

namespace {

class Pat : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  /// The pattern counts blocks.
  [[nodiscard]] Work work(const Cut& cut) const override {
    const double copied = cut.per_step * time_of(op_, k_receive) / time_of(op_, k_receive_copy_send);
    return {cut.per_step * (op_.num_ranks() - 1), copied, 1, copied};
  }
  [[nodiscard]] double reached_share() const override {
    return 1 / time_of(op_, op_.collective == Collective::reduce_scatter ? k_receive_reduce_send : k_receive_copy_send);
  }
  /// Blocks that fit into a step of the buffer together go together, in powers of two.
  [[nodiscard]] double messages(const Cut& cut) const override {
    const double together = std::exp2(std::floor(std::log2(std::max(1.0, step() / cut.chunk))));
    double sum = 0;
    for (const int blocks : schedules::aggregated_tree_blocks(op_.group.num_ranks)) sum += std::ceil(blocks / together);
    return sum * cut.loops;
  }
  [[nodiscard]] double messages_of_hops(const Hops& hops) const override { return hops.count; }
  [[nodiscard]] double message(const Hops&, const Cut& cut) const override {
    return cut.per_step * (op_.num_ranks() - 1) / messages(cut);
  }
  /// A hop is one of a ring's.
  [[nodiscard]] Algorithm hop_algorithm(const Hops&) const override { return Algorithm::ring; }
  [[nodiscard]] const Parameter* network_share() const override {
    return &op_.context.parameters.at("nccl.pat_network_share"_key);
  }

  void add_filling(Flow& flow, const Cut&) const override {
    const auto& time = op_.context.parameters.at("nccl.pat_rank_time"_key);
    add_latency(
        flow, {"PAT's steps, one for every rank", from_seconds(op_.num_ranks() * time.value), time.name, time.source});
  }

 protected:
  [[nodiscard]] double bytes_per_step(double per_channel) const override { return per_channel / op_.num_ranks(); }
  /// Halved down to 64 KiB as long as a channel's bytes are less than 32 of them, 16 to scatter (NVIDIA/nccl
  /// src/enqueue.cc, calcCollChunking).
  [[nodiscard]] double largest_chunk(double per_channel) const override {
    constexpr double least = 65536;
    const double times = op_.collective == Collective::reduce_scatter ? 16 : 32;
    double chunk = step();
    while (chunk > least && per_channel < times * chunk) chunk /= 2;
    return chunk;
  }

 private:
  [[nodiscard]] double step() const { return buffer_chunk("nccl.chunk.pipelined"_stem); }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_pat(const Operation& operation) { return std::make_unique<Pat>(operation); }

}  // namespace fabricast::models::nccl
