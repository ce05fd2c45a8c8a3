// SPDX-License-Identifier: Apache-2.0
// One switch: its buffer, its routing, and the crossbar of switches that work with credits.
//   switch.cpp   arrival, buffer accounting, who is to blame, walk
//   crossbar.cpp input queues and their arbitration (credits)      routes.cpp   the way on
#pragma once

#include <utility>
#include <vector>

#include "packet/network.hpp"
#include "packet/packet.hpp"
#include "packet/state_walk.hpp"

namespace fabricast::packet {

struct Core;
struct Port;
struct SwitchConfig;

struct Switch {
  Core* core = nullptr;
  const SwitchConfig* config = nullptr;
  const std::vector<PortId>* ports = nullptr;
  std::uint32_t node = 0;
  std::uint32_t num_ports = 0;
  std::uint32_t words = 0;  ///< of 64 bits per egress in `waiting`
  // Buffer, bytes.
  std::int64_t shared_used = 0;
  std::int64_t pool = 0;
  std::int64_t used = 0;
  std::int64_t max_used = 0;
  // Crossbar of credits, by lane.
  std::vector<PacketList> inputs[k_num_classes];          ///< [egress x ports + ingress]
  std::vector<std::uint64_t> waiting[k_num_classes];      ///< per egress a bit per ingress with packets for it
  std::vector<std::uint32_t> last_served[k_num_classes];  ///< [egress] -> ingress served last

  void set_up(Core& core_of_all, std::uint32_t number);
  void arrive(Port& port, std::uint32_t packet);
  void count(std::int64_t bytes) {
    used += bytes;
    if (used > max_used) max_used = used;
  }
  void release(Port& port, int traffic_class, std::uint32_t counted);
  void walk(StateWalk& walk);
  /// The egress queue with the most bytes that came in by `port`.
  [[nodiscard]] std::uint32_t congested_egress(const Port& port, int traffic_class, std::uint32_t egress) const;

  // crossbar.cpp
  [[nodiscard]] std::pair<std::uint32_t, int> blocking_egress(const Port& port, int in_lane) const;
  std::uint32_t arbitrate(Port& egress, int traffic_class, Time& earliest) const;
  void send_arbitrated(Port& egress, int traffic_class);
  void on_input_free(Port& egress);
  /// Whether a packet that came in by `ingress` in `in_class` waits in an egress queue.
  [[nodiscard]] bool holds_packets_of(const Port& egress, int traffic_class, const Port& ingress, int in_class) const;

 private:
  [[nodiscard]] std::int64_t threshold(const Port& port) const;
  bool admit_lossless(Port& port, std::uint32_t packet, std::uint32_t egress);
  bool admit_lossy(Port& port, std::uint32_t packet, std::uint32_t egress);
  void walk_inputs(StateWalk& walk, int lane);

  [[nodiscard]] std::uint32_t packets_between(const Port& port, int in_lane, const Port& egress, int lane) const;
  void enqueue_at_input(std::uint32_t egress, std::uint32_t packet);
  void offer(std::uint32_t packet);
  bool may_serve(Port& egress, int traffic_class, const Port& port, std::uint32_t head, Time& earliest) const;

  // routes.cpp
  std::uint32_t next_port(Packet& packet) const;
  std::uint32_t choose_port(Packet& packet) const;
  [[nodiscard]] bool is_less_loaded(std::uint32_t port, std::uint32_t than, int traffic_class) const;
};

}  // namespace fabricast::packet
