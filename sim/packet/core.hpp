// SPDX-License-Identifier: Apache-2.0
// What ports, switches and HCAs share: the clock, the pending events, the packets, each other, and what is counted over
// all of them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "packet/event_queue.hpp"
#include "packet/hca.hpp"
#include "packet/host_stages.hpp"
#include "packet/port.hpp"
#include "packet/simulation.hpp"
#include "packet/switch.hpp"
#include "packet/time_range.hpp"
#include "packet/trains.hpp"

namespace fabricast::packet {

/// Adaptive routing compares queues in grades of so many frames. Choices in turn leave queues of a few frames; were
/// those compared byte by byte, a flow would find free the port that it left itself, keep it for ever, and collide
/// behind it with flows of other switches. Random permutations on leaf-spines and fat trees with PFC end up to 8.9
/// times later than alone byte by byte, 1.17 with grades of 16 KiB, 1.05 with 24, 32 and 64 KiB. 8 frames are chosen
/// from these; no vendor's figure.
inline constexpr std::int64_t k_adaptive_grade_frames = 8;
/// In the table of lanes: that of the link before.
inline constexpr std::uint8_t k_same_lane = 0xff;

struct Core {
  Core(const Network& given, Options wanted);

  Network network;
  Options options;
  EventQueue events;
  Time now = 0;
  PacketTable packets;
  std::vector<Port> ports;
  std::vector<Switch> switches;  ///< [node]; without a config at hosts
  std::vector<Hca> hcas;         ///< one per port of a host
  // By class, then port; empty for classes that no queue pair uses, so that they cost nothing.
  std::array<std::vector<ClassState>, k_num_classes> classes;
  std::array<std::vector<ClassCounters>, k_num_classes> counters;
  std::array<std::vector<LaneCredits>, k_num_classes> credits;
  std::vector<const SwitchConfig*> link_configs;  ///< [port]
  SwitchConfig direct_link;                       ///< rules links between two hosts
  std::vector<QueuePairState> queue_pairs;
  std::vector<MessageState> messages;
  std::vector<std::uint32_t> hops;      ///< routes of all queue pairs, one after another
  std::vector<std::uint8_t> hop_lanes;  ///< [hop]; empty while no queue pair names lanes
  std::int64_t adaptive_grade = 1;      ///< bytes
  HostStages stages;
  std::function<void(const Completion&)> on_delivered, on_completed;
  std::map<std::array<std::uint32_t, 4>, std::uint64_t> pause_causes;  ///< {root, paused, because, class} -> times
  std::vector<PauseInterval> pause_intervals;
  std::uint64_t packet_hops = 0, delivered_packets = 0, lossless_drops = 0, lossy_drops = 0;
  std::uint64_t accepted_packets = 0;  ///< in order, or new
  std::int64_t delivered_bytes = 0;    ///< payload, of all queue pairs
  std::size_t idle_events = 0;         ///< pending events that move nothing: samples, watches, refreshes
  std::uint64_t unfinished_messages = 0, finished_messages = 0;
  bool is_past_range = false;  ///< a queue pair has more packets than numbers
  Trains trains;

  void use_class(int traffic_class);
  [[nodiscard]] bool is_used(int traffic_class) const {
    return !classes[static_cast<std::size_t>(traffic_class)].empty();
  }
  Hca& hca_of(std::uint32_t host_port) { return hcas[ports[host_port].owner]; }
  [[nodiscard]] const Hca& hca_of(std::uint32_t host_port) const { return hcas[ports[host_port].owner]; }
  [[nodiscard]] const TransportConfig& transport_of(std::uint32_t host_port) const {
    return hca_of(host_port).config->transport;
  }
  [[nodiscard]] int lane_on_hop(std::uint32_t hop, int traffic_class) const {
    return hop < hop_lanes.size() && hop_lanes[hop] != k_same_lane ? hop_lanes[hop] : traffic_class;
  }
  void count_pause_cause(const Port& paused, int traffic_class, std::uint32_t because, std::uint32_t root);
  void record_pause(const Port& port, int traffic_class, std::uint32_t root, Time since);

  /// `base`: for lists that may hold credit frames.
  void walk_list(StateWalk& walk, const PacketList& list, const CreditBase* base);

 private:
  void walk_packet(StateWalk& walk, Packet& packet, const CreditBase* base);
};

inline std::uint32_t Port::port_id() const { return static_cast<std::uint32_t>(this - core->ports.data()); }
inline ClassState& Port::at(int traffic_class) const {
  return core->classes[static_cast<std::size_t>(traffic_class)][port_id()];
}
inline ClassCounters& Port::count(int traffic_class) const {
  return core->counters[static_cast<std::size_t>(traffic_class)][port_id()];
}
inline LaneCredits& Port::lane_of(int traffic_class) const {
  return core->credits[static_cast<std::size_t>(traffic_class)][port_id()];
}
inline bool Port::is_starved(int traffic_class) const {
  return has_credits && count(traffic_class).starved_since != k_never;
}
inline const SwitchConfig& Port::config() const { return *core->link_configs[port_id()]; }
inline const HcaConfig& Port::hca_config() const { return *core->hcas[owner].config; }
inline Port& Hca::port() const { return core->ports[port_id]; }
template <class What>
inline void Hca::react(QueuePairState& state, What what) {
  const double before = state.control->rate();
  what(*state.control);
  state.is_paced = state.control->is_pacing();
  if (state.control->rate() != before) core->trains.disturb();
}

}  // namespace fabricast::packet
