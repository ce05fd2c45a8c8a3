// SPDX-License-Identifier: Apache-2.0
// A packet, and lists of packets. Packets are numbered and live in one table; lists run through `next` fields, so that
// moving a packet allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "packet/event_queue.hpp"

namespace fabricast::packet {

inline constexpr std::uint32_t k_none = 0xffff'ffff;
inline constexpr Time k_long_ago = -k_never / 2;

/// Payload and headers of a PAUSE or credit frame on the wire: 64 B + preamble 8 + gap 12; InfiniBand flow packet 8 B +
/// CRC.
inline constexpr std::uint32_t k_pause_wire_bytes = 84;
inline constexpr std::uint32_t k_credit_wire_bytes = 12;
/// What a cut-through switch must have of a packet before it can forward: one minimal frame.
inline constexpr std::uint32_t k_header_wire_bytes = 72;
inline constexpr std::uint32_t k_credit_block = 64;

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

/// All packets on their way.
struct PacketTable {
  std::vector<Packet> packets;
  std::uint32_t free = k_none;  ///< first of those that are given back

  Packet& operator[](std::uint32_t packet) { return packets[packet]; }
  const Packet& operator[](std::uint32_t packet) const { return packets[packet]; }
  std::uint32_t take() {
    if (free == k_none) {
      packets.emplace_back();
      return static_cast<std::uint32_t>(packets.size() - 1);
    }
    const std::uint32_t taken = free;
    free = packets[taken].next;
    packets[taken] = Packet{};
    return taken;
  }
  void give_back(std::uint32_t packet) {
    packets[packet].next = free;
    free = packet;
  }
  void append(PacketList& list, std::uint32_t packet) {
    packets[packet].next = k_none;
    if (list.head == k_none) {
      list.head = packet;
    } else {
      packets[list.tail].next = packet;
    }
    list.tail = packet;
  }
  std::uint32_t take_first(PacketList& list) {
    const std::uint32_t first = list.head;
    list.head = packets[first].next;
    return first;
  }
};

}  // namespace fabricast::packet
