// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP: the switch reduces and multicasts; between hosts (NVLSTree) every HCA carries its share up and down a
// tree, or once where the fabric's switches reduce (CollNet).
#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"

namespace fabricast::models::nccl {

namespace {

class NvlinkSharp : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  [[nodiscard]] Work work(const Cut&) const override { return {op_.size / parts(), 0, op_.channels / parts()}; }
  [[nodiscard]] bool polls_flags() const override { return false; }
  /// Of every byte: thread blocks copy it into the window in which the switch reduces and the result out of it (scatter
  /// and gather of RunWorkColl, NVIDIA/nccl src/device/all_reduce.h); those of a head do what is between.
  [[nodiscard]] double reached_share() const override {
    constexpr Traffic copy{1, 1, 0, 0};
    const int heads = op_.group.uses_collnet ? op_.group.gpus_of_host : op_.group.nvls_heads;
    return 1 / time_of(op_, (2 + copies_of_head() / heads) * copy);
  }
  [[nodiscard]] std::string store_name() const override { return has_trees() ? "nvls_tree" : "nvls"; }
  [[nodiscard]] std::string slice_name() const override { return "nvls"; }
  [[nodiscard]] double slice(const Hops&, const Cut& cut) const override {
    return has_trees() ? slice_in_tree(cut.chunk, under_way(cut.per_step / cut.chunk, levels())) : cut.chunk;
  }
  [[nodiscard]] double message(const Hops&, const Cut& cut) const override {
    return cut.chunk * parts() / chunks_at_once();
  }
  [[nodiscard]] double redirected_share() const override { return 0; }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size; }
  [[nodiscard]] double bytes_per_step(double per_channel) const override { return per_channel / parts(); }
  [[nodiscard]] double largest_chunk(double) const override {
    return op_.is_in_one_host() ? buffer_chunk("nccl.chunk.ring"_stem) : tree_chunk();
  }

 private:
  /// What a head reads and writes of its share: what the switch has reduced, and what it multicasts; between hosts also
  /// what goes up and comes down, and in the middle of a tree from and to its children, one among three hosts, two
  /// among more.
  [[nodiscard]] double copies_of_head() const {
    constexpr int in_middle = 4;
    return has_trees() ? std::min(in_middle, op_.group.num_hosts) : op_.is_in_one_host() ? 1 : 2;
  }
  [[nodiscard]] bool has_trees() const { return !op_.is_in_one_host() && !op_.group.uses_collnet; }
  /// Units of the flow in the vector: shares of heads, two of each where both its trees are used. With CollNet shares
  /// of GPUs, one of each for every channel to the network.
  [[nodiscard]] double parts() const {
    if (op_.group.uses_collnet && !op_.is_in_one_host())
      return static_cast<double>(op_.group.gpus_of_host) * op_.group.graph_channels;
    return op_.group.nvls_heads * (has_trees() ? std::min(2.0, op_.channels) : 1);
  }
  [[nodiscard]] double chunks_at_once() const { return op_.channels * op_.group.nvls_heads; }
  /// Chunks of every head's share in every channel, smaller while they would not fill the pipeline (NVIDIA/nccl
  /// src/enqueue.cc, calcCollChunking). In units of the flow.
  [[nodiscard]] double tree_chunk() const {
    constexpr double kib = 1024;
    double chunk = has_trees() ? op_.group.nvls_tree_chunk : op_.parameter("nccl.chunk.nvls"_stem).value;
    const auto shorten = [&](double passes, double bytes) {
      if (op_.size < passes * chunks_at_once() * chunk) chunk = std::min(chunk, bytes);
    };
    if (has_trees()) {
      shorten(32, 256 * kib);
      shorten(16, 128 * kib);
      shorten(4, 64 * kib);
      shorten(1, 32 * kib);
    } else {
      shorten(64, 64 * kib);
      shorten(8, 32 * kib);
      shorten(2, 16 * kib);
    }
    return chunk * chunks_at_once() / parts();
  }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_nvls(const Operation& operation) {
  return std::make_unique<NvlinkSharp>(operation);
}

}  // namespace fabricast::models::nccl
