// SPDX-License-Identifier: Apache-2.0
// The engine's records. Packets, ports, classes, queue pairs and messages are numbered and live in flat tables; lists
// run through `next` fields, so that moving a packet allocates nothing. A field that decides what happens has a role in
// relative_state.cpp too.
#pragma once

#include <cstdint>
#include <vector>

#include "packet/dcqcn.hpp"
#include "packet/event_queue.hpp"
#include "packet/simulation.hpp"

namespace fabricast::packet {

inline constexpr std::uint32_t k_none = 0xffff'ffff;

enum class PacketKind : std::uint8_t { data, read_request, ack, nak, cnp, pause, credit };

struct alignas(64) Packet {
  Time time = 0;                 ///< on a wire: when it arrives; in a queue: when it may leave
  Time next_time = 0;            ///< on a wire: `time` of the packet behind, so that taking one touches one
  std::uint32_t next = k_none;   ///< in the list it is in
  std::uint32_t queue_pair = 0;  ///< PAUSE: the classes it speaks of
  std::uint32_t number = 0;      ///< packet sequence number; ACK: next expected; PAUSE: classes to pause; credit: FCCL
  std::uint32_t message = 0;
  std::uint32_t frame = 0;         ///< bytes without preamble and gap
  std::uint32_t counted = 0;       ///< bytes it takes in this node's buffer
  std::uint32_t ingress = k_none;  ///< port by which it came into this node
  std::uint32_t egress = k_none;   ///< port by which it leaves this node; credits only
  std::uint32_t route = k_none;    ///< its next egress port in the table of hops; none = chosen per packet
  std::uint32_t stride = 1;        ///< chosen per packet: packets of its queue pair until its next choice changes
  PacketKind kind = PacketKind::data;
  std::uint8_t traffic_class = 0;  ///< on a wire or in a queue: of that link; credits may change it from link to link
  std::uint8_t ingress_class = 0;  ///< credits: of the link it came in by
  std::uint8_t gap = 0;            ///< preamble and gap on the wire, bytes
  bool is_marked : 1 = false;      ///< ECN congestion experienced
  bool asks_ack : 1 = false;
  bool is_last : 1 = false;  ///< of its message
};

/// A first-in first-out list of packets.
struct PacketList {
  std::uint32_t head = k_none;
  std::uint32_t tail = k_none;
};

/// Both directions of one port; what every packet touches is in the first cache line.
struct alignas(64) PortState {
  Time free_at = 0;        ///< end of the transmission under way
  Time wake_at = k_never;  ///< earliest pending port_ready event
  Time delay = 0;
  double ps_per_byte = 0;
  PacketList wire;  ///< packets on their way to this port
  std::uint32_t node = 0;
  std::uint32_t peer = 0;
  std::uint8_t paused = 0;     ///< egress classes stopped by PAUSE
  std::uint8_t queued = 0;     ///< egress classes with packets in queues
  std::uint8_t ready = 0;      ///< host: egress classes with queue pairs that may send
  std::uint8_t xoff = 0;       ///< ingress classes that were told to stop
  std::uint8_t pause_due = 0;  ///< ingress classes whose state should be told
  std::uint8_t lossless = 0;   ///< classes
  bool is_host : 1 = false;
  bool cuts_through : 1 = false;  ///< packets that come in here leave before their end has arrived
  bool has_credits : 1 = false;   ///< the link works with credits
  bool has_control : 1 = false;   ///< `control` is not empty

