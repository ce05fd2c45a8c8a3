// SPDX-License-Identifier: Apache-2.0
// The engine behind Simulation: state and the events that change it. One .cpp per subject:
//   engine.cpp    set-up and event loop        egress.cpp    what a port sends next, transmission, ECN
//   ingress.cpp   switch arrival, buffer       pause.cpp     PAUSE frames, XOFF and XON, timers
//   credits.cpp   InfiniBand lanes             sender.cpp    queue pairs that send
//   receiver.cpp  host arrival, ACK, CNP       routes.cpp    paths and choices per packet
//   host_stages.cpp  what packets pass inside hosts
//   deadlock.cpp  who waits for whom           results.cpp   Results
//   trains.cpp    periods left out             relative_state.cpp  what a period must repeat
#pragma once

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "packet/event_queue.hpp"
#include "packet/simulation.hpp"
#include "packet/state.hpp"
#include "packet/state_walk.hpp"
#include "packet/time_range.hpp"
#include "packet/trains.hpp"

namespace fabricast::packet {

/// Payload and headers of a PAUSE or credit frame on the wire: 64 B + preamble 8 + gap 12; InfiniBand flow packet 8 B +
/// CRC.
inline constexpr std::uint32_t k_pause_wire_bytes = 84;
inline constexpr std::uint32_t k_credit_wire_bytes = 12;
/// What a cut-through switch must have of a packet before it can forward: one minimal frame.
inline constexpr std::uint32_t k_header_wire_bytes = 72;
inline constexpr std::uint32_t k_credit_block = 64;
/// Adaptive routing compares queues in grades of so many frames. Choices in turn leave queues of a few frames; were
/// those compared byte by byte, a flow would find free the port that it left itself, keep it for ever, and collide
/// behind it with flows of other switches. Random permutations on leaf-spines and fat trees with PFC end up to 8.9 times
/// later than alone byte by byte, 1.17 with grades of 16 KiB, 1.05 with 24, 32 and 64 KiB. 8 frames are chosen from
/// these; no vendor's figure.
inline constexpr std::int64_t k_adaptive_grade_frames = 8;
/// In the table of lanes: that of the link before.
inline constexpr std::uint8_t k_same_lane = 0xff;
inline constexpr Time k_long_ago = -k_never / 2;

struct Simulation::Engine {
  Engine(const Network& network, Options options);

  // simulation.cpp
  QueuePairId add_queue_pair(const QueuePair& queue_pair);
  MessageId post(const Message& message);
  StopReason run(Time until);
  [[nodiscard]] Results results() const;

  // engine.cpp
  void set_up_port(std::uint32_t port);
  void set_up_buffers();
  void use_class(int traffic_class);
  void fetch_ahead() const;
  void handle(Event event);
  void handle_rare(Event event);
  [[nodiscard]] bool moves_clock(Event event) const;
  void on_timer(std::uint32_t timer);
  void take_sample();
  bool is_anything_under_way() const { return unfinished_messages > 0; }
  [[nodiscard]] bool has_to_send(std::uint32_t port) const {
    const auto& state = ports[port];
    return (state.queued | state.ready | state.pause_due) != 0 || state.has_control;
  }

  // egress.cpp
  void kick(std::uint32_t port);
  void wake_at(std::uint32_t port, Time time);
  void send_next(std::uint32_t port);
  void enqueue(std::uint32_t port, std::uint32_t packet);
  int choose_class(std::uint32_t port, unsigned eligible) const;
  void charge_class(std::uint32_t port, int traffic_class, std::uint32_t bytes);
  unsigned ready_classes(std::uint32_t port, Time& earliest);
  void send_queued(std::uint32_t port, int traffic_class);
  void transmit(std::uint32_t port, std::uint32_t packet);
  void send_control(std::uint32_t port);
  void mark_congestion(std::uint32_t port, Packet& packet, std::int64_t queue_bytes);
  void hand_to_wire(std::uint32_t port, std::uint32_t packet, Time arrival);

  // ingress.cpp
  void on_packet_arrival(std::uint32_t port);
  void arrive_at_switch(std::uint32_t port, std::uint32_t packet);
  bool admit_lossless(std::uint32_t port, std::uint32_t packet, std::uint32_t egress);
  bool admit_lossy(std::uint32_t port, std::uint32_t packet, std::uint32_t egress);
  void release(std::uint32_t port, int traffic_class, std::uint32_t bytes);
  std::int64_t threshold(std::uint32_t port) const;
  void drop(std::uint32_t port, std::uint32_t packet);

