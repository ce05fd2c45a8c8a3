// SPDX-License-Identifier: Apache-2.0
// The packet engine: an event loop in integer picoseconds over a Network. Two runs with the same input give the same
// bytes.
//
//   Simulation simulation(network, options);            // network must have passed validate()
//   const auto qp = simulation.add_queue_pair({.source = a, .destination = b, .traffic_class = 3});
//   simulation.post({.queue_pair = qp, .bytes = 2_MiB});
//   simulation.on_delivered([&](const Completion& c) { ... simulation.post(next step of a collective) ... });
//   simulation.run();
//   Results results = simulation.results();
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "packet/network.hpp"
#include "packet/statistics.hpp"

namespace fabricast::packet {

enum class RoutingMode {
  ecmp,      ///< one of the equal-cost ports per queue pair, by a hash of queue pair, switch and seed
  spray,     ///< a port per packet, each queue pair in turn; needs out_of_order receivers
  adaptive,  ///< the same, but a port of a shorter queue (in grades) goes first; needs out_of_order receivers
};

/// How far a run is.
struct Progress {
  Duration now;
  std::uint64_t finished_messages = 0;
  Bytes delivered;  ///< payload
};

struct Options {
  RoutingMode routing = RoutingMode::ecmp;
  std::uint64_t seed = 1;      ///< ECMP hashes, first turns of sprayed queue pairs, and ECN marks
  bool shortcuts = true;       ///< fewer events with the same results; off only to test that
  Duration sample_interval{};  ///< 0 = no time series
  std::vector<PortClass> sampled_queues;
  bool sample_flows = false;
  bool record_pauses = false;                 ///< fills Results::pause_intervals
  std::size_t max_samples = 1'000'000;        ///< memory bound of each series; sampling stops there
  Duration deadlock_interval{1'000'000'000};  ///< how often a cycle of waiting queues is looked for
  const std::atomic<bool>* stop = nullptr;    ///< raise it to interrupt run(); results() then has what happened so far
  std::uint64_t progress_events = 1 << 20;    ///< events between two calls of `progress` and two looks at `stop`
  std::function<void(const Progress&)> progress;
};

/// A connection between two HCA ports, with its own packet numbers, window and DCQCN state.
struct QueuePair {
  PortId source{};       ///< port of a host: initiator
  PortId destination{};  ///< port of another host
  int traffic_class = 3;
  /// Egress ports to the destination, from a switch's to the last switch's, when the route is not the engine's to
  /// choose (the host's own port is implied). Empty = routing mode of the options.
  std::vector<PortId> route;
  std::vector<PortId> reverse_route;  ///< the same for acknowledgements, CNPs and READ data
  /// Credits: virtual lane on each link of `route` and of `reverse_route`; empty = the class all the way. Rings of
  /// links stay free of deadlock when packets change lanes on their way round.
  std::vector<std::uint8_t> lanes;
  std::vector<std::uint8_t> reverse_lanes;
};

/// Something inside hosts that moves one packet at a time: a PCIe link, a memory, what one connection reaches.
enum class StageId : std::uint32_t {};

/// Every payload byte takes `times` bytes of the stage.
struct StageUse {
  StageId stage{};
  double times = 1;
};

/// Stages that a message's packets pass before they leave their host, and before they are in memory at the other end.
struct HostPath {
  std::vector<StageUse> send;
  std::vector<StageUse> receive;
};

/// The one that add_host_path() need not make: hosts never slower than their links.
enum class HostPathId : std::uint32_t { none = 0 };

enum class Verb { write, send, read };  ///< write and send differ only in what they mean to the reader of a report

/// `bytes` from the queue pair's source to its destination (READ: from destination to source), after all messages
/// posted before on the same queue pair. Zero bytes are one packet without payload.
struct Message {
  QueuePairId queue_pair{};
  Bytes bytes;
  Verb verb = Verb::write;
  Duration start{};       ///< not before this time
  std::uint64_t tag = 0;  ///< the caller's; handed back with completions
  HostPathId path{};      ///< READ: of the data, from destination to source
};

struct Completion {
  MessageId message{};
  std::uint64_t tag = 0;
  Duration time;
};

class Simulation {
 public:
  explicit Simulation(const Network& network, Options options = {});
  ~Simulation();
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;

  QueuePairId add_queue_pair(const QueuePair& queue_pair);

  /// Stages serve whoever asks first, and a queue pair has one packet waiting and one on its way through its stages: so
  /// queue pairs that have something to send share a stage, by turns, at every moment.
  StageId add_stage(Bandwidth rate);
  HostPathId add_host_path(const HostPath& path);
  /// Takes the sending stages of `path` for bytes that do not go on the wire; when they have passed.
  Duration pass(HostPathId path, double bytes);

  /// May be called from the handlers below; a start time in the past means now.
  MessageId post(const Message& message);

  /// Called when the last byte of a message is in the receiver's memory: the place for dependencies of collectives.
  void on_delivered(std::function<void(const Completion&)> handler);
  /// Called when the initiator knows that a message is done.
  void on_completed(std::function<void(const Completion&)> handler);
  /// Calls `handler` at `time` (a pure delay such as computation).
  void at(Duration time, std::function<void()> handler);

  /// Runs until nothing is left, `until` (at most 53 days), an interruption, or a deadlock; may be called again with a
  /// later `until`.
  StopReason run(Duration until = Duration{range::k_past_range});

  [[nodiscard]] Duration now() const;
  /// Egress ports that packets of `queue_pair` take in ECMP mode, the host's port first.
  [[nodiscard]] std::vector<PortId> route(QueuePairId queue_pair) const;
  [[nodiscard]] Results results() const;

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace fabricast::packet
