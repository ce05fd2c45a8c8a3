// SPDX-License-Identifier: Apache-2.0
// What a packet simulation tells: completion times, pauses per port and class, buffers, drops, victims, the pause tree,
// time series, and who waits for whom when nothing moves. All of it is filled by Simulation::results().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "packet/network.hpp"

namespace fabricast::packet {

enum class QueuePairId : std::uint32_t {};
enum class MessageId : std::uint32_t {};
constexpr std::uint32_t index(QueuePairId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(MessageId id) { return static_cast<std::uint32_t>(id); }

/// A class on one side of a port.
struct PortClass {
  PortId port{};
  std::uint8_t traffic_class = 0;
  bool operator==(const PortClass&) const = default;
};

/// Counters of one class of one port.
struct PortStatistics {
  // Egress side: what this port sends.
  std::uint64_t sent_packets = 0;
  Bytes sent;       ///< on the wire, with gaps
  Bytes max_queue;  ///< largest egress queue
  std::uint64_t marked_packets = 0;
  std::uint64_t pauses_received = 0;  ///< XOFF that began a pause here
  Duration paused;                    ///< time this class could not send because of PAUSE
  Duration starved;                   ///< time a packet waited here for credits
  // Ingress side: what this port receives.
  std::uint64_t pauses_sent = 0;   ///< XOFF decisions (refreshes not counted)
  std::uint64_t pause_frames = 0;  ///< PAUSE frames on the wire: XOFF, refreshes and XON
  Bytes max_ingress;               ///< largest count of this ingress class
  Bytes max_overshoot;             ///< largest growth of the count after an XOFF decision
  Bytes max_headroom;              ///< largest part counted in the headroom
  Bytes headroom;                  ///< what was configured or derived
  std::uint64_t dropped_packets = 0;
  Bytes dropped;
  bool is_lossless = false;  ///< dropped_packets > 0 is then an error
};

/// One message. Times are negative until they happened.
struct MessageResult {
  MessageId message{};
  QueuePairId queue_pair{};
  std::uint64_t tag = 0;
  Bytes bytes;
  Duration posted{-1};
  Duration started{-1};    ///< its first packet began to leave
  Duration delivered{-1};  ///< its last byte was in the receiver's memory
  Duration completed{-1};  ///< the initiator knows (last acknowledgement, or the data of a READ)
};

struct QueuePairResult {
  Bytes delivered;            ///< payload, in order
  std::uint64_t packets = 0;  ///< data packets received in order
  std::uint64_t retransmitted = 0;
  std::uint64_t marked = 0;  ///< data packets that arrived marked
  std::uint64_t cnps = 0;    ///< received by the sender
  Bandwidth rate;            ///< current DCQCN rate; the link's without DCQCN
};

/// A flow that was paused, or waited for credits, although it crosses none of the queues that were the roots of that.
struct Victim {
  QueuePairId queue_pair{};
  PortClass paused_at;  ///< egress on its path with the longest pause during its life
  PortClass root;       ///< congested egress queue that caused the most of these pauses
  Duration paused;      ///< how long that egress was paused
};

/// One edge of the pause tree: `paused` (an egress) was paused by its peer because of `because`, an egress queue of the
/// peer. `because` is itself paused unless it is the `root`. `depth` = hops of pauses from the root (1 = its
/// neighbours).
struct PauseEdge {
  PortClass paused;
  PortClass because;
  PortClass root;
  int depth = 1;
  std::uint64_t count = 0;
};

/// A sample of an egress queue and what it sent since the previous sample.
struct QueueSample {
  Duration time;
  PortClass where;
  Bytes queue;
  Bandwidth rate;
};

/// A sample of what a queue pair delivered since the previous sample, and the rate it may send at.
struct FlowSample {
  Duration time;
  QueuePairId queue_pair{};
  Bandwidth goodput;
  Bandwidth allowed;
};

/// One pause of an egress class, or wait for credits with a known cause, for traces; recorded when it ends.
struct PauseInterval {
  PortClass paused;
  PortId root{};  ///< congested egress port it came from
  Duration begin;
  Duration end;
};

/// Why nothing more happened. `cycle` lists egress queues that wait for each other, each for the next, the last for the
/// first; empty when flows are stuck for another reason, which `reason` tells.
struct Deadlock {
  Duration time;
  std::vector<PortClass> cycle;
  std::vector<QueuePairId> stuck;
  std::string reason;
};

enum class StopReason {
  finished,     ///< all messages done
  time_limit,   ///< `until` reached
  interrupted,  ///< the stop flag was raised
  deadlock,     ///< a cycle of queues that wait for each other
  stalled,      ///< no cycle, but no flow can progress
  past_range,   ///< a queue pair has more than 2^31 packets
};

struct Results {
  StopReason stop = StopReason::finished;
  Duration now;
  std::uint64_t events = 0;
  std::uint64_t packet_hops = 0;        ///< packets that left a port
  std::uint64_t delivered_packets = 0;  ///< data packets that reached their host
  std::uint64_t trains = 0;             ///< times that periods of packets were one event
  std::uint64_t train_packets = 0;      ///< of the delivered packets, those in trains
  std::uint64_t lossless_drops = 0;
  std::uint64_t lossy_drops = 0;
  std::vector<std::array<PortStatistics, k_num_classes>> ports;  ///< [port][class]
  std::vector<Bytes> max_switch_buffer;                          ///< [node]
  std::vector<MessageResult> messages;                           ///< in the order posted
  std::vector<QueuePairResult> queue_pairs;  ///< [queue pair]; the data of READs have further entries of their own
  std::vector<PauseEdge> pause_tree;         ///< by root, then depth
  std::vector<Victim> victims;
  std::vector<QueueSample> queue_samples;
  std::vector<FlowSample> flow_samples;
  /// In the order of their ends, with Options::record_pauses; those that last end now.
  std::vector<PauseInterval> pause_intervals;
  std::optional<Deadlock> deadlock;
};

}  // namespace fabricast::packet
