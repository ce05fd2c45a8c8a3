// SPDX-License-Identifier: Apache-2.0
// What an engine executes: a graph of nodes {delay, compute, flow}. A node starts when all nodes in its `after` have
// ended and its stream is free; flows cross resources, i.e. directed links of the topology (same number as their
// LinkId) and extra limits that are no links (plan.hpp). Programs know no time: engines do.
//
//   chain, alone: time = sum over nodes of repeat x (fixed + work + max over flows(latency + bytes / rate))
//
// where rate is the max-min fair share of the resources a flow crosses, each crossed `times` times, and at most
// rate_cap. Beside other nodes flows share, and compute on device d advances at rate 1 / (1 + s), s = sum of `slows` of
// the flow nodes active on d.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/result.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// A flow of rate r loads the resource with times x r.
struct Crossing {
  int resource = 0;
  int times = 1;

  friend bool operator==(const Crossing&, const Crossing&) = default;
};

/// One transfer between two HCAs inside a flow, for engines that move packets. `flow` picks the route as in
/// Topology::path_between_hcas (the seed included).
struct Leg {
  DeviceId from;
  DeviceId to;
  std::uint64_t flow = 0;
  int times = 1;        ///< it carries times x the flow's bytes
  bool is_tcp = false;  ///< else RDMA

  friend auto operator<=>(const Leg&, const Leg&) = default;
};

/// One fluid transfer, or several that advance in lockstep (the edges of a pipelined ring) seen as one.
struct Flow {
  double bytes = 0;                 ///< in units of the flow's own rate
  double payload = -1;              ///< of them, what must cross whatever the protocol; -1 = all
  std::vector<Crossing> crossings;  ///< sorted by resource, no resource twice
  double rate_cap = std::numeric_limits<double>::infinity();  ///< bytes/s, e.g. what one channel's thread block copies
  std::string cap_name;                                       ///< what the cap is, for --explain
  std::string cap_parameter;
  double gap_share = 0;             ///< of the time at `rate_cap`, idle gaps between messages of a connection
  std::string gap_parameter;        ///< how long such a gap is
  Duration latency;                 ///< paid before the first byte counts
  std::vector<Term> latency_terms;  ///< add up to `latency`
  std::vector<Leg> legs;            ///< its network transfers; only when PlanContext::with_legs
  std::string name;                 ///< traffic: as the table of completion times prints it
  int priority = -1;                ///< -1 = the workload's
  Duration start;                   ///< traffic: part of `latency` that is waiting for the start
};

/// What a flow waits for before it starts once more.
enum class RepeatOrder {
  barrier,  ///< all flows of the repeat before
  /// Rings: the flow before it in the list, the last one's before the first, which brings what this one sends on. Its
  /// own bytes leave in order: the transfer, not the latency, waits for the transfer of the repeat before.
  neighbour,
  /// The same by blocking send and receive: the flow before it and itself.
  blocking,
};

enum class NodeKind { delay, compute, flow };

/// Work that is done in order: nodes of a stream run one at a time in the order of Program::nodes.
struct Stream {
  std::string name;  ///< "GPU 0 compute", "GPU 0 NCCL", "proxy", "host"
  int device = -1;   ///< it computes on, of Program::num_devices; -1 = none
};

struct Node {
  NodeKind kind = NodeKind::flow;
  std::string label;
  std::vector<int> after;   ///< earlier nodes (smaller index) that must have ended
  int stream = -1;          ///< -1 = of its own
  std::vector<Term> fixed;  ///< paid once per repeat, before work or flows start (all there is of a delay)
  Duration work;            ///< compute: time alone on its device
  std::string work_name;    ///< what the work is, for terms
  std::string work_parameter;
  std::string rules;        ///< whose rules planned it, for terms that wait for it; empty = NCCL's
  std::vector<Flow> flows;  ///< flow: start together, the node ends when the last has ended
  std::int64_t repeat = 1;  ///< equal repeats, one after another by `order`
  RepeatOrder order = RepeatOrder::barrier;
  /// Flow: while its flows are active, compute on device `first` takes (1 + second) times as long.
  std::vector<std::pair<int, double>> slows;
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Stream> streams;
  int num_devices = 0;

  /// Appends a node that starts when the one before it in the list has ended; returns its index.
  int then(Node node);
  /// Appends all nodes of `other` (an operation of NCCL or MPI, without streams) as they are, the first ones after
  /// `after`, all on `stream`; returns the index of its last node. Where `other` has none, or several ends, that is a
  /// delay of no time which waits for all of them.
  int append(const Program& other, const std::vector<int>& after, int stream);
  /// Every node waits for the one before it: nothing of the program overlaps.
  [[nodiscard]] bool is_chain() const;
};

}  // namespace fabricast::models
