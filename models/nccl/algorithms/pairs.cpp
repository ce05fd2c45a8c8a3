// SPDX-License-Identifier: Apache-2.0
// Send and receive between pairs of ranks: sendrecv_perf, alltoall_perf, gather_perf, scatter_perf. The root of a
// gather or scatter exchanges with all others, one way; its time is the operation's.
#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/algorithms/primitives.hpp"
#include "nccl/pair_channels.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

namespace {

/// Of one channel in a kernel of sends and receives.
constexpr int k_peers_at_once = 8;
/// Release from which the parts of a pair are equal.
constexpr int k_even_parts = 222;

class Pairs : public ChannelAlgorithm {
 public:
  using ChannelAlgorithm::ChannelAlgorithm;

  [[nodiscard]] Work work(const Cut& cut) const override {
    const double payload = bytes_of_pair();
    const double shares = op_.pattern.shares;
    const double parallel = blocks_of_pair(cut) / shares;
    if (is_counted()) return {payload / shares, 0, parallel};
    // Inside one host the rate through host memory was fitted with it.
    const bool pays_first = !op_.has_hop(TransportKind::host_memory) || !op_.is_in_one_host();
    const double first = std::min(payload, first_chunk_of_channel() * cut.pair_channels);
    const double moved = pays_first ? op_.parameter("nccl.first_chunk"_stem).value * first : 0;
    return {payload / shares, moved / shares, parallel};
  }
  /// Half of the threads send while the others receive. Of LL each half waits for its lines; of Simple they share what
  /// the thread block can move, and each moves no more than it can have on its way.
  [[nodiscard]] double reached_share() const override {
    if (op_.is(Protocol::ll) && op_.group.library == Library::nccl) return 0.5;
    if (!is_counted()) return 1;
    return std::min(1 / time_of(op_, both_ways()), half_of_threads().value / bandwidth());
  }
  /// Nothing arrives before a first chunk is sent, nothing leaves while the last is put down: what a chunk takes so,
  /// beyond the time that it takes while both go on. The links may be what limits the first, else half of the threads
  /// have the thread block to themselves. A root meets ranks that are ahead of it.
  void add_filling(Flow& flow, const Cut& cut) const override {
    if (!is_counted() || !op_.is(Protocol::simple) || is_rooted()) return;
    const double of_unit = blocks_of_pair(cut) / op_.pattern.shares;
    const auto& resources = op_.context.resources;
    const double of_links = std::min(rate_of_crossings(resources, flow), rate_of_stores(flow, {op_, *this, cut}));
    const double both = of_unit / rate_alone(resources, flow);
    const auto& half = half_of_threads();
    const double send = std::max({time_of(op_, k_send) / bandwidth(), 1 / half.value, of_unit / of_links});
    const double receive = std::max(time_of(op_, k_receive) / bandwidth(), 1 / half.value);
    const double shown = first_chunk_of_channel() * std::max(0.0, send + receive - both);
    add_latency(flow, {"first chunk sent, last put down", from_seconds(shown), half.name, half.source});
  }
  /// Channels on which one rank exchanges with all its peers.
  [[nodiscard]] double concurrent_channels() const override {
    return std::min(pair_channels() * num_peers(), std::max(32.0, static_cast<double>(op_.group.channels)));
  }
  [[nodiscard]] bool serves_peers_at_once() const override { return true; }
  [[nodiscard]] std::string bandwidth_name() const override {
    return op_.is(Protocol::simple) && !is_counted() ? "direct" : op_.protocol;
  }
  [[nodiscard]] const Parameter* link_contention() const override {
    return is_counted() && op_.is_in_one_host() && op_.is(Protocol::simple)
               ? &op_.parameter("nccl.pair_contention"_stem)
               : nullptr;
  }
  /// Chunks are counted whole.
  [[nodiscard]] bool has_ramp() const override { return !is_counted() && ChannelAlgorithm::has_ramp(); }
  [[nodiscard]] bool hides_local_work() const override { return op_.is_in_one_host(); }
  /// They go over the network in chunks of their own, from 2.12 on in quarters of them where what is sent is less than
  /// one and in halves where it is less than eight (NVIDIA/nccl src/proxy.cc): a part until 2.21, then all that a pair
  /// exchanges (src/enqueue.cc). So more bytes may be fewer messages.
  [[nodiscard]] double slice(const Hops& hops, const Cut& cut) const override {
    return std::min(bytes_of_pair(), message(hops, cut) * cut.pair_channels) / op_.pattern.shares;
  }
  [[nodiscard]] double message(const Hops&, const Cut&) const override { return std::min(part(), cut_chunk()); }
  [[nodiscard]] double messages(const Cut&) const override { return chunks(); }
  /// Of more peers than a kernel serves at once some take their turn later than others send to them. The peers that a
  /// channel serves at once share 16 slots of a buffer.
  [[nodiscard]] bool finds_late_receivers(const Cut&) const override {
    constexpr double slots = 16;
    const double others = op_.num_ranks() - op_.num_ranks() / op_.group.num_hosts;
    const double posted = std::min(k_buffer_steps, slots / std::clamp<double>(others, 1, k_peers_at_once));
    return chunks() > posted || (is_all() && op_.group.num_ranks > k_peers_at_once);
  }
  [[nodiscard]] double redirected_share() const override { return 0; }
  /// Some warps send while others receive; a root does one of both.
  [[nodiscard]] Directions directions() const override {
    return is_rooted() ? Directions{1, 0, 0} : Directions{0, 0, 1};
  }