  // pause.cpp
  void decide_xoff(std::uint32_t port, int traffic_class, std::uint32_t egress);
  [[nodiscard]] std::uint32_t congested_egress(std::uint32_t port, int traffic_class, std::uint32_t egress) const;
  void decide_xon(std::uint32_t port, int traffic_class);
  void tell_pause_state(std::uint32_t port, int traffic_class);
  std::uint32_t make_pause_frame(std::uint32_t port);
  [[nodiscard]] Time pause_response_of(std::uint32_t port) const;
  void on_pause_arrival(std::uint32_t port);
  void pause_class(std::uint32_t port, int traffic_class);
  void resume_class(std::uint32_t port, int traffic_class);
  void on_pause_expiry(std::uint32_t port, int traffic_class);
  void on_pause_refresh(std::uint32_t port, int traffic_class);
  Time pause_time(std::uint32_t port) const;

  // credits.cpp
  bool has_credit(std::uint32_t port, int traffic_class, std::uint32_t frame);
  void begin_starvation(std::uint32_t port, int traffic_class);
  void end_starvation(std::uint32_t port, int traffic_class);
  [[nodiscard]] std::uint32_t packets_between(std::uint32_t port, int in_lane, std::uint32_t egress, int lane) const;
  [[nodiscard]] std::pair<std::uint32_t, int> blocking_egress(std::uint32_t port, int in_lane) const;
  void take_credit(std::uint32_t port, int traffic_class, std::uint32_t frame);
  void receive_credited(std::uint32_t port, std::uint32_t packet);
  void release_credited(std::uint32_t port, int traffic_class, std::uint32_t bytes);
  void consider_credit_update(std::uint32_t port, int traffic_class);
  void send_credit(std::uint32_t port, int traffic_class);
  void on_credit_arrival(std::uint32_t port, const Packet& packet);
  void enqueue_at_input(std::uint32_t egress, std::uint32_t packet);
  void offer(std::uint32_t packet);
  std::uint32_t arbitrate(std::uint32_t egress, int traffic_class, Time& earliest);
  bool may_serve(std::uint32_t egress, int traffic_class, std::uint32_t port, std::uint32_t head, Time& earliest);
  void send_arbitrated(std::uint32_t egress, int traffic_class);
  void on_input_free(std::uint32_t egress);

  // sender.cpp
  void update_readiness(std::uint32_t queue_pair);
  bool may_send(std::uint32_t queue_pair);
  void send_from_queue_pair(std::uint32_t port, int traffic_class);
  std::uint32_t make_data_packet(std::uint32_t queue_pair);
  void pace(std::uint32_t queue_pair, std::uint32_t wire_bytes);
  std::uint32_t next_frame(std::uint32_t port, int traffic_class) const;
  [[nodiscard]] std::int64_t next_payload(const QueuePairState& state) const;
  void on_pace(std::uint32_t queue_pair);
  void on_timeout(std::uint32_t queue_pair);
  void on_ack(std::uint32_t queue_pair, std::uint32_t number);
  void rewind(std::uint32_t queue_pair, std::uint32_t number);
  void ring_insert(std::uint32_t queue_pair);
  void ring_pop(std::uint32_t port, int traffic_class);
  std::uint32_t append_message(std::uint32_t queue_pair, const Message& message);

  // host_stages.cpp
  StageId add_stage(Bandwidth rate);
  HostPathId add_host_path(const HostPath& path);
  Time pass_stages(std::uint32_t first, std::uint32_t count, double bytes, Time not_before);
  Time host_due(std::uint32_t queue_pair);

  // receiver.cpp
  void arrive_at_host(std::uint32_t port, std::uint32_t packet);
  [[nodiscard]] bool passes_stages(std::uint32_t port, const Packet& packet) const;
  Time end_of_receipt(std::uint32_t port, const Packet& packet);
  bool take_receive_buffer(std::uint32_t port, const Packet& packet);
  void on_receive_done(std::uint32_t port);
  void process(std::uint32_t port, std::uint32_t packet);
  void on_data(std::uint32_t port, const Packet& packet);
  void accept(std::uint32_t port, const Packet& packet);
  void count_payload(QueuePairState& state, const Packet& packet);
  static bool note_arrival(QueuePairState& state, std::uint32_t number);
  void accept_out_of_order(std::uint32_t port, const Packet& packet);
  void finish_message(std::uint32_t port, std::uint32_t message);
  void start_read_response(std::uint32_t queue_pair, std::uint32_t message);
  void answer(std::uint32_t port, std::uint32_t queue_pair, PacketKind kind);
  void notify_congestion(std::uint32_t port, std::uint32_t queue_pair);
  void on_message_done(std::uint32_t message);
  void complete(std::uint32_t message);

