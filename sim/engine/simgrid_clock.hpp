// SPDX-License-Identifier: Apache-2.0
// The only file of the project that talks to SimGrid (its .cpp does). A clock, timers, and flows that share resources
// max-min fairly. One instance per process, for as long as the process lives.
#pragma once

#include <functional>
#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

class SimGridClock {
 public:
  /// The process's instance, built at first use.
  static SimGridClock& instance();

  /// Begins a simulation at time 0 that takes at most `longest` seconds (finite), and declares the resources of its
  /// flows: capacity[i] bytes/s of resource i. Nothing may be in flight.
  void begin(const std::vector<double>& capacities, double longest);

  /// Seconds since begin().
  [[nodiscard]] double now() const;

  /// Calls `then` after `seconds` (0 = at once, in order of calls).
  void after(double seconds, std::function<void()> then);

  /// Starts a flow of `bytes` > 0 over the crossings (resource = index into the capacities).
  void start_flow(double bytes, const std::vector<models::Crossing>& crossings, std::function<void()> then);

  /// Runs until nothing is left to happen. Every started flow and timer has ended when it returns.
  void run();

 private:
  SimGridClock();
  struct Impl;
  Impl* impl_;  // never freed: SimGrid's engine must outlive everything
};

}  // namespace fabricast::engine
