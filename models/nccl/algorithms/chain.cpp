// SPDX-License-Identifier: Apache-2.0
// Broadcast and reduce: one way along the ring, the whole message in one step.
#include <fmt/format.h>

#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"

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
    const double threads = std::clamp(op_.size / (8 * op_.num_ranks()), 64.0, 512 * op_.channels);
    const double loops = std::max(1.0, op_.size / (8 * threads));
    const auto& one = op_.parameter("nccl.thread_loop_time"_stem, op_.protocol);
    add_latency(flow, {fmt::format("{:.0f} lines per thread", loops), from_seconds((loops - 1) * one.value), one.name,
                       one.source});
  }
  /// With LL and LL128 the root is already in the next iteration. Simple writes into the receiver's own buffer, so
  /// every rank waits until the next one has begun. Over several hosts the channels pass their GPUs in different
  /// orders: a rank that is late in one channel holds up all others.
  [[nodiscard]] bool are_iterations_apart() const override {
    return op_.group.queued > 1 && !op_.is(Protocol::simple) && (op_.is_in_one_host() || op_.channels < 2);
  }
  /// Hosts work on iterations of their own, so that each costs what two neighbouring hosts cost, where all channels
  /// pass the ranks in one order. Where channels come into a host at E GPUs, a rank early in one is late in another:
  /// the rest of the way is paid but for 1 / E. What is not is passed once in all iterations: nccl-tests tells the mean
  /// of all ranks, half of it, until 2.10 the time of rank 0, nothing of it.
  [[nodiscard]] double paid_hops(const Hops& hops) const override {
    const double each = hops_of_each_iteration(hops);
    const double share_of_rest = reports_mean_of_ranks() ? 0.5 : 0;
    return each + (hops.count - each) * (op_.group.queued > 1 ? share_of_rest / op_.group.queued : 1);
  }
  /// A proxy serves the operations of a connection one after the other: the next message leaves when the GPU at the
  /// other end has taken this one. Ranks in the root's host do not feel it, as their buffers hold several iterations.
  [[nodiscard]] double share_behind_messages() const override {
    const double hosts = op_.group.num_hosts;
    return are_iterations_apart() && reports_mean_of_ranks() ? (hosts - 1) / hosts : 0;
  }
  [[nodiscard]] std::string bandwidth_name() const override { return op_.is(Protocol::ll) ? "chain.ll" : op_.protocol; }
  /// Nothing comes back that a rank waits for, as it does in rings of LL128.
  [[nodiscard]] std::string store_name() const override { return op_.is(Protocol::ll128) ? "simple" : op_.protocol; }
  [[nodiscard]] double reached_share() const override {
    if (!counts_traffic(op_)) return 1;
    return 1 / time_of(op_, op_.collective == Collective::reduce ? k_receive_reduce_send : k_receive_copy_send);
  }
  [[nodiscard]] std::string slice_name() const override { return op_.is(Protocol::simple) ? "chain" : op_.protocol; }

  /// Between two ranks one sends and one receives.
  [[nodiscard]] Directions directions() const override {
    return op_.num_ranks() == 2 ? Directions{1, 0, 0} : Directions{};
  }

 protected:
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.pipelined"_stem); }

 private:
  /// nccl-tests of the same time as the library.
  [[nodiscard]] bool reports_mean_of_ranks() const { return release_number(op_.context.software.nccl_version) >= 211; }
  [[nodiscard]] double hops_of_each_iteration(const Hops& hops) const {
    if (are_iterations_apart()) return is_network(hops.kind) ? 0 : std::min(hops.count, 1.0);
    const double hosts = op_.group.num_hosts;
    if (hosts <= 1) return hops.count;
    const double neighbours = is_network(hops.kind) ? std::min(hops.count, 1.0) : hops.count * 2 / hosts;
    return neighbours + (hops.count - neighbours) * (1 - 1.0 / op_.pattern.entries);
  }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_chain(const Operation& operation) { return std::make_unique<Chain>(operation); }

}  // namespace fabricast::models::nccl