  // routes.cpp
  void set_routes(QueuePairState& state, const QueuePair& given);
  std::uint32_t add_route(std::uint32_t from, std::uint32_t to, std::uint64_t flow, const std::vector<PortId>& given);
  void set_lanes(std::uint32_t first_hop, const std::vector<std::uint8_t>& lanes);
  [[nodiscard]] int lane_on_hop(std::uint32_t hop, int traffic_class) const {
    return hop < hop_lanes.size() && hop_lanes[hop] != k_same_lane ? hop_lanes[hop] : traffic_class;
  }
  std::uint32_t next_port(std::uint32_t node, Packet& packet);
  std::uint32_t choose_port(std::uint32_t node, Packet& packet);
  [[nodiscard]] bool is_less_loaded(std::uint32_t port, std::uint32_t than, int traffic_class) const;
  [[nodiscard]] std::uint64_t spray_cycle(const QueuePairState& state);

  // deadlock.cpp
  void start_watching();
  void watch();
  void find_deadlock(bool is_stalled);
  std::vector<std::uint32_t> waits_for(std::uint32_t port, int traffic_class) const;
  [[nodiscard]] bool holds_packets_of(std::uint32_t egress, int traffic_class, std::uint32_t ingress,
                                      int in_class) const;

  // results.cpp
  void count_pause_cause(std::uint32_t paused, int traffic_class, std::uint32_t because, std::uint32_t root);
  void record_pause(std::uint32_t port, int traffic_class, std::uint32_t root, Time since);
  [[nodiscard]] std::vector<PauseInterval> open_pauses() const;
  [[nodiscard]] PortStatistics statistics_of(std::uint32_t port, int traffic_class) const;
  [[nodiscard]] std::vector<PauseEdge> pause_tree() const;
  [[nodiscard]] std::vector<Victim> victims() const;
  [[nodiscard]] std::vector<std::uint32_t> hops_of(const QueuePairState& state) const;

  // trains.cpp
  void look_for_train(Time until);
  bool may_watch(std::uint32_t queue_pair) const;
  void settle_allowance();
  [[nodiscard]] std::uint64_t key_of_state() const;
  void record_state();
  bool is_repeated();
  [[nodiscard]] bool do_sprays_repeat();
  [[nodiscard]] Time first_disturbance(Time until) const;
  [[nodiscard]] std::int64_t periods_of_messages() const;
  [[nodiscard]] std::int64_t periods_of_byte_counters() const;
  void ride(Time until);
  void leave_out(std::int64_t periods);

  // relative_state.cpp
  struct CreditBase;
  struct LaneBases;
  void walk_state(StateWalk& walk);
  void walk_pair(StateWalk& walk, std::uint32_t id);
  std::int64_t walk_machine(StateWalk& walk, QueuePairState& state);
  void walk_switches(StateWalk& walk);
  void walk_inputs(StateWalk& walk, SwitchState& memory, int lane);
  void walk_port(StateWalk& walk, std::uint32_t port);
  void walk_link(StateWalk& walk, PortState& state, const LaneBases& lanes);
  void walk_class(StateWalk& walk, std::uint32_t port, int traffic_class, std::uint64_t floor);
  void walk_seldom(StateWalk& walk, std::uint32_t port, int traffic_class);
  void walk_lane(StateWalk& walk, std::uint32_t port, int traffic_class, LaneBases& lanes);
  void walk_list(StateWalk& walk, const PacketList& list, const CreditBase* base);
  void walk_packet(StateWalk& walk, Packet& packet, const CreditBase* base);
  void walk_host_time(StateWalk& walk, Time& time) const;
  void walk_events(StateWalk& walk);
  static bool may_increase(const RateMachine& machine);
  static bool is_idle(const QueuePairState& state);
  static std::uint32_t unacknowledged(const QueuePairState& state);
  [[nodiscard]] bool may_not_notify(const QueuePairState& state) const;
  [[nodiscard]] bool has_slow_pause_timers(std::uint32_t port) const;
  [[nodiscard]] bool is_of_state(Event event) const;

