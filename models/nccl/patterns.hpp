// SPDX-License-Identifier: Apache-2.0
// What the channels of one algorithm cross: how often each link and limit is used while one unit of data goes round,
// and which hops a chunk makes on its critical path. Rings, chains, double binary trees, NVLink SHARP, CollNet and
// pairs.
#pragma once

#include <map>
#include <vector>

#include "nccl/connections.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Hops of one kind on the critical path of a chunk.
struct Hops {
  TransportKind kind = TransportKind::nvlink;
  double count = 0;
  Duration link_latency;          ///< of one hop: links and switches
  double whole_packet_wait = 0;   ///< of one hop: seconds per byte of its first packet, see Route
  Duration adapter_latency;       ///< of one hop: HCAs
  std::vector<Term> guest_terms;  ///< of one message: what VMs add
  DeviceId adapter;               ///< sending HCA of such a hop; value -1 inside a host
  bool lands_in_gpu = false;      ///< the receiver's buffer lies in its GPU
  int adapter_uses = 0;           ///< times all channels together cross it one way
  int duplex_uses = 0;            ///< channels that one process sends and receives over the network, when it does both
  int connection_units = 1;       ///< units of the flow that one connection over the network carries one way
  int process_uses = 0;           ///< channels that the busiest process sends and those it receives
  int process_both_ways = 0;      ///< of them, those that one of the other direction stands beside: twice the fewer
  int process_meeting = 0;        ///< of them, those whose messages meet while a chunk makes one hop
  int process_sends = 0;          ///< channels, or units of pairs, of the process that sends most
  int process_receives = 0;       ///< the same of the one that receives most
  int device_sends = 0;           ///< of pairs: units that the busiest process sends out of its GPU's memory
};

/// What a process sends and receives over the network: channels, or units of what pairs exchange.
struct ProcessUse {
  int sends = 0;
  int receives = 0;
};

/// What one algorithm does on the channels in use: hops of a chunk, and how often each resource is crossed.
struct Pattern {
  std::vector<Hops> hops;
  std::vector<Crossing> crossings;  ///< by all channels together
  std::vector<Leg> legs;            ///< of all channels, when the context asks for them
  int pair_channels = 32;           ///< send and receive: the most that a pair of ranks has
  int units = 1;                    ///< units of the flow that one channel carries: one for each queue pair's way
  int shares = 1;                   ///< send and receive: units of the flow that one pair of ranks exchanges
  int entries = 1;                  ///< rings: GPUs of the first host at which channels come in
  /// Trees: bytes/s with which a chunk passes the NVLinks beside those of the channels that take a link at the same
  /// place of their chain, and beside those of all channels; 0 without NVLinks.
  double first_chunk_rate = 0;
  double chunk_rate = 0;
};

/// Counts `more` among those of its kind, the slowest of which stands for all.
void merge_hops(std::vector<Hops>& hops, const Hops& more);
/// The same of a hop of `route`, `count` times.
void merge_hop(std::vector<Hops>& hops, const Route& route, double count, DeviceId adapter = {});

/// Hosts pass hops side by side: those of `hops` take the place of `slowest` where they take longer, the most of the
/// slowest kind.
void keep_slowest(std::vector<Hops>& slowest, std::vector<Hops> hops);

/// Sets what the proxy thread of the busiest process serves. `both_ways_cost`: what a thread that sends and receives
/// needs for a byte, over one that does one of both; `is_chain`: operations of several iterations overlap.
void set_process_uses(const std::map<int, ProcessUse>& processes, double both_ways_cost, bool is_chain, Hops& hops);

/// The flow, by whose number a fabric picks among equal ways, of one queue pair of a connection.
std::uint64_t flow_of_queue_pair(std::uint64_t flow, int queue_pair);

/// True for connections that leave the host or go through a socket.
bool is_network(TransportKind kind);

/// Send-receive, all-to-all, gather and scatter: pairs of ranks instead of channels.
bool is_peer_to_peer(Collective collective);
/// Of these, the ones whose buffer has a part for every rank.
bool has_parts(Collective collective);

/// Makes patterns over the channels of one communicator.
class PatternMaker {
 public:
  PatternMaker(const PlanContext& context, Collective collective, const std::vector<DeviceId>& ranks,
               const std::vector<HostGroup>& hosts, const ChannelGraph& graph, DeviceId root, Buffers buffers,
               int queue_pairs = 1)
      : context_(context),
        collective_(collective),
        ranks_(ranks),
        hosts_(hosts),
        graph_(graph),
        root_(root),
        queue_pairs_(queue_pairs),
        connections_(context, buffers, hosts) {}

  /// The pattern of `algorithm` on the first `channels` channels.
  /// `uses_collnet`: the fabric's switches reduce what NVLink SHARP sends between hosts.
  [[nodiscard]] Pattern make(Algorithm algorithm, std::size_t channels, bool uses_collnet = false) const;

 private:
  void count_ring(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_tree(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_nvls(std::size_t channels, bool uses_collnet, Pattern& pattern, CrossingCounter& counter) const;
  void count_port(const HostGroup& host, DeviceId gpu, int times, CrossingCounter& counter) const;
  void count_reducing_switches(Pattern& pattern, CrossingCounter& counter) const;
  void count_pat(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_collnet(Pattern& pattern, CrossingCounter& counter) const;
  class PairCounter;
  void count_pairs(Pattern& pattern, CrossingCounter& counter) const;  // pairs.cpp
  /// A tree over the hosts.
  struct Tree {
    std::vector<NetworkEnd> ends;  ///< [host] what sends and receives
    bool is_second = false;        ///< of the two that complement each other
  };
  using Trees = std::vector<Tree>;
  [[nodiscard]] Trees trees_of(Algorithm algorithm, std::size_t channels) const;
  void count_trees(const Trees& trees, Pattern& pattern, CrossingCounter& counter) const;
  class ChunkCounter;
  /// In the ring of a channel.
  struct Place {
    std::size_t host = 0, position = 0;
  };
  [[nodiscard]] Route count_hop(std::size_t channel, const Place& from, const Place& to, Pattern& pattern,
                                CrossingCounter& counter) const;
  Route count_between(const NetworkEnd& from, const NetworkEnd& to, std::uint64_t flow, int times, Pattern& pattern,
                      CrossingCounter& counter) const;
  void count_inside(const Route& route, Pattern& pattern, CrossingCounter& counter) const;
  void count_adapter_uses(Pattern& pattern) const;
  struct Processes {
    std::map<int, ProcessUse> uses;
    int meeting = 0;  ///< of trees: Hops::process_meeting
  };
  [[nodiscard]] Processes processes_of_rings(Algorithm algorithm, std::size_t channels) const;
  [[nodiscard]] Processes processes_of_trees(const Trees& trees) const;
  void count_process_uses(Algorithm algorithm, std::size_t channels, Pattern& pattern) const;

  const PlanContext& context_;
  Collective collective_;
  const std::vector<DeviceId>& ranks_;
  const std::vector<HostGroup>& hosts_;
  const ChannelGraph& graph_;
  DeviceId root_;    ///< of broadcast, reduce, gather and scatter
  int queue_pairs_;  ///< of a connection between hosts, each with its own way through the fabric
  mutable Connections connections_;
};

}  // namespace fabricast::models::nccl