 protected:
  [[nodiscard]] double bytes_per_channel() const override { return op_.size; }
  [[nodiscard]] double largest_chunk(double) const override { return buffer_chunk("nccl.chunk.ring"_stem); }
  [[nodiscard]] double pair_channels() const override { return std::ceil(bytes_of_pair() / part()); }

 private:
  struct Parts {
    double least = 0, largest = 0;  ///< bytes
  };

  [[nodiscard]] int release() const { return release_number(op_.context.software.nccl_version); }
  /// Of what a pair exchanges, one for each channel: before 2.13 whole buffer steps of 512 KiB, in 2.7 four of them.
  /// Between hosts a step is a chunk of the network, and no part is larger; so it is inside hosts without NVLink.
  [[nodiscard]] Parts parts() const {
    const double step = buffer_size(op_) / k_buffer_steps;
    if (op_.is(Protocol::ll) && cuts_lines_apart(op_.context.software, op_.group.library)) {
      constexpr double step_of_lines = 64.0 * 1024;
      if (!op_.is_in_one_host()) return {step_of_lines / 2, step_of_lines};
      return {step_of_lines / 8, step_of_lines * 32};
    }
    if (release() < 208) return {4 * step, 4 * step};
    if (release() < 213) return {step, 4 * step};
    if (!op_.is_in_one_host()) return {network_chunk() / (release() >= 220 ? 2 : 8), network_chunk()};
    const double least = op_.parameter("nccl.p2p_bytes_per_channel"_stem).value;
    const double largest = op_.context.parameters.at("nccl.p2p_largest_part"_key).value;
    constexpr double chunk_over_nvlink = 512.0 * 1024;
    const double share =
        release() >= 216 && !op_.has_hop(TransportKind::nvlink) ? network_chunk() / chunk_over_nvlink : 1;
    return {share * least, share * largest};
  }
  /// The most that one channel of a pair carries. A pair opens as many as have the least part, twice as many while
  /// parts are too large (NVIDIA/nccl src/enqueue.cc, addP2pToPlan). Parts are equal but for the page in which they
  /// end, until 2.21 whole least parts but for the last one.
  [[nodiscard]] double part() const {
    constexpr double page = 4096;
    const double bytes = bytes_of_pair();
    const auto channels = channels_of_pair(op_.context.software, op_.group, op_.pattern);
    const auto [least, largest] = parts();
    const bool are_even = release() >= k_even_parts;
    double used = are_even ? std::min(channels.least, std::ceil(bytes / least)) : channels.least;
    double part = std::ceil(bytes / used);
    while (std::max(part, least) > largest && used <= channels.most / 2) {
      used *= 2;
      part = std::ceil(bytes / used);
    }
    const double unit = are_even ? page : least;
    return std::min(bytes, std::ceil(part / unit) * unit);
  }
  [[nodiscard]] bool is_all() const { return has_parts(op_.collective); }
  [[nodiscard]] bool is_rooted() const {
    return op_.collective == Collective::gather || op_.collective == Collective::scatter;
  }
  /// What a thread block does with each byte is known: lines of LL, reads and writes of Simple.
  [[nodiscard]] bool is_counted() const {
    return op_.group.library == Library::nccl && (op_.is(Protocol::ll) ? passes_lines() : counts_traffic(op_));
  }
  /// Of a thread block that a ring has to itself.
  [[nodiscard]] double bandwidth() const { return op_.parameter("nccl.channel_bandwidth"_stem, op_.protocol).value; }
  [[nodiscard]] const Parameter& half_of_threads() const {
    return op_.parameter("nccl.channel_bandwidth"_stem, "half");
  }
  [[nodiscard]] Traffic both_ways() const {
    if (!is_rooted()) return k_send + k_receive;
    return op_.collective == Collective::scatter ? k_send : k_receive;
  }
  /// Thread blocks that a pair has. A rank's own part is copied by blocks of its own, as far as there are as many for
  /// all; else it takes a part of a block's threads (of LL) or of its time (of Simple, half of what a part that is
  /// exchanged takes).
  [[nodiscard]] double blocks_of_pair(const Cut& cut) const {
    const double own = !is_counted() || !is_all() ? 0 : op_.is(Protocol::simple) ? 0.5 : 1;
    const double all = channels_of_pair(op_.context.software, op_.group, op_.pattern).all;
    const double used = is_all() ? std::min(all, rounds() * cut.pair_channels) : all;
    return std::min(bytes_of_pair() / part(), used / (num_peers() + own));
  }
  /// Peers come in rounds whose channels follow each other: one after the other inside one host, between hosts up to
  /// eight of a host together, which share the channels of their round (NVIDIA/nccl src/enqueue.cc,
  /// ncclP2pChannelBaseForRound; before 2.22 ncclChannelComputeBase).
  [[nodiscard]] double rounds() const {
    const double ranks = op_.group.num_ranks;
    if (op_.is_in_one_host() || release() < 212) return ranks;
    const double hosts = op_.group.num_hosts;
    return hosts * std::ceil(ranks / hosts / k_peers_at_once);
  }
  [[nodiscard]] double network_chunk() const { return network_chunk_of_pairs(op_); }
  /// Of one channel.
  [[nodiscard]] double first_chunk_of_channel() const {
    if (!op_.is_in_one_host()) return std::min(part(), cut_chunk());
    const double chunk = op_.parameter("nccl.chunk.pipelined"_stem, op_.protocol).value;
    const bool is_small = release() >= 216 && op_.is(Protocol::simple) && !op_.has_hop(TransportKind::nvlink);
    const double step = op_.is(Protocol::simple) ? buffer_size(op_) / k_buffer_steps : chunk;
    return std::min({part(), chunk, step, is_small ? network_chunk() : chunk});
  }
  [[nodiscard]] double cut_chunk() const {
    const double whole = (release() < k_even_parts ? part() : bytes_of_pair()) / network_chunk();
    if (release() < 212 || whole >= 8) return network_chunk();
    return network_chunk() / (whole < 1 ? 4 : 2);
  }
  [[nodiscard]] double chunks() const { return std::ceil(part() / cut_chunk()); }
  [[nodiscard]] double num_peers() const { return is_all() ? op_.num_ranks() - 1 : 1; }
  [[nodiscard]] double bytes_of_pair() const { return is_all() ? op_.size / op_.num_ranks() : op_.size; }
};

}  // namespace

std::unique_ptr<ChannelAlgorithm> make_pairs(const Operation& operation) { return std::make_unique<Pairs>(operation); }

}  // namespace fabricast::models::nccl
