// SPDX-License-Identifier: Apache-2.0
// Send and receive between pairs of ranks: sendrecv_perf, alltoall_perf.
#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

namespace {

class Pairs : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  [[nodiscard]] Work work(const Cut&) const override {
    const double payload = bytes_of_pair();
    const double channels = pair_channels();
    const double chunk = std::min(payload / channels, op_.parameter("nccl.chunk.pipelined"_stem, op_.protocol).value);
    const double shares = op_.pattern.shares;
    // Inside one host the rate through host memory was fitted with it.
    const bool pays_first = !op_.has_hop(TransportKind::host_memory) || !op_.is_in_one_host();
    const double moved = pays_first ? op_.parameter("nccl.first_chunk"_stem).value * chunk * channels : 0;
    return {payload / shares, moved / shares, channels * num_peers() / shares};
  }
  /// Channels on which one rank exchanges with all its peers.
  [[nodiscard]] double concurrent_channels() const override {
    return std::min(pair_channels() * num_peers(), std::max(32.0, static_cast<double>(op_.group.channels)));
  }
  /// Every release fetches the work of send and receive.
  [[nodiscard]] std::vector<std::string> channel_start_names() const override {
    return op_.group.architecture.names_of("nccl.channel_start"_stem.text);
  }
  [[nodiscard]] bool has_one_peer() const override { return !is_all(); }
  [[nodiscard]] std::string bandwidth_name(bool) const override {
    return op_.is(Protocol::simple) ? "direct" : op_.protocol;
  }
  [[nodiscard]] bool hides_local_work() const override { return op_.is_in_one_host(); }
  /// They go over the network in chunks of their own.
  [[nodiscard]] double slice(const Hops&, const Cut& cut) const override {
    return std::min(cut.chunk, network_chunk()) / op_.pattern.shares;
  }
  [[nodiscard]] double message(const Hops&, const Cut& cut) const override {
    return std::min(bytes_of_pair() / cut.pair_channels, network_chunk());
  }
  [[nodiscard]] double messages(const Cut& cut) const override {
    return std::ceil(bytes_of_pair() / cut.pair_channels / network_chunk());
  }
  [[nodiscard]] double redirected_share() const override { return 0; }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size; }
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.ring"_stem); }
  /// Channels that one pair of ranks uses: NCCL doubles its least number while a part is larger than 32 buffer steps
  /// (4 before 2.13; 2.7 takes all there are); over the network all pairs have few (nccl/pairs.cpp), inside a host the
  /// least number shrinks until all ranks together fit the channels there are (NVIDIA/nccl src/enqueue.cc,
  /// calcP2pChannelCount; before 2.14 src/group.cc, getP2pChunkSize). A broken number of them so that more bytes never
  /// take less time.
  [[nodiscard]] double pair_channels() const override {
    const double bytes = bytes_of_pair();
    double there = 1;
    while (there < static_cast<double>(op_.group.channels) && there < 32) there *= 2;
    const double all = std::min<double>(there, op_.pattern.pair_channels);
    const auto [least_part, largest_part] = parts();
    double least = all;
    while (op_.is_in_one_host() && release() >= 208 && least > 2 && least * op_.group.num_ranks > there) least /= 2;
    while (2 * least <= all && bytes / least > largest_part) least *= 2;
    return std::max(1.0, std::min(least, bytes / least_part));
  }

 private:
  struct Parts {
    double least = 0, largest = 0;  ///< bytes
  };

  [[nodiscard]] int release() const { return release_number(op_.context.software.nccl_version); }
  /// Of what a pair exchanges, one for each channel: before 2.13 whole buffer steps of 512 KiB, in 2.7 four of them.
  [[nodiscard]] Parts parts() const {
    constexpr double step = 512.0 * 1024;
    if (release() < 208) return {4 * step, 4 * step};
    if (release() < 213) return {step, 4 * step};
    return {op_.parameter("nccl.p2p_bytes_per_channel"_stem).value,
            op_.context.parameters.at("nccl.p2p_largest_part"_key).value};
  }
  [[nodiscard]] bool is_all() const { return op_.collective == Collective::all_to_all; }
  [[nodiscard]] double network_chunk() const {
    return op_.group.p2p_chunk > 0 ? op_.group.p2p_chunk : op_.parameter("nccl.p2p_network_chunk"_stem).value;
  }
  [[nodiscard]] double num_peers() const { return is_all() ? op_.num_ranks() - 1 : 1; }
  [[nodiscard]] double bytes_of_pair() const { return is_all() ? op_.size / op_.num_ranks() : op_.size; }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_pairs(const Operation& operation) { return std::make_unique<Pairs>(operation); }

}  // namespace fabricast::models::nccl