  // Small helpers of the hot path.
  ClassState& at(std::uint32_t port, int traffic_class) {
    return classes[static_cast<std::size_t>(traffic_class)][port];
  }
  [[nodiscard]] const ClassState& at(std::uint32_t port, int traffic_class) const {
    return classes[static_cast<std::size_t>(traffic_class)][port];
  }
  ClassCounters& count(std::uint32_t port, int traffic_class) {
    return counters[static_cast<std::size_t>(traffic_class)][port];
  }
  [[nodiscard]] const ClassCounters& count(std::uint32_t port, int traffic_class) const {
    return counters[static_cast<std::size_t>(traffic_class)][port];
  }
  LaneCredits& lane_of(std::uint32_t port, int traffic_class) {
    return credits[static_cast<std::size_t>(traffic_class)][port];
  }
  [[nodiscard]] bool is_used(int traffic_class) const {
    return !classes[static_cast<std::size_t>(traffic_class)].empty();
  }
  const TransportConfig& transport_of(std::uint32_t host_port) const {
    return network.hca_configs[network.nodes[ports[host_port].node].config].transport;
  }
  const HcaConfig& hca_of(std::uint32_t host_port) const {
    return network.hca_configs[network.nodes[ports[host_port].node].config];
  }
  /// Configuration that rules the link of `port`: of its switch, or of the switch at the other end of a host's link.
  const SwitchConfig& config_of(std::uint32_t port) const { return *link_configs[port]; }

  static Time wire_time(const PortState& port, std::uint32_t bytes) {
    return static_cast<Time>(static_cast<double>(bytes) * port.ps_per_byte + 0.9999);
  }
  std::uint32_t take_packet() {
    if (free_packet == k_none) {
      packets.emplace_back();
      return static_cast<std::uint32_t>(packets.size() - 1);
    }
    const std::uint32_t taken = free_packet;
    free_packet = packets[taken].next;
    packets[taken] = Packet{};
    return taken;
  }
  void give_back(std::uint32_t packet) {
    packets[packet].next = free_packet;
    free_packet = packet;
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

  Network network;
  Options options;
  EventQueue events;
  Time now = 0;
  std::vector<Packet> packets;
  std::uint32_t free_packet = k_none;
  std::vector<PortState> ports;
  // By class, then port; empty for classes that no queue pair uses, so that they cost nothing.
  std::array<std::vector<ClassState>, k_num_classes> classes;
  std::array<std::vector<ClassCounters>, k_num_classes> counters;
  std::array<std::vector<LaneCredits>, k_num_classes> credits;
  std::vector<SwitchState> switches;              ///< [node]
  std::vector<const SwitchConfig*> link_configs;  ///< [port]
  SwitchConfig direct_link;                       ///< rules links between two hosts
  std::vector<QueuePairState> queue_pairs;
  std::vector<MessageState> messages;
  std::vector<std::uint32_t> hops;      ///< routes of all queue pairs, one after another
  std::vector<std::uint8_t> hop_lanes;  ///< [hop]; empty while no queue pair names lanes
  std::int64_t adaptive_grade = 1;      ///< bytes
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> spray_cycles;  ///< {first, last switch}
  std::vector<PacketList> receive_queues;  ///< [port]: at hosts slower than their links; the first one is being served
  std::vector<Time> stage_free;            ///< [stage inside hosts]: end of what it was asked for
  std::vector<double> stage_ps_per_byte;
  std::vector<StageCost> stage_costs;
  std::vector<HostPathState> host_paths{{}};
  Time host_reach = 0;  ///< longest time of a packet in a stage: what was over that long ago decides nothing
  std::vector<std::function<void()>> timers;
  std::vector<std::uint32_t> free_timers;
  std::function<void(const Completion&)> on_delivered, on_completed;
  std::map<std::array<std::uint32_t, 4>, std::uint64_t> pause_causes;  ///< {root, paused, because, class} -> times
  std::vector<QueueSample> queue_samples;
  std::vector<FlowSample> flow_samples;
  std::vector<PauseInterval> pause_intervals;
  std::vector<std::uint64_t> sampled_bytes;  ///< [sampled queue]
  Time last_sample = 0;
  bool is_sampling = false;  ///< a sample event is pending
  bool is_watching = false;
  std::uint64_t num_events = 0, packet_hops = 0, delivered_packets = 0, lossless_drops = 0, lossy_drops = 0;
  std::size_t idle_events = 0;         ///< pending events that move nothing: samples, watches, refreshes
  std::uint64_t accepted_packets = 0;  ///< in order, or new
  std::int64_t delivered_bytes = 0;    ///< payload, of all queue pairs
  std::uint64_t hops_at_watch = 0, accepted_at_watch = 0;
  int futile_watches = 0;  ///< in a row: packets moved, none was accepted
  std::uint64_t unfinished_messages = 0, finished_messages = 0;
  std::optional<Deadlock> deadlock;
  StopReason stop_reason = StopReason::finished;
  bool is_past_range = false;  ///< a queue pair has more packets than numbers
  Trains trains;
};

}  // namespace fabricast::packet
