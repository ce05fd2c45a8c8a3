// SPDX-License-Identifier: Apache-2.0
// One HCA port as an end of traffic: the queue pairs that send from here, and what arrives here.
//   sender.cpp    queue pairs in turn, pacing, acknowledgements      receiver.cpp  arrival, order, ACK, CNP,
//   completions hca_walk.cpp  walk
#pragma once

#include <memory>
#include <vector>

#include "packet/congestion.hpp"
#include "packet/packet.hpp"
#include "packet/simulation.hpp"

namespace fabricast::packet {

struct Core;
struct Port;

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

/// Both ends of a queue pair. Queue pairs are numbered over all HCAs; the sender's part is of the Hca at `source`, the
/// receiver's of the one at `destination`.
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
  bool is_paced = false;        ///< control->is_pacing(), at hand
  std::unique_ptr<CongestionControl> control;
  // Receiver.
  std::uint32_t expected = 0;
  bool has_sent_nak = false;
  std::vector<std::uint64_t> arrived;  ///< out of order: bit per packet from `expected` on
  // Statistics.
  std::int64_t delivered = 0;
  std::int64_t sampled = 0;
  std::uint64_t packets = 0, retransmitted = 0, marked = 0, cnps = 0, timeouts = 0;
  Time first_sent = k_never, last_delivered = -1;

  /// Idle ones wait for a message, which disturbs: they are left out of walks.
  [[nodiscard]] bool is_idle() const {
    return oldest == k_none && sending == k_none && !has_pace_event && expected == end_packet;
  }
  /// Packets on their way and not yet acknowledged. The data of READs have no acknowledgement before the last one.
  [[nodiscard]] std::uint32_t unacknowledged() const { return is_response ? acknowledged : next_packet - acknowledged; }
  /// Marks packet `number` as arrived and moves `expected` past all that are here; false when it was here before.
  bool note_arrival(std::uint32_t number);
};

struct Hca {
  Core* core = nullptr;
  std::uint32_t port_id = 0;
  PacketList receiving;  ///< packets that wait for a host slower than its link; the first one is being served
  const HcaConfig* config = nullptr;

  // sender.cpp
  void update_readiness(std::uint32_t queue_pair);
  void send_next(int traffic_class);
  [[nodiscard]] std::uint32_t next_frame(int traffic_class) const;
  void on_pace(std::uint32_t queue_pair);
  void on_timeout(std::uint32_t queue_pair);
  void on_ack(std::uint32_t queue_pair, std::uint32_t number);
  std::uint32_t append_message(std::uint32_t queue_pair, const Message& message);

  // receiver.cpp
  void arrive(std::uint32_t packet);
  void on_receive_done();
  void on_message_done(std::uint32_t message);

  // hca_walk.cpp
  void walk(StateWalk& walk) const;
  void walk_pair(StateWalk& walk, std::uint32_t queue_pair) const;

 private:
  [[nodiscard]] inline Port& port() const;
  [[nodiscard]] const TransportConfig& transport() const { return config->transport; }

  [[nodiscard]] bool may_send(const QueuePairState& state) const;
  std::uint32_t make_data_packet(std::uint32_t queue_pair);
  void pace(QueuePairState& state, std::uint32_t wire_bytes);
  /// Calls `what` of the sender's congestion control. Another rate is no part of a period.
  template <class What>
  inline void react(QueuePairState& state, What what);
  [[nodiscard]] std::int64_t next_payload(const QueuePairState& state) const;
  void rewind(std::uint32_t queue_pair, std::uint32_t number);
  void ring_insert(std::uint32_t queue_pair);
  void ring_pop(int traffic_class);
  Time host_due(QueuePairState& state);
  void complete(std::uint32_t message);

  [[nodiscard]] bool passes_stages(const Packet& packet) const;
  Time end_of_receipt(const Packet& packet);
  bool take_receive_buffer(const Packet& packet);
  void process(std::uint32_t packet);
  void on_data(const Packet& packet);
  void accept(const Packet& packet);
  void accept_out_of_order(const Packet& packet);
  void count_payload(QueuePairState& state, const Packet& packet);
  void finish_message(std::uint32_t message);
  void start_read_response(std::uint32_t owner, std::uint32_t message);
  void answer(std::uint32_t queue_pair, PacketKind kind);
  void walk_numbers(StateWalk& walk, std::uint32_t queue_pair) const;
};

}  // namespace fabricast::packet
