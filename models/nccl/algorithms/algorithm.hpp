// SPDX-License-Identifier: Apache-2.0
// How NCCL's channels run an algorithm: how it cuts an operation, what a channel moves, what its own order costs. One
// class and one file each, over the edges of schedules/: ring, double binary tree, chain (broadcast, reduce), NVLink
// SHARP, CollNet, PAT, all pairs (RCCL's schedules), pairs (send and receive, all-to-all). What a hop costs: hops.cpp;
// what limits its rate: transports/. Equations: docs/models/nccl.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/parameter_name.hpp"
#include "nccl/operation.hpp"

namespace fabricast::models::nccl {

/// How an operation is cut: bytes of payload per channel, per step, per chunk.
struct Cut {
  double per_channel = 0;  ///< bytes of the operation one channel handles, a full one
  double per_step = 0;     ///< of them in one step of a ring, all in a chain or tree
  double largest_chunk = 0;
  double chunk = 0;
  double loops = 1;          ///< chunks one after the other in a step
  double paid_loops = 1;     ///< as many times the hops are paid
  double pair_channels = 1;  ///< send and receive: channels that one pair of ranks uses
};

/// Shares of a thread block's work that read host memory or write it, that do both step by step, and where other
/// threads read than write; 1 together.
struct Directions {
  double one_way = 0;
  double in_step = 1;
  double apart = 0;
};

/// What a thread block has to do, in units of one channel's flow.
struct Work {
  double payload = 0;   ///< bytes
  double moved = 0;     ///< beyond it, before or after what others do
  double parallel = 1;  ///< channels that share one unit of the flow
  double local = 0;     ///< of what is moved beyond it, bytes that stay inside the GPU
};

/// Chunks of one channel that follow each other round its ranks, and how often each passes any edge.
struct Train {
  double chunks = 1;
  double laps = 1;
};

/// Of NCCL's buffer, a message each (NCCL_STEPS).
constexpr double k_buffer_steps = 8;
/// Bytes of data in a line of LL, and in one for each of the threads that a channel has at most.
constexpr double k_line_data = 8, k_lines = 512 * k_line_data;

class ChannelAlgorithm {
 public:
  explicit ChannelAlgorithm(const Operation& operation) : op_(operation) {}
  virtual ~ChannelAlgorithm() = default;
  ChannelAlgorithm(const ChannelAlgorithm&) = delete;
  ChannelAlgorithm& operator=(const ChannelAlgorithm&) = delete;

  [[nodiscard]] Cut cut() const;
  [[nodiscard]] virtual Work work(const Cut& cut) const = 0;

  /// Bytes of payload that lie in the buffer of one connection while its steps go round.
  [[nodiscard]] virtual double buffered(const Cut& cut) const { return k_buffer_steps * cut.chunk; }
  /// That one connection over the network carries.
  [[nodiscard]] virtual double messages(const Cut& cut) const { return cut.loops; }
  /// Of them, those whose handling the hops of a chunk hold.
  [[nodiscard]] virtual double messages_of_hops(const Hops&) const { return 1; }
  /// Its chunks that are not empty.
  [[nodiscard]] virtual Train train(const Cut&) const { return {}; }
  /// They come at a receiver that has not posted for them: those of others make it late, and it stays so.
  [[nodiscard]] virtual bool finds_late_receivers(const Cut&) const { return false; }

  // Terms.
  /// Before the first hop.
  virtual void add_preparation(Flow&) const {}
  /// Until the first chunk has passed all hops, beyond what a hop costs.
  virtual void add_filling(Flow&, const Cut&) const {}
  /// Channels of a rank that start, and of which the slowest is waited for in every hop.
  [[nodiscard]] virtual double concurrent_channels() const { return op_.channels; }
  /// The first of these parameters that exists is the time from thread block to thread block while each fetches its
  /// work; none: they have it.
  [[nodiscard]] virtual std::vector<std::string> channel_start_names() const;
  /// The same of what a protocol adds to it; nothing where none of these parameters exists.
  [[nodiscard]] virtual std::vector<std::string> protocol_start_names() const { return {}; }
  /// Chunks are handed over by flags that thread blocks poll: hops take longer with larger chunks and more channels.
  [[nodiscard]] virtual bool polls_flags() const { return true; }
  /// Of those, the ones that take longer with larger chunks beyond the time that the bytes take.
  [[nodiscard]] virtual bool has_ramp() const { return !op_.is(Protocol::ll); }
  /// The algorithm whose hop this one pays.
  [[nodiscard]] virtual Algorithm hop_algorithm(const Hops&) const { return op_.choice.algorithm; }
  /// Ranks work on different iterations of those that are queued: each pays one hop, and the network is hidden.
  [[nodiscard]] virtual bool are_iterations_apart() const { return false; }
  /// Of these hops, what one of the queued operations pays.
  [[nodiscard]] virtual double paid_hops(const Hops& hops) const { return hops.count; }
  /// Share of the ranks that wait for the one message that a connection over the network carries at a time, where the
  /// hops of the network are hidden otherwise.
  [[nodiscard]] virtual double share_behind_messages() const { return 0; }
  /// Its threads serve several peers, or ranks have one each: of the kinds of hops it waits for the slowest only.
  [[nodiscard]] virtual bool serves_peers_at_once() const { return false; }

