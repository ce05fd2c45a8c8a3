// SPDX-License-Identifier: Apache-2.0
// What the packet engine saw in the fabric while a row ran: pauses, buffers, drops, victims, who paused whom, time
// series. Plain text names, so that reporters need no topology. Times count from the start of the row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabricast/units.hpp"

namespace fabricast {

/// Completion of one flow of the `traffic` benchmark.
struct FlowTime {
  std::string name;
  int priority = 0;  ///< in use: PFC priority or virtual lane
  Bytes bytes;
  Duration start;
  Duration end;    ///< negative: it did not finish
  Duration alone;  ///< what it would take with nobody else on the fabric
  [[nodiscard]] Duration completion() const { return end - start; }
};

/// One priority (or virtual lane) of one port. The sending side of the link `link`, and the receiving side at `node`.
struct PortCounters {
  std::string link;  ///< "leaf0 -> spine1": the direction in which the port sends
  int priority = 0;
  bool is_lossless = false;
  Bytes sent;
  Bytes max_queue;                    ///< largest egress queue
  std::uint64_t marked_packets = 0;   ///< ECN
  std::uint64_t pauses_received = 0;  ///< XOFF that stopped this port
  Duration paused;                    ///< time stopped by PAUSE
  Duration starved;                   ///< time without credits
  std::uint64_t pauses_sent = 0;      ///< XOFF this port told its peer
  std::uint64_t pause_frames = 0;     ///< frames that told it: XOFF, its repeats, XON; or credit updates
  Bytes max_ingress;                  ///< largest count of what came in here
  Bytes headroom_used;
  Bytes headroom;
  std::uint64_t dropped_packets = 0;  ///< at this port's ingress
};

/// A flow that pauses held up although it does not cross the queue they came from.
struct VictimFlow {
  std::string flow;
  std::string paused_at;
  std::string root;
  Duration paused;
};

/// `paused` was stopped because of the egress queue `because`; `depth` pauses away from `root`.
struct PauseLink {
  std::string paused;
  std::string because;
  std::string root;
  int depth = 1;
  std::uint64_t count = 0;
};

/// One pause of an egress, or wait for credits, with the congested egress it came from.
struct PauseSpan {
  std::string link;
  int priority = 0;
  std::string root;
  Duration begin;
  Duration end;
};

struct QueuePoint {
  Duration time;
  std::string link;
  int priority = 0;
  Bytes queue;
  Bandwidth rate;
};

struct RatePoint {
  Duration time;
  std::string flow;
  Bandwidth goodput;
  Bandwidth allowed;  ///< DCQCN rate; the link's without it
};

/// How the packet engine got there; no result of it depends on this.
struct EngineWork {
  std::uint64_t events = 0;
  std::uint64_t trains = 0;         ///< events that stood for many packets
  std::uint64_t train_packets = 0;  ///< of the packets delivered, those in trains
};

struct FabricReport {
  std::string flow_control = "pfc";     ///< pfc, credits or drop
  std::vector<int> lossless;            ///< priorities that PFC protects; empty without PFC
  std::string stop = "finished";        ///< finished, time limit, interrupted, deadlock, stalled
  std::string reason;                   ///< of a deadlock or stall, for people
  std::vector<std::string> wait_cycle;  ///< egress queues that wait for each other, in order
  int operations = 1;                   ///< in a row, of which all that follows tells; see docs/models/packet-engine.md
  std::uint64_t packets = 0;            ///< data packets delivered
  std::uint64_t pauses = 0;             ///< XOFF decisions of all ports
  std::uint64_t pause_frames = 0;       ///< PAUSE frames: XOFF, repeats before `pause_time` ends, XON; 0 without PFC
  Duration paused;                      ///< of all ports together
  Duration starved;                     ///< the same: packets that waited for credits
  std::uint64_t lossless_drops = 0;     ///< an error
  std::uint64_t lossy_drops = 0;        ///< the same unless drops are meant, see unmeant_drops()
  std::uint64_t marked_packets = 0;
  std::uint64_t notifications = 0;  ///< CNPs
  std::uint64_t retransmitted = 0;
  EngineWork engine;
  std::vector<PortCounters> ports;  ///< those that sent, paused or dropped something, in port order
  std::vector<VictimFlow> victims;
  std::vector<PauseLink> pause_tree;   ///< by root, then depth
  std::vector<PauseSpan> pause_spans;  ///< with SimulateOptions::record_pauses, in the order of their ends
  std::vector<QueuePoint> queues;
  std::vector<RatePoint> rates;

  [[nodiscard]] bool is_finished() const { return stop == "finished"; }
  /// Packets lost in a priority without PFC, of a fabric that is meant to lose none.
  [[nodiscard]] std::uint64_t unmeant_drops() const { return flow_control == "drop" ? 0 : lossy_drops; }
};

}  // namespace fabricast
