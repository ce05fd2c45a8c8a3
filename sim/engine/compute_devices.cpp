// SPDX-License-Identifier: Apache-2.0
#include "engine/compute_devices.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace fabricast::engine {

std::size_t ComputeDevices::index(int device) const {
  FABRICAST_ASSERT(device >= 0 && static_cast<std::size_t>(device) < devices_.size(), "device {} of {}", device,
                   devices_.size());
  return static_cast<std::size_t>(device);
}

void ComputeDevices::start(int device, Duration work, std::function<void()> then) {
  if (device < 0) return network_->after(work, std::move(then));
  const auto d = index(device);
  devices_[d].running.push_back({static_cast<double>(work.ps), network_->now(), 0, std::move(then)});
  arm(d, devices_[d].running.back());
}

void ComputeDevices::slow(int device, double share, bool is_begin) {
  const auto d = index(device);
  auto& one = devices_[d];
  const auto now = network_->now();
  for (auto& work : one.running) {
    work.left_ps = std::max(0.0, work.left_ps - static_cast<double>((now - work.since).ps) / (1 + one.slowed));
    work.since = now;
  }
  one.num_slowing += is_begin ? 1 : -1;
  one.slowed += is_begin ? share : -share;
  if (one.num_slowing == 0) one.slowed = 0;  // what adding and taking away left
  for (auto& work : one.running) arm(d, work);
}

/// The timers armed before are ignored when they fire.
void ComputeDevices::arm(std::size_t device, Work& work) {
  work.timer = ++num_timers_;
  const double wait_ps = std::round(work.left_ps * (1 + devices_[device].slowed));
  network_->after({range::whole(wait_ps)}, [this, device, timer = work.timer] { end(device, timer); });
}

void ComputeDevices::end(std::size_t device, std::uint64_t timer) {
  auto& running = devices_[device].running;
  const auto found = std::ranges::find(running, timer, &Work::timer);
  if (found == running.end()) return;
  const auto then = std::move(found->then);
  running.erase(found);
  then();
}

}  // namespace fabricast::engine
