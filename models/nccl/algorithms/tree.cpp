// SPDX-License-Identifier: Apache-2.0
// Double binary tree over hosts, a chain inside each: up (reduce) and down (broadcast) in one pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"
#include "nccl/transports/transports.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

namespace {

/// Chunks that NCCL halves to, and as many of them as the tree is deep, times this, keep it from halving further.
struct HalvedChunk {
  double bytes;
  double times;
};
constexpr std::array k_halved_chunks{HalvedChunk{131072, 8}, HalvedChunk{65536, 4}, HalvedChunk{32768, 1}};

/// Threads of a warp on GPUs of NVIDIA and of AMD, and the share of a block's warps that send up with LL and LL128,
/// rounded down (NVIDIA/nccl src/device/all_reduce.h, of LL since 2.10: before, all threads send up what there is, then
/// down).
constexpr double k_warp = 32, k_amd_warp = 64, k_warps_up = 0.7;
/// Accesses of a thread to memory for a line of LL or LL128: a step of a ring and the middle of a tree have the line
/// that comes, the GPU's own buffer and the line that goes on; an end has two of them (NVIDIA/nccl
/// src/device/prims_ll.h).
constexpr double k_step_accesses = 3, k_end_accesses = 2;

class Tree : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  /// Inside one host the first chunk passes every hop alone (add_filling).
  [[nodiscard]] Work work(const Cut& cut) const override {
    if (passes_lines()) return {cut.per_channel, 0, 1};
    if (!op_.is_in_one_host()) return {cut.per_channel, first_chunk(cut), 1};
    return {cut.per_channel, op_.is(Protocol::simple) ? -cut.chunk : 0, 1};
  }

  /// Where NCCL halves the chunks of Simple (simple_chunk), more bytes may be fewer messages; here they never are.
  [[nodiscard]] double messages(const Cut& cut) const override {
    if (!op_.is(Protocol::simple) || op_.is_in_one_host()) return cut.loops;
    double most = cut.loops;
    if (!halves_chunks()) return most;
    for (const auto& one : k_halved_chunks)
      most = std::max(most, std::min(cut.per_channel / one.bytes, one.times * depth()));
    return most;
  }

  /// The bytes of a tree pass once, its first chunk waits at every hop: nothing hides it as the steps of a ring do.
  [[nodiscard]] std::string slice_name() const override { return op_.is(Protocol::simple) ? "tree" : op_.protocol; }
  [[nodiscard]] double slice(const Hops&, const Cut& cut) const override {
    return op_.is(Protocol::simple) ? slice_in_tree(cut.chunk, under_way(cut)) : cut.chunk;
  }
  /// A message is the whole chunk.
  [[nodiscard]] double message(const Hops&, const Cut& cut) const override { return cut.chunk * op_.pattern.shares; }

  /// With Simple the bytes of the first chunk are all that a hop adds (add_filling): the six hops of 4 H200 take as
  /// long with 4 KiB as with 8 B.
  [[nodiscard]] bool has_ramp() const override { return op_.is(Protocol::ll128); }

