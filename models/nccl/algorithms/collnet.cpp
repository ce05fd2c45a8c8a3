// SPDX-License-Identifier: Apache-2.0
// CollNetDirect: inside a host every GPU hands each other one its share (scatter), reduces what it got, sends that
// share to the network, whose switches reduce it (SHARP), and hands the result to all (broadcast).
#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

namespace {

class CollnetDirect : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  /// A unit of the flow is one channel's part of one GPU's share. Each GPU's thread blocks move the buffer twice,
  /// scatter and broadcast.
  [[nodiscard]] Work work(const Cut&) const override { return {share_of_channel(), 0, op_.channels / (2.0 * parts())}; }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size / op_.channels; }
  [[nodiscard]] double bytes_per_step(double) const override { return share_of_channel(); }
  /// Chunks of every GPU's share, smaller while they would not fill the pipeline (NVIDIA/nccl src/enqueue.cc,
  /// calcCollChunking).
  [[nodiscard]] double largest_chunk(double per_channel) const override {
    double chunk = buffer_chunk("nccl.chunk.pipelined"_stem);
    const auto halve = [&](double chunks, double least) {
      while (per_channel < chunks * op_.group.gpus_of_host * chunk && chunk > least) chunk /= 2;
    };
    halve(64, 131072);
    halve(8, 65536);
    halve(8, 32768);
    return chunk;
  }

 private:
  [[nodiscard]] double parts() const { return static_cast<double>(op_.group.gpus_of_host) * op_.group.graph_channels; }
  [[nodiscard]] double share_of_channel() const { return op_.size / parts(); }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_collnet(const Operation& operation) {
  return std::make_unique<CollnetDirect>(operation);
}

}  // namespace fabricast::models::nccl
