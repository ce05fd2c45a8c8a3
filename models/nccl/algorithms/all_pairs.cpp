// SPDX-License-Identifier: Apache-2.0
// Schedules of MSCCL for the GPUs of one host: in every round each sends to all others at once, by channels of their
// own; between two rounds it reduces what came in. Source: ROCm/rccl tools/msccl-algorithms.
#include <fmt/format.h>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/rccl.hpp"

namespace fabricast::models::nccl {

namespace {

class AllPairs : public ChannelAlgorithm {
 public:
  explicit AllPairs(const Operation& operation)
      : ChannelAlgorithm(operation), rounds_(rounds_of(operation)), block_(block_of(operation, rounds_)) {}

  [[nodiscard]] Work work(const Cut&) const override {
    const double shares = op_.pattern.shares;
    return {rounds_ * block_ / shares, 0, op_.channels / shares};
  }
  [[nodiscard]] double concurrent_channels() const override { return op_.channels * (op_.num_ranks() - 1); }
  [[nodiscard]] bool polls_flags() const override { return false; }
  [[nodiscard]] double paid_hops(const Hops&) const override { return rounds_; }
  /// A hop is one of a ring's.
  [[nodiscard]] Algorithm hop_algorithm(const Hops&) const override { return Algorithm::ring; }
  [[nodiscard]] bool hides_local_work() const override { return false; }

  /// Simple puts what arrives down first: a thread block copies it out of the buffer, and between two rounds all that
  /// came in is summed. LL does both as it reads the lines.
  void add_filling(Flow& flow, const Cut&) const override {
    if (!op_.is(Protocol::simple)) return;
    const auto& copy = op_.parameter("nccl.channel_bandwidth"_stem, op_.protocol);
    const double passes = rounds_ + (rounds_ - 1);
    add_latency(flow, {fmt::format("copies out of buffers and sums, {:.0f} passes", passes),
                       from_seconds(passes * block_ / (op_.channels * copy.value)), copy.name, copy.source});
  }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return block_ / op_.channels; }
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.pipelined"_stem); }

 private:
  static int rounds_of(const Operation& op) {
    const auto found = rccl::schedule_of(op.collective, Bytes{static_cast<std::int64_t>(op.size)});
    return found ? found->rounds : 1;
  }
  /// Bytes that a GPU sends to another in a round: of a reduction in one round all, else each GPU's part.
  static double block_of(const Operation& op, int rounds) {
    return op.collective == Collective::all_reduce && rounds == 1 ? op.size : op.size / op.num_ranks();
  }

  int rounds_;
  double block_;
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_all_pairs(const Operation& operation) {
  return std::make_unique<AllPairs>(operation);
}

}  // namespace fabricast::models::nccl
