// SPDX-License-Identifier: Apache-2.0
// The CPU scheduler of a hypervisor, event by event, on a pool of cores that wake-ups stay in: vCPUs of other VMs have
// work for a burst, pause, and again; who has had least time by its shares runs next, for a slice at most.
//
//   slowdown(k, l) = mean time from wake-up to the end of a burst / its work, beside k vCPUs a core of load l
//
// With l = 1 and k a core, k > 0, the thread gets its shares' part of its pool; with few of small load a core of the
// pool is free and it hardly waits. Between whole numbers of vCPUs in proportion. Pools are as large as
// host.cpu_pool_cores says, times from the same file (models/params/sharing.yaml).
#include "sharing/cpu_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/parameter_name.hpp"
#include "sharing/split_mix.hpp"

namespace fabricast::models {

namespace {

constexpr double k_least_load = 1e-4;
constexpr double k_most_per_core = 32;                // simulated; beyond, the slowdown grows in proportion
constexpr int k_first_bursts = 50, k_counted = 1500;  // bursts of the thread
constexpr double k_never = std::numeric_limits<double>::infinity();

struct Vcpu {
  double pause = 0;
  double weight = 1;
  double wake = 0;  ///< next wake-up; k_never while it has work
  double left = 0;  ///< of the burst
  double virtual_time = 0;
  double until = k_never;  ///< end of its slice or burst while it runs
  double since = 0;
  bool is_running = false;
  bool is_last_slice = false;
};

/// All times in seconds.
class Pool {
 public:
  Pool(int cores, double burst, double slice, double spread)
      : cores_(cores), burst_(burst), slice_(slice), spread_(spread) {}

  void add(double pause, double weight) {
    vcpus_.push_back({});
    vcpus_.back().pause = pause;
    vcpus_.back().weight = weight;
    vcpus_.back().wake = pause * random_.next();
  }

  /// Mean time of a burst of the first one over its work.
  double slowdown() {
    while (done_ < k_first_bursts + k_counted) {
      fill();
      advance();
    }
    return std::max(1.0, waited_ / (k_counted * burst_));
  }

 private:
  void fill() {
    while (running_ < cores_) {
      Vcpu* next = nullptr;
      for (auto& one : vcpus_) {
        const bool waits = !one.is_running && one.left > 0;
        if (waits && (next == nullptr || one.virtual_time < next->virtual_time)) next = &one;
      }
      if (next == nullptr) return;
      next->is_running = true;
      next->is_last_slice = next->left <= slice_;
      next->since = now_;
      next->until = now_ + std::min(next->left, slice_);
      ++running_;
    }
  }

  void advance() {
    double at = k_never;
    for (const auto& one : vcpus_) at = std::min({at, one.until, one.wake});
    now_ = at;
    for (auto& one : vcpus_) {
      if (one.until <= now_) stop(one);
      if (one.wake <= now_) start(one);
    }
  }

  void stop(Vcpu& one) {
    const double ran = now_ - one.since;
    one.left = one.is_last_slice ? 0 : one.left - ran;
    one.virtual_time += ran / one.weight;
    one.is_running = false;
    one.until = k_never;
    --running_;
    if (one.left > 0) return;
    one.wake = now_ + one.pause * (1 + spread_ * (2 * random_.next() - 1));
    if (&one != vcpus_.data()) return;
    if (done_ >= k_first_bursts) waited_ += now_ - woke_;
    ++done_;
  }

  /// Sleeping earns no credit: who wakes has at least the virtual time of those that have work.
  void start(Vcpu& one) {
    double least = k_never;
    for (const auto& other : vcpus_)
      if (other.left > 0) least = std::min(least, other.virtual_time);
    if (least < k_never) one.virtual_time = std::max(one.virtual_time, least);
    one.left = burst_;
    one.wake = k_never;
    if (&one == vcpus_.data()) woke_ = now_;
  }

  int cores_;
  double burst_, slice_, spread_;
  std::vector<Vcpu> vcpus_;
  SplitMix random_{1};
  int running_ = 0, done_ = 0;
  double now_ = 0, woke_ = 0, waited_ = 0;
};

double beside(const ParameterSet& parameters, int vcpus, const CoreNeighbours& neighbours) {
  if (vcpus == 0) return 1;
  const int cores = static_cast<int>(parameters["host.cpu_pool_cores"_key]);
  const double burst = parameters["host.cpu_burst"_key].seconds();
  Pool pool(cores, burst, parameters["host.cpu_slice"_key].seconds(), parameters["host.cpu_pause_spread"_key]);
  pool.add(burst, neighbours.own_shares);
  const double load = std::min(1.0, neighbours.load);
  for (int i = 0; i < vcpus; ++i) pool.add(burst * (1 - load) / load, neighbours.shares);
  return pool.slowdown();
}

}  // namespace

double shared_core_slowdown(const ParameterSet& parameters, const CoreNeighbours& neighbours) {
  if (neighbours.per_core <= 0 || neighbours.load < k_least_load) return 1;
  const double simulated = std::min(neighbours.per_core, k_most_per_core);
  const double count = simulated * parameters["host.cpu_pool_cores"_key];
  const int below = static_cast<int>(std::floor(count));
  const double rest = count - below;
  double slowdown = beside(parameters, below, neighbours);
  if (rest > 0) slowdown += rest * (beside(parameters, below + 1, neighbours) - slowdown);
  return slowdown * neighbours.per_core / simulated;
}

double knowledge_worker_slowdown_on(const ParameterSet& parameters, NeighbourVictim victim, double workers,
                                    double cores) {
  if (workers <= 0) return 0;
  const double each = parameters["host.knowledge_worker_load"_key];
  const double used = workers * each / cores;  // above 1 hyper-threads carry it
  switch (victim) {
    case NeighbourVictim::machine_learning:
      return parameters["host.machine_learning_cpu_share"_key] *
             (shared_core_slowdown(parameters, {workers / cores, each, 1000, 1000}) - 1);
    case NeighbourVictim::cad_3d:
      return parameters["host.cad_shared_cache_share"_key] * used;
    case NeighbourVictim::knowledge_worker:
      return parameters["host.knowledge_worker_cpu_share"_key] * used;
  }
  return 0;
}

}  // namespace fabricast::models