  std::uint8_t expiring = 0;       ///< egress classes with a pending pause_expiry event
  std::uint8_t refreshing = 0;     ///< ingress classes with a pending pause_refresh event
  PacketList pause_wire;           ///< PAUSE and credit frames on their way to this port
  PacketList control;              ///< credit frames that this port will send next
  std::uint32_t in_service = 0;    ///< credits: packets of this input being sent
  std::uint32_t serving = k_none;  ///< credits, egress: input of the packet being sent
  std::uint32_t served = k_none;   ///< the input before, when the next packet began before its input_free event
  std::uint32_t local = 0;         ///< position among the ports of its node
  double alpha = 0;                ///< PFC threshold of this port
  std::uint64_t schedule_tag = 0;  ///< of the class sent last, for weighted sharing
};
static_assert(sizeof(PortState) == 128);

/// One class of one port, both directions; exactly two cache lines.
struct alignas(64) ClassState {
  // Egress.
  PacketList queue;
  std::uint32_t ring = k_none;  ///< host: last queue pair of the round-robin ring
  std::uint32_t root = k_none;  ///< paused: congested egress port that caused it
  std::int64_t queue_bytes = 0;
  std::int64_t max_queue = 0;
  std::uint64_t tag = 0;  ///< of weighted sharing
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_bytes = 0;
  Time paused_since = k_never;
  // Ingress.
  std::int64_t ingress = 0;      ///< bytes counted
  std::int64_t shared = 0;       ///< of these in the shared pool
  std::int64_t in_headroom = 0;  ///< of these in the headroom
  std::int64_t headroom = 0;     ///< size
  std::int64_t max_ingress = 0;
  std::int64_t at_xoff = 0;           ///< count when XOFF was decided
  std::uint32_t cause = k_none;       ///< egress queue that holds most of the count then
  std::uint32_t cause_root = k_none;  ///< where the pauses that block it come from; itself when nothing does
};
static_assert(sizeof(ClassState) == 128);

/// What is counted less often than once per packet and hop, or only for reports.
struct ClassCounters {
  std::uint64_t marked = 0;
  std::uint64_t pauses_received = 0;
  Time paused = 0;
  Time first_paused = k_never;
  Time last_paused = -1;
  Time paused_until = 0;  ///< by the timer of the last PAUSE frame
  Time starved = 0;
  Time starved_since = k_never;
  std::uint64_t pauses_sent = 0;
  std::uint64_t pause_frames = 0;
  std::int64_t max_overshoot = 0;
  std::int64_t max_headroom = 0;
  std::uint64_t dropped = 0;
  std::int64_t dropped_bytes = 0;
};

/// Credits of one lane of one port, in 64-byte blocks modulo 2^32.
struct LaneCredits {
  std::uint32_t sent = 0;      ///< FCTBS: blocks sent by this egress
  std::uint32_t limit = 0;     ///< FCCL last received
  std::uint32_t received = 0;  ///< ABR: blocks received by this ingress
  std::uint32_t granted = 0;   ///< FCCL last sent
  Time next_update = 0;
  bool is_due = false;    ///< a credit_due event is pending
  bool has_head = false;  ///< without virtual output queues: a packet of this input waits for its egress
  PacketList behind;      ///< packets behind it
};

struct SwitchState {
  const SwitchConfig* config = nullptr;
  std::int64_t shared_used = 0;
  std::int64_t pool = 0;
  std::int64_t used = 0;
  std::int64_t max_used = 0;
  std::uint32_t num_ports = 0;
  std::vector<PacketList> inputs[k_num_classes];          ///< credits: [egress x ports + ingress]
  std::vector<std::uint64_t> waiting[k_num_classes];      ///< credits: per egress a bit per ingress with packets for it
  std::uint32_t words = 0;                                ///< of 64 bits per egress in `waiting`
  std::vector<std::uint32_t> last_served[k_num_classes];  ///< credits: [egress] -> ingress served last
};

/// What a payload byte takes of a stage inside hosts.
struct StageCost {
  std::uint32_t stage = 0;
  double ps_per_byte = 0;
};

/// Into the table of costs: those of the sending end, behind them those of the receiving one.
struct HostPathState {
  std::uint32_t first = 0;
  std::uint32_t sending = 0;
  std::uint32_t receiving = 0;
};

struct MessageState {
  std::uint32_t queue_pair = 0;
  std::uint32_t next = k_none;  ///< in its queue pair
  std::uint32_t first_packet = 0;
  std::uint32_t packets = 1;
  std::uint32_t received = 0;     ///< packets, counted when out of order
  std::uint32_t parent = k_none;  ///< of the data of a READ: the READ
  std::int64_t bytes = 0;
  std::uint32_t path = 0;  ///< inside its hosts
  Verb verb = Verb::write;
  std::uint64_t tag = 0;
  Time posted = 0, start = 0, started = -1, delivered = -1, completed = -1;
};

struct QueuePairState {
  // Sender.
  std::uint32_t source = 0, destination = 0;  ///< host ports
  std::uint32_t ring_next = k_none;
  std::uint32_t next_packet = 0;   ///< number of the next packet to send
  std::uint32_t end_packet = 0;    ///< one past the last packet posted
  std::uint32_t acknowledged = 0;  ///< all below arrived
  std::uint32_t furthest = 0;      ///< one past the highest number ever sent
  std::uint32_t sending = k_none;  ///< message of next_packet
  std::uint32_t oldest = k_none;   ///< message of `acknowledged`
  std::uint32_t newest = k_none;
  std::uint32_t reads_outstanding = 0;
  std::int64_t packet_bytes = 0;  ///< payload of a full packet
  std::uint32_t window = k_none;  ///< packets
  std::uint32_t ack_every = 1;    ///< packets
  Time next_time = 0;             ///< pacing: not before
  Time host_ready = 0;            ///< when its host has handed over the next packet
  Time last_sent = 0;
  std::uint32_t last_wire = 0;  ///< bytes of the packet sent last
  Time last_progress = 0;
  bool is_in_ring = false;
  bool has_pace_event = false;
  bool has_timeout = false;
  bool has_host_packet = false;  ///< `host_ready` is of the next packet
  bool is_response = false;      ///< carries the data of READs
  std::uint8_t traffic_class = 0, ack_class = 0;
  std::uint32_t response = k_none;             ///< queue pair that carries the data of its READs
  std::uint32_t route = 0, reverse_route = 0;  ///< into the table of hops
  std::uint32_t route_hops = 0, reverse_hops = 0;
  bool has_free_route = false;  ///< data packets choose their ports one by one
  RateMachine machine;
  // Receiver.
  std::uint32_t expected = 0;
  bool has_sent_nak = false;
  Time last_cnp = -k_never / 2;
  std::vector<std::uint64_t> arrived;  ///< out of order: bit per packet from `expected` on
  // Statistics.
  std::int64_t delivered = 0;
  std::int64_t sampled = 0;
  std::uint64_t packets = 0, retransmitted = 0, marked = 0, cnps = 0, timeouts = 0;
  Time first_sent = k_never, last_delivered = -1;
};

}  // namespace fabricast::packet
