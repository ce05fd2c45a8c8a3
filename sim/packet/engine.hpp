// SPDX-License-Identifier: Apache-2.0
// The engine behind Simulation: the event loop over ports, switches and HCAs, and what is asked of them together. One
// header per object, one .cpp per subject:
//   port.hpp     links and queues        egress.cpp, pause.cpp, credits.cpp, port.cpp
//   switch.hpp   buffer, routing         switch.cpp, crossbar.cpp, routes.cpp
//   hca.hpp      queue pairs             sender.cpp, receiver.cpp, hca_walk.cpp, host_stages.hpp
//   congestion.hpp  how a queue pair reacts to congestion: dcqcn.cpp
//   core.hpp     what they share
//   engine.cpp   events, samples         simulation.cpp  queue pairs and messages
//   deadlock.cpp who waits for whom      results.cpp     Results
//   trains.cpp   periods left out
#pragma once

#include "packet/core.hpp"

namespace fabricast::packet {

struct Simulation::Engine : Core {
  Engine(const Network& given, Options wanted);

  // simulation.cpp
  QueuePairId add_queue_pair(const QueuePair& queue_pair);
  MessageId post(const Message& message);
  StageId add_stage(Bandwidth rate) { return stages.add_stage(rate); }
  HostPathId add_host_path(const HostPath& path);

  // engine.cpp
  StopReason run(Time until);
  [[nodiscard]] bool is_anything_under_way() const { return unfinished_messages > 0; }
  void start_watching();

  // routes.cpp
  void set_routes(QueuePairState& state, const QueuePair& given);
  [[nodiscard]] std::uint64_t spray_cycle(const QueuePairState& state);

  // results.cpp
  [[nodiscard]] Results results() const;
  [[nodiscard]] std::vector<std::uint32_t> hops_of(const QueuePairState& state) const;

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> spray_cycles;  ///< {first, last switch}
  std::vector<std::function<void()>> timers;
  std::vector<std::uint32_t> free_timers;
  std::vector<QueueSample> queue_samples;
  std::vector<FlowSample> flow_samples;
  std::vector<std::uint64_t> sampled_bytes;  ///< [sampled queue]
  Time last_sample = 0;
  bool is_sampling = false;  ///< a sample event is pending
  bool is_watching = false;
  std::uint64_t num_events = 0;
  std::uint64_t hops_at_watch = 0, accepted_at_watch = 0;
  int futile_watches = 0;  ///< in a row: packets moved, none was accepted
  std::optional<Deadlock> deadlock;
  StopReason stop_reason = StopReason::finished;

 private:
  void fetch_ahead() const;
  void handle(Event event);
  void handle_rare(Event event);
  [[nodiscard]] bool moves_clock(Event event) const;
  void on_timer(std::uint32_t timer);
  void take_sample();

  std::uint32_t add_route(std::uint32_t from, std::uint32_t to, std::uint64_t flow, const std::vector<PortId>& given);
  void set_lanes(std::uint32_t first_hop, const std::vector<std::uint8_t>& lanes);

  // deadlock.cpp
  void watch();
  void find_deadlock(bool is_stalled);
  [[nodiscard]] std::vector<std::uint32_t> waits_for(const Port& port, int traffic_class) const;

  [[nodiscard]] std::vector<PauseInterval> open_pauses() const;
  [[nodiscard]] std::vector<PauseEdge> pause_tree() const;
  [[nodiscard]] std::vector<Victim> victims() const;

  // trains.cpp
  void look_for_train(Time until);
  [[nodiscard]] bool may_watch(std::uint32_t queue_pair) const;
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
  void walk_state(StateWalk& walk);
  void walk_events(StateWalk& walk);
  [[nodiscard]] bool is_of_state(Event event) const;
};

}  // namespace fabricast::packet