  // Rates.
  /// Last part of the name of what a thread block moves per second between GPUs.
  [[nodiscard]] virtual std::string bandwidth_name() const;
  /// What the thread block reaches of it.
  [[nodiscard]] virtual double reached_share() const { return 1; }
  /// Bytes of that work for which the thread block takes time beyond what a hop takes.
  [[nodiscard]] virtual double bytes_beyond_hops(const Cut&, const Work& work) const {
    return work.payload + work.moved;
  }
  [[nodiscard]] virtual bool hides_local_work() const { return true; }
  [[nodiscard]] virtual Directions directions() const { return {}; }
  /// Last part of `nccl.nvlink_store_share`.
  [[nodiscard]] virtual std::string store_name() const { return op_.protocol; }
  /// What it reaches of what others reach of a link; null: all.
  [[nodiscard]] virtual const Parameter* link_share() const { return nullptr; }
  [[nodiscard]] double reached_of_links() const { return link_share() != nullptr ? link_share()->value : 1; }
  /// Thread blocks come upon links when others do not, not in step: of both rates the sum of this negative power; null:
  /// the less.
  [[nodiscard]] virtual const Parameter* link_contention() const { return nullptr; }
  /// Last part of `nccl.network_store_and_forward`, and bytes of a slice.
  [[nodiscard]] virtual std::string slice_name() const { return op_.protocol; }
  [[nodiscard]] virtual double slice(const Hops&, const Cut& cut) const { return cut.chunk; }
  /// The wire is idle until a slice of what comes next is complete.
  [[nodiscard]] virtual bool waits_for_slices() const { return true; }
  /// Bytes of payload in one message over the network.
  [[nodiscard]] virtual double message(const Hops& hops, const Cut& cut) const {
    return slice(hops, cut) * op_.pattern.shares;
  }
  /// What it reaches of what the network and the threads that serve it could move; null: all.
  [[nodiscard]] virtual const Parameter* network_share() const { return nullptr; }
  /// Share of a redirected connection's rate that a channel gets; 0: it is not limited by it.
  [[nodiscard]] virtual double redirected_share() const { return 1; }

 protected:
  [[nodiscard]] virtual double bytes_per_channel() const { return op_.size / op_.channels; }
  [[nodiscard]] virtual double bytes_per_step(double per_channel) const { return per_channel; }
  [[nodiscard]] virtual double largest_chunk(double per_channel) const = 0;
  /// `kind`: ring or pipelined.
  [[nodiscard]] double buffer_chunk(ParameterStem kind) const;
  /// Lines of LL from GPU to GPU; through host memory, over TCP and of RCCL a rate is known of all bytes.
  [[nodiscard]] bool passes_lines() const;
  /// Of LL, what primitives before 2.10 took otherwise.
  [[nodiscard]] const Parameter& of_primitives(ParameterStem what) const;
  /// Of a line of every thread the share that is not in a hop.
  [[nodiscard]] double first_line() const { return of_primitives("nccl.first_line"_stem).value; }
  /// Between hosts, of the binary tree.
  [[nodiscard]] double levels() const;
  /// Of `chunks` that pass a tree of this depth, the share of those that fill it which follows the first.
  [[nodiscard]] static double under_way(double chunks, double depth);
  /// An adapter carries two channels, or trees, up and down. A chunk that is alone meets nothing of it; once as many as
  /// the tree is deep are on their way it meets all, and then the whole slice waits at the rate that a channel has.
  [[nodiscard]] static double slice_in_tree(double chunk, double under_way);
  /// The first chunk is complete before it is passed on.
  [[nodiscard]] double first_chunk(const Cut& cut) const;
  [[nodiscard]] virtual double paid_loops(double) const { return 1; }
  [[nodiscard]] virtual double pair_channels() const { return 1; }

  const Operation& op_;
};

std::unique_ptr<ChannelAlgorithm> make_algorithm(const Operation& operation);

std::unique_ptr<ChannelAlgorithm> make_ring(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_chain(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_tree(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_nvls(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_collnet(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_pat(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_all_pairs(const Operation& operation);
std::unique_ptr<ChannelAlgorithm> make_pairs(const Operation& operation);

/// An operation with its algorithm and cut: what transports are asked with.
struct Steps {
  const Operation& op;
  const ChannelAlgorithm& algorithm;
  Cut cut;
};

}  // namespace fabricast::models::nccl
