// SPDX-License-Identifier: Apache-2.0
// Compute that flows slow down: a collective takes thread blocks and memory bandwidth from the device it runs on. Work
// of time w is done at t where
//
//   integral from its start to t of dt / (1 + s(t)) = w,   s = sum of what is active then
//
// and s is constant between changes, so that the integral is a sum.
#pragma once

#include <functional>
#include <vector>

#include "engine/network_backend.hpp"

namespace fabricast::engine {

class ComputeDevices {
 public:
  ComputeDevices(NetworkBackend& network, int num_devices)
      : network_(&network), devices_(static_cast<std::size_t>(num_devices)) {}

  /// Calls `then` when `work`, its time alone, is done. Device -1: nothing slows it.
  void start(int device, Duration work, std::function<void()> then);
  /// From here on work on `device` takes `share` of its time alone longer (is_begin), or no longer does.
  void slow(int device, double share, bool is_begin);

 private:
  struct Work {
    double left_ps = 0;  ///< alone
    Duration since;      ///< when it was that
    std::uint64_t timer = 0;
    std::function<void()> then;
  };
  struct Device {
    double slowed = 0;
    int num_slowing = 0;
    std::vector<Work> running;
  };

  void arm(std::size_t device, Work& work);
  void end(std::size_t device, std::uint64_t timer);
  [[nodiscard]] std::size_t index(int device) const;

  NetworkBackend* network_;
  std::vector<Device> devices_;
  std::uint64_t num_timers_ = 0;
};

}  // namespace fabricast::engine
