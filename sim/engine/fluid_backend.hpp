// SPDX-License-Identifier: Apache-2.0
// Max-min fair flows on SimGrid's clock and solver, under the executor. Latency is a timer; resources that another one
// dominates are left out unless `keep_all` (dense_flows.hpp).
#pragma once

#include <functional>
#include <vector>

#include "engine/dense_flows.hpp"
#include "engine/network_backend.hpp"
#include "engine/simgrid_clock.hpp"

namespace fabricast::engine {

class FluidBackend final : public NetworkBackend {
 public:
  /// `longest`: seconds (finite) that the parts take at most, from time 0 on.
  FluidBackend(const models::Resources& resources, const std::vector<Part>& parts, bool keep_all, double longest);

  [[nodiscard]] Duration now() const override { return from_seconds_up(clock_.now()); }
  [[nodiscard]] Moment moment() const override { return {now(), clock_.now()}; }
  [[nodiscard]] Duration since(const Moment& begin) const override {
    return from_seconds(clock_.now() - begin.seconds);
  }
  void after(Duration wait, std::function<void()> then) override { clock_.after(wait.seconds(), std::move(then)); }
  void start_flow(FlowRef flow, Duration wait) override;
  /// Planners give flows of blocking repeats the mean of their latencies, as if each went on by itself.
  [[nodiscard]] bool follows_blocking_order() const override { return false; }
  void run(std::function<void(FlowRef)> on_end) override;

 private:
  struct Line {
    const models::Flow* flow = nullptr;
    int strands = 1;  ///< it moves as, where flows have unlike shares
    int moving = 0;   ///< strands that have not ended
    int waiting = 0;  ///< for bytes of the same flow that are on their way
    bool is_busy = false;
  };

  void send(FlowRef flow, std::size_t line);

  SimGridClock& clock_ = SimGridClock::instance();
  std::vector<std::vector<std::size_t>> first_line_;  ///< [part][node]
  std::vector<Line> lines_;
  DenseFlows dense_;  ///< [line]
  std::function<void(FlowRef)> on_end_;
};

}  // namespace fabricast::engine
