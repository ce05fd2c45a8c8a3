// SPDX-License-Identifier: Apache-2.0
// What the executor runs programs on: a clock, timers and transfers. Two implementations: fluid_backend.hpp (max-min
// fair flows on SimGrid's clock) and packet_backend.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fabricast/models/program.hpp"

namespace fabricast::engine {

/// Nodes that run together: a job's program, or the flows of one of its nodes by themselves.
struct Part {
  const models::Program* program = nullptr;
  std::size_t first = 0;  ///< nodes before it count as ended
  std::size_t count = 0;
  Duration start;        ///< when nodes that wait for nothing start
  bool is_once = false;  ///< no repeats and no fixed times

  [[nodiscard]] const models::Node& node(std::size_t n) const { return program->nodes[first + n]; }
};

/// Flow `flow` of node `node` of a part.
struct FlowRef {
  std::uint32_t part = 0;
  std::uint32_t node = 0;
  std::uint32_t flow = 0;
};

/// A moment as exact as the network's clock knows it.
struct Moment {
  Duration time;
  double seconds = 0;  ///< where the clock counts in these
};

class NetworkBackend {
 public:
  virtual ~NetworkBackend() = default;

  /// Whole picoseconds, up.
  [[nodiscard]] virtual Duration now() const = 0;
  [[nodiscard]] virtual Moment moment() const { return {now()}; }
  /// To the nearest picosecond.
  [[nodiscard]] virtual Duration since(const Moment& begin) const { return now() - begin.time; }
  /// Calls `then` after `wait`; with none, at once but not inside the call.
  virtual void after(Duration wait, std::function<void()> then) = 0;
  /// After `wait` the flow's latency begins, then its bytes move. What is started of the same flow while its bytes move
  /// has its latency, and its bytes leave behind them.
  virtual void start_flow(FlowRef flow, Duration wait) = 0;
  /// Order in which flows that start together are started; empty = as listed.
  [[nodiscard]] virtual std::vector<std::size_t> starting_order(const models::Node& /*node*/) const { return {}; }
  /// Whether flows of blocking repeats go on by themselves; else such repeats are barriers.
  [[nodiscard]] virtual bool follows_blocking_order() const { return true; }
  /// Repeats that are as long as those before them are not run.
  virtual void leave_out(const models::Node& /*node*/, std::int64_t /*repeats*/) {}
  /// Runs until nothing is left to happen; calls `on_end` whenever the last byte of a flow has arrived.
  virtual void run(std::function<void(FlowRef)> on_end) = 0;
};

}  // namespace fabricast::engine
