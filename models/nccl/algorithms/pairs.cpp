// SPDX-License-Identifier: Apache-2.0
// Send and receive between pairs of ranks: sendrecv_perf, alltoall_perf, gather_perf, scatter_perf. The root of a
// gather or scatter exchanges with all others, one way; its time is the operation's.
#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

namespace {

/// Of one channel in a kernel of sends and receives.
constexpr int k_peers_at_once = 8;

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
  /// They go over the network in chunks of their own, from 2.12 on in quarters of them where a part is less than one
  /// and in halves where it is less than eight (NVIDIA/nccl src/proxy.cc). More bytes may be fewer messages there; here
  /// they never are.
  [[nodiscard]] double slice(const Hops& hops, const Cut& cut) const override {
    return message(hops, cut) * cut.pair_channels / op_.pattern.shares;
  }
  [[nodiscard]] double message(const Hops&, const Cut& cut) const override {
    return std::min(part(cut), cut_chunk(cut));
  }
  [[nodiscard]] double messages(const Cut& cut) const override {
    const double whole = part(cut) / network_chunk();
    const double below = release() < 212 || whole < 1 ? 0 : whole < 8 ? 4 : 16;
    return std::max(chunks(cut), below);
  }
  /// Of more peers than a kernel serves at once some take their turn later than others send to them. The peers that a
  /// channel serves at once share 16 slots of a buffer.
  [[nodiscard]] bool finds_late_receivers(const Cut& cut) const override {
    constexpr double slots = 16;
    const double others = op_.num_ranks() - op_.num_ranks() / op_.group.num_hosts;
    const double posted = std::min(k_buffer_steps, slots / std::clamp<double>(others, 1, k_peers_at_once));
    return chunks(cut) > posted || (is_all() && op_.group.num_ranks > k_peers_at_once);
  }
  [[nodiscard]] double redirected_share() const override { return 0; }
  /// Some warps send while others receive; a root does one of both.
  [[nodiscard]] Directions directions() const override {
    const bool is_rooted = op_.collective == Collective::gather || op_.collective == Collective::scatter;
    return is_rooted ? Directions{1, 0, 0} : Directions{0, 0, 1};
  }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size; }
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.ring"_stem); }
  /// Channels that one pair of ranks uses (NVIDIA/nccl src/enqueue.cc, calcP2pChannelCount; before 2.14 src/group.cc,
  /// getP2pChunkSize). From 2.8 on the least number shrinks until all ranks together fit the channels there are, until
  /// 2.19 the largest until they take them four times (later that is the connection's, nccl/pairs.cpp); NCCL doubles
  /// the least while a part is too large. Broken numbers of channels, so that more bytes never take less time.
  [[nodiscard]] double pair_channels() const override {
    const double bytes = bytes_of_pair();
    double there = 1;
    const double limit = op_.group.library == Library::rccl ? 64 : 32;
    while (there < static_cast<double>(op_.group.channels) && there < limit) there *= 2;
    const double ranks = op_.group.num_ranks;
    double most = std::min<double>(there, op_.pattern.pair_channels);
    while (release() >= 208 && release() < 220 && most > 1 && most * ranks > 4 * there) most /= 2;
    double least = most;
    while (release() >= 208 && least > 1 && least * ranks > there) least /= 2;
    const auto [least_part, largest_part] = parts();
    return std::max({1.0, std::min(least, bytes / least_part), std::min(most, bytes / largest_part)});
  }

 private:
  struct Parts {
    double least = 0, largest = 0;  ///< bytes
  };

  [[nodiscard]] int release() const { return release_number(op_.context.software.nccl_version); }
  /// Of what a pair exchanges, one for each channel: before 2.13 whole buffer steps of 512 KiB, in 2.7 four of them.
  /// Between hosts a step is a chunk of the network, and no part is larger; so it is inside hosts without NVLink.
  [[nodiscard]] Parts parts() const {
    constexpr double step = 512.0 * 1024;
    if (release() < 208) return {4 * step, 4 * step};
    if (release() < 213) return {step, 4 * step};
    if (!op_.is_in_one_host()) return {network_chunk() / (release() >= 220 ? 2 : 8), network_chunk()};
    const double least = op_.parameter("nccl.p2p_bytes_per_channel"_stem).value;
    const double largest = op_.context.parameters.at("nccl.p2p_largest_part"_key).value;
    const double share = release() >= 216 && !op_.has_hop(TransportKind::nvlink) ? network_chunk() / step : 1;
    return {share * least, share * largest};
  }
  [[nodiscard]] bool is_all() const { return has_parts(op_.collective); }
  [[nodiscard]] double network_chunk() const {
    return op_.group.p2p_chunk > 0 ? op_.group.p2p_chunk : op_.parameter("nccl.p2p_network_chunk"_stem).value;
  }
  /// What one channel of a pair carries.
  [[nodiscard]] double part(const Cut& cut) const { return bytes_of_pair() / cut.pair_channels; }
  [[nodiscard]] double cut_chunk(const Cut& cut) const {
    const double whole = part(cut) / network_chunk();
    if (release() < 212 || whole >= 8) return network_chunk();
    return network_chunk() / (whole < 1 ? 4 : 2);
  }
  [[nodiscard]] double chunks(const Cut& cut) const { return std::ceil(part(cut) / cut_chunk(cut)); }
  [[nodiscard]] double num_peers() const { return is_all() ? op_.num_ranks() - 1 : 1; }
  [[nodiscard]] double bytes_of_pair() const { return is_all() ? op_.size / op_.num_ranks() : op_.size; }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_pairs(const Operation& operation) { return std::make_unique<Pairs>(operation); }

}  // namespace fabricast::models::nccl
