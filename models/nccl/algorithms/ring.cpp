// SPDX-License-Identifier: Apache-2.0
// Every rank passes on n-th parts of a channel's bytes, round by round.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"
#include "schedules/algorithms.hpp"

namespace fabricast::models::nccl {

namespace {

class Ring : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  [[nodiscard]] Work work(const Cut& cut) const override {
    // Of LL a thread block's operations are alike: one more than steps.
    if (passes_lines()) return {cut.per_step * steps(), cut.per_step, 1};
    const double copied = cut.per_step * local_share();
    return {cut.per_step * steps(), copied + first_chunk(cut), 1, copied};
  }
  [[nodiscard]] double reached_share() const override { return counts_traffic(op_) ? 1 / time_of(op_, step()) : 1; }
  /// LL128 starts twice before 2.10.
  [[nodiscard]] std::vector<std::string> protocol_start_names() const override {
    if (op_.is(Protocol::ll128) && is_before_new_primitives(op_)) return channel_start_names();
    if (!op_.is(Protocol::simple)) return {};
    return op_.group.architecture.names_of("nccl.channel_start.ring"_stem.text);
  }
  /// With one GPU in every host nothing of a ring hides the network: NCCL plans a tree's hop for it from 2.23 on. It
  /// plans both the same for Simple; over plugins it is they that take the time.
  [[nodiscard]] Algorithm hop_algorithm(const Hops& hops) const override {
    const bool is_lone = is_network(hops.kind) && op_.group.num_hosts > 1 && op_.group.num_ranks == op_.group.num_hosts;
    const bool is_other = op_.is(Protocol::simple) || op_.of_adapter(hops, "plugin_latency") != nullptr;
    return is_lone && !is_other ? Algorithm::tree : Algorithm::ring;
  }
  [[nodiscard]] double messages(const Cut& cut) const override {
    return steps() * cut.loops * (op_.is(Protocol::simple) ? 2 : 1);
  }
  /// A chunk of Simple takes half of the buffer's steps.
  [[nodiscard]] double buffered(const Cut& cut) const override {
    return op_.is(Protocol::simple) ? 2 * cut.chunk : ChannelAlgorithm::buffered(cut);
  }
  /// The first send and the last receive of a loop go one way.
  [[nodiscard]] Directions directions() const override {
    const double one_way = 2 / (steps() + 1);
    return {one_way, 1 - one_way, 0};
  }
  /// Of a line for every thread a hop holds a part; each further one takes the thread block its time. (Small messages
  /// have fewer threads, whose lines take less.)
  [[nodiscard]] double bytes_beyond_hops(const Cut& cut, const Work& work) const override {
    if (!passes_lines()) return ChannelAlgorithm::bytes_beyond_hops(cut, work);
    constexpr double rounding = 1e-6;  // of what channels share
    const double further = std::max(1.0, std::ceil(cut.per_step / k_lines - rounding)) - 1;
    return steps() * first_line() * std::min(cut.per_step, k_lines) + (steps() + 1) * further * k_lines;
  }
  /// Of few bytes the first ranks' chunks hold everything: until 2.19 a chunk of LL has a line for each thread at least
  /// (NVIDIA/nccl src/collectives/device/all_reduce.h, minChunkSize), since then 16 bytes (common.h of
  /// ncclCollCbdPart).
  [[nodiscard]] Train train(const Cut& cut) const override {
    const double ranks = op_.num_ranks();
    constexpr double aligned = 16;
    const bool is_even = release_number(op_.context.software.nccl_version) >= 220;
    const double least = !op_.is(Protocol::ll) ? 1 : is_even ? aligned : op_.threads * k_line_data;
    const double chunks = is_all_reduce() ? std::clamp(std::ceil(cut.per_channel / least), 1.0, ranks) : ranks;
    return {chunks, steps() / ranks};
  }
  /// A chunk that follows another meets thread blocks that are not done with that one: beyond the way of its lines an
  /// operation takes them a moment to end and to begin.
  void add_filling(Flow& flow, const Cut& cut) const override {
    if (!op_.is(Protocol::ll)) return;
    const auto& between = of_primitives("nccl.step_overhead"_stem);
    const double laps = steps() / (op_.num_ranks() - 1);
    const double following = train(cut).chunks - 1;
    add_latency(flow, {fmt::format("{:.0f} chunks that follow another", following),
                       from_seconds(laps * following * between.value), between.name, between.source});
  }
  /// One ring keeps pace with its own steps; several come in upon threads that are not done with the step before. A
  /// slice of Simple takes two steps of the buffer.
  [[nodiscard]] bool finds_late_receivers(const Cut& cut) const override {
    return op_.channels > 1 && messages(cut) > k_buffer_steps / (op_.is(Protocol::simple) ? 2 : 1);
  }
  /// A chunk passes a network's edge in some of its steps, the edge is passed in each.
  [[nodiscard]] double messages_of_hops(const Hops& hops) const override { return hops.count; }
  /// Ring steps of Simple are two slices.
  [[nodiscard]] double slice(const Hops&, const Cut& cut) const override {
    return op_.is(Protocol::simple) ? cut.chunk / 2 : cut.chunk;
  }
  /// While the second slice of a step is on the wire, the first one of the next step arrives and is passed on.
  [[nodiscard]] bool waits_for_slices() const override { return !op_.is(Protocol::simple); }

 protected:
  [[nodiscard]] double bytes_per_step(double per_channel) const override { return per_channel / op_.num_ranks(); }
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.ring"_stem); }
  /// Later loops overlap with earlier ones: they pay a share of their hops, nothing where lines are passed on as they
  /// come.
  [[nodiscard]] double paid_loops(double loops) const override {
    if (passes_lines()) return 1;
    return 1 + (loops - 1) * op_.parameter("nccl.later_loops"_stem, op_.protocol).value;
  }

 private:
  [[nodiscard]] bool is_all_reduce() const { return op_.collective == Collective::all_reduce; }
  /// The mean one of those that send.
  [[nodiscard]] Traffic step() const {
    const double middle = op_.num_ranks() - 2;
    const auto reduced = k_send + middle * k_receive_reduce_send;
    if (op_.collective == Collective::reduce_scatter) return 1 / (middle + 1) * reduced;
    if (!is_all_reduce()) return 1 / (middle + 1) * (k_copy_send + middle * k_receive_copy_send);
    return 1 / steps() * (reduced + k_receive_reduce_copy_send + middle * k_receive_copy_send);
  }
  /// What the last rank of a chunk does, which sends nothing, in steps.
  [[nodiscard]] double local_share() const {
    if (!counts_traffic(op_)) return op_.parameter("nccl.shm_local_work"_stem, op_.protocol).value;
    const auto last = op_.collective == Collective::reduce_scatter ? k_receive_reduce_copy : k_receive;
    return time_of(op_, last) / time_of(op_, step());
  }
  [[nodiscard]] double steps() const { return schedules::ring_rounds(op_.num_ranks(), is_all_reduce() ? 2 : 1); }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_ring(const Operation& operation) { return std::make_unique<Ring>(operation); }

}  // namespace fabricast::models::nccl
