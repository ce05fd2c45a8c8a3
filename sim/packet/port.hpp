// SPDX-License-Identifier: Apache-2.0
// One port: what it queues and sends, what it is paused by and tells its peer to pause, its credits and its counters.
// The same for ports of switches and of hosts; what comes in goes on to the Switch or the Hca that it belongs to.
//   port.cpp    set-up, arrival, walk      egress.cpp   what it sends next, transmission, ECN
//   pause.cpp   XOFF, XON, PAUSE frames    credits.cpp  InfiniBand lanes
// A field that decides what happens has a role in Port::walk too.
#pragma once

#include "packet/packet.hpp"
#include "packet/state_walk.hpp"
#include "packet/statistics.hpp"

namespace fabricast::packet {

struct Core;
struct HcaConfig;

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

/// What the numbers of credit frames count from, by lane, and how far it moves on.
struct CreditBase {
  std::array<std::uint32_t, k_num_classes> base{};
  std::array<std::uint32_t, k_num_classes> shift{};
};

/// What every packet touches is in the first cache line.
struct alignas(64) Port {
  Time free_at = 0;        ///< end of the transmission under way
  Time wake_at = k_never;  ///< earliest pending port_ready event
  Time delay = 0;
  double ps_per_byte = 0;
  PacketList wire;          ///< packets on their way to this port
  std::uint32_t owner = 0;  ///< its switch or its HCA, by number
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
  std::uint8_t expiring = 0;      ///< egress classes with a pending pause_expiry event
  Core* core = nullptr;

  PacketList pause_wire;           ///< PAUSE and credit frames on their way to this port
  PacketList control;              ///< credit frames that this port will send next
  std::uint32_t in_service = 0;    ///< credits: packets of this input being sent
  std::uint32_t serving = k_none;  ///< credits, egress: input of the packet being sent
  std::uint32_t served = k_none;   ///< the input before, when the next packet began before its input_free event
  std::uint32_t local = 0;         ///< position among the ports of its switch
  double alpha = 0;                ///< PFC threshold of this port
  std::uint64_t schedule_tag = 0;  ///< of the class sent last, for weighted sharing
  std::uint8_t refreshing = 0;     ///< ingress classes with a pending pause_refresh event

  void set_up(Core& core_of_all, std::uint32_t number);
  void use_class(int traffic_class);
  [[nodiscard]] inline std::uint32_t port_id() const;  ///< its place among all ports
  [[nodiscard]] bool is_lossless(int traffic_class) const { return (lossless >> traffic_class & 1) != 0; }
  [[nodiscard]] bool is_paused(int traffic_class) const { return (paused >> traffic_class & 1) != 0; }
  [[nodiscard]] bool is_xoff(int traffic_class) const { return (xoff >> traffic_class & 1) != 0; }
  [[nodiscard]] bool has_to_send() const { return (queued | ready | pause_due) != 0 || has_control; }
  [[nodiscard]] Time wire_time(std::uint32_t bytes) const {
    return static_cast<Time>(static_cast<double>(bytes) * ps_per_byte + 0.9999);
  }
  // Of one class, in the tables of Core.
  [[nodiscard]] inline ClassState& at(int traffic_class) const;
  [[nodiscard]] inline ClassCounters& count(int traffic_class) const;
  [[nodiscard]] inline LaneCredits& lane_of(int traffic_class) const;
  [[nodiscard]] inline bool is_starved(int traffic_class) const;
  /// Configuration that rules this link: of its switch, or of the switch at the other end of a host's link.
  [[nodiscard]] inline const SwitchConfig& config() const;
  [[nodiscard]] inline const HcaConfig& hca_config() const;

  // port.cpp
  void on_packet_arrival();
  void drop(std::uint32_t packet);
  void walk(StateWalk& walk);
  [[nodiscard]] PortStatistics statistics(int traffic_class) const;

  // egress.cpp
  void wake(Time time);
  void kick();
  void send_next();
  void enqueue(std::uint32_t packet);
  void charge_class(int traffic_class, std::uint32_t bytes);
  void mark_congestion(Packet& packet, std::int64_t queue_bytes);
  void transmit(std::uint32_t packet);

  // pause.cpp
  void decide_xoff(int traffic_class, std::uint32_t egress);
  void decide_xon(int traffic_class);
  void on_pause_arrival();
  void on_pause_expiry(int traffic_class);
  void on_pause_refresh(int traffic_class);
  [[nodiscard]] bool has_slow_pause_timers() const;

  // credits.cpp
  bool has_credit(int traffic_class, std::uint32_t frame);
  void take_credit(int traffic_class, std::uint32_t frame);
  void receive_credited(std::uint32_t packet);
  void release_credited(int traffic_class, std::uint32_t bytes);
  void send_credit(int traffic_class);

 private:
  /// Of the frames on their way to a port and of those that it will send.
  struct LaneBases {
    CreditBase coming;
    CreditBase going;
  };

  [[nodiscard]] int choose_class(unsigned eligible) const;
  unsigned ready_classes(Time& earliest);
  void send_queued(int traffic_class);
  void send_control();
  void hand_to_wire(std::uint32_t packet, Time arrival);

  void tell_pause_state(int traffic_class);
  void plan_refresh(int traffic_class);
  std::uint32_t make_pause_frame();
  [[nodiscard]] Time pause_response() const;
  void pause_class(int traffic_class);
  void resume_class(int traffic_class);
  [[nodiscard]] Time pause_time() const;

  void begin_starvation(int traffic_class);
  void end_starvation(int traffic_class);
  void consider_credit_update(int traffic_class);
  void on_credit_arrival(const Packet& packet);

  void walk_link(StateWalk& walk, const LaneBases& lanes);
  void walk_class(StateWalk& walk, int traffic_class, std::uint64_t floor);
  void walk_seldom(StateWalk& walk, int traffic_class);
  void walk_lane(StateWalk& walk, int traffic_class, LaneBases& lanes);
  [[nodiscard]] std::uint32_t event_id(int traffic_class) const {
    return port_id() * k_num_classes + static_cast<unsigned>(traffic_class);
  }
};
static_assert(sizeof(Port) == 128);

}  // namespace fabricast::packet