  /// With Simple the first chunk of every channel passes every hop of a tree alone, as fast as the NVLinks and the
  /// channels' thread blocks let it. LL and LL128 pass lines on as they come, but every further chunk of LL128 costs.
  void add_filling(Flow& flow, const Cut& cut) const override {
    if (op_.is(Protocol::ll)) return;
    if (op_.is(Protocol::ll128)) {
      const auto& step = op_.parameter("nccl.chunk_overhead"_stem, op_.protocol);
      add_latency(flow, {fmt::format("{:.0f} chunks", cut.loops), from_seconds((cut.loops - 1) * step.value), step.name,
                         step.source});
      return;
    }
    double hops = 0;
    for (const auto& one : op_.pattern.hops) hops += one.count;
    const auto& filling = op_.parameter("nccl.channel_bandwidth"_stem, op_.protocol);
    double rate = filling.value;
    if (op_.has_hop(TransportKind::host_memory)) rate = std::min(rate, host_memory_rate(op_).value);
    // Up and down an operation takes a ring's step in the mean; after the last hop the chunk is put down.
    rate /= 1 + time_of(op_, k_receive) / hops;
    const double reached = op_.parameter("nccl.nvlink_store_share"_stem, op_.protocol).value * op_.share;
    const auto& pattern = op_.pattern;
    if (pattern.chunk_rate > 0) {
      const double later = under_way(cut);
      rate = std::min(rate, reached / ((1 - later) / pattern.first_chunk_rate + later / pattern.chunk_rate));
    }
    add_latency(flow, {"filling the pipeline with the first chunk", from_seconds(hops * cut.chunk / rate), filling.name,
                       filling.source});
  }
  /// As in rings: of the first line of the threads that go one way a part in every hop, of further ones all once.
  [[nodiscard]] double bytes_beyond_hops(const Cut& cut, const Work& work) const override {
    const double all = ChannelAlgorithm::bytes_beyond_hops(cut, work);
    if (!passes_lines()) return all;
    double hops = 0;
    for (const auto& one : op_.pattern.hops)
      if (!is_network(one.kind)) hops += one.count;
    const double first = std::min(all, k_lines * reached_share());
    return std::max(1.0, hops) * first_line() * first * reached_share() + all - first;
  }
  /// The thread block of the root begins anew before it sends down, before 2.10.
  void add_preparation(Flow& flow) const override {
    if (!op_.is(Protocol::ll) || !is_before_new_primitives(op_)) return;
    const auto& turn = op_.context.parameters.at("nccl.tree_turn.ll.nccl2.9"_key);
    add_latency(flow, {"the root turns round", from_seconds(turn.value), turn.name, turn.source});
  }
  /// In the middle of a chain some threads of the block send up, the others down; of two ranks those of one do, while
  /// all of the root's take part. With Simple what a block reads and writes in all counts.
  [[nodiscard]] double reached_share() const override {
    if (op_.is(Protocol::simple)) {
      if (op_.num_ranks() > 2) return 1 / time_of(op_, k_receive_reduce_send + k_receive_copy_send);
      return reached_of_links() / time_of(op_, k_receive_reduce_copy_send);
    }
    // Through host memory a line waits for PCIe whatever else a thread block does.
    const bool through_host = op_.is(Protocol::ll) && op_.has_hop(TransportKind::host_memory);
    const double down = (op_.num_ranks() == 2 && !through_host ? k_end_accesses : k_step_accesses) / k_step_accesses;
    if (op_.is(Protocol::ll) && is_before_new_primitives(op_)) return 1 / (1 + down);
    return threads_down() / down * reached_of_links();
  }
  /// What goes up waits for what goes down, on links and in thread blocks.
  [[nodiscard]] const Parameter* link_share() const override {
    return &op_.parameter("nccl.tree_link_share"_stem, op_.protocol);
  }
  /// In the middle of a tree of hosts a connection sends each chunk to two, between two hosts to one.
  [[nodiscard]] double redirected_share() const override { return op_.group.num_hosts > 2 ? 0.5 : 1; }

 protected:
  [[nodiscard]] double largest_chunk(double per_channel) const override {
    if (op_.is(Protocol::ll128)) return ll128_chunk(per_channel);
    return op_.is(Protocol::simple) ? simple_chunk(per_channel) : buffer_chunk("nccl.chunk.pipelined"_stem);
  }

 private:
  /// Of a block's.
  [[nodiscard]] double threads_down() const {
    const double warp = op_.group.library == Library::rccl ? k_amd_warp : k_warp;
    return 1 - std::floor(op_.most_threads / warp * k_warps_up) * warp / op_.most_threads;
  }

  /// Of the chunks that fill a channel's tree, the share that follows the first.
  [[nodiscard]] double under_way(const Cut& cut) const {
    return ChannelAlgorithm::under_way(cut.per_channel / cut.chunk, depth());
  }

  /// Of the chain in a host and the binary tree over hosts.
  [[nodiscard]] double depth() const { return op_.num_ranks() / op_.group.num_hosts - 1 + levels(); }

  [[nodiscard]] bool halves_chunks() const {
    return op_.group.library == Library::rccl || release_number(op_.context.software.nccl_version) < 220;
  }

  /// Until 2.19 NCCL halves the chunks of a Simple tree until as many as the tree is deep are on their way, RCCL
  /// always: at least its depth of 32 KiB, four times it of 64 KiB, eight times it of 128 KiB (NVIDIA/nccl
  /// src/enqueue.cc, lastChunkSize).
  [[nodiscard]] double simple_chunk(double per_channel) const {
    double chunk = buffer_chunk("nccl.chunk.pipelined"_stem);
    if (!halves_chunks()) return chunk;
    for (const auto& least : k_halved_chunks)
      while (std::floor(per_channel / chunk) < least.times * depth() && chunk > least.bytes) chunk /= 2;
    return chunk;
  }

  /// NCCL halves the chunks of an LL128 tree until enough of them fill its pipeline (NVIDIA/nccl src/enqueue.cc,
  /// calcCollChunking).
  [[nodiscard]] double ll128_chunk(double per_channel) const {
    const double ranks_per_host = op_.num_ranks() / op_.group.num_hosts;
    const double steps = 1 + levels() + 0.1 * ranks_per_host;
    double chunk = op_.parameter("nccl.chunk.ring"_stem, op_.protocol).value;
    const auto halve = [&](double chunks, double least) {
      while (std::floor(per_channel / chunk) < steps * chunks / ranks_per_host && chunk > least) chunk /= 2;
    };
    halve(64, 131072);
    halve(16, 32768);
    return chunk;
  }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_tree(const Operation& operation) { return std::make_unique<Tree>(operation); }

}  // namespace fabricast::models::nccl
