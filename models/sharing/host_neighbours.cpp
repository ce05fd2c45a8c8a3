// SPDX-License-Identifier: Apache-2.0
// Other work on the workload's host.
//
// Memory: traffic B of a bandwidth C leaves C - B, and a copy through the busy memory takes 1 + a u/(1-u) as long with
// u = B/C (waiting in a single queue). Cores: b busy and o own threads on V virtual CPUs, two to a core, share
// max(0, b + o - V/2) cores; a thread on a shared core runs at `host.smt_speed`. When no virtual CPU is left, a thread
// that waits for the GPU or the network gets one back at the next tick of the guest's scheduler.
#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"
#include "sharing/cpu_sharing.hpp"

namespace fabricast::models {

namespace {

constexpr double k_least_memory_share = 0.1;  // max-min sharing never starves the workload
constexpr double k_largest_load = 0.95;       // where the queueing formula ends
constexpr double k_reference_cores = 28;      // of the host the guide's figures are fitted on

/// Part of all threads that share their core with another one.
double shared_core_share(double busy, double own, double vcpus) {
  if (busy + own >= vcpus) return 1;
  return 2 * std::max(0.0, busy + own - vcpus / 2) / (busy + own);
}

}  // namespace

HostContention host_contention(const ParameterSet& parameters, const HostNeighbours& neighbours, int own_threads,
                               Bandwidth memory_bandwidth) {
  HostContention out;
  if (memory_bandwidth.bytes_per_s > 0) {
    const double load = std::min(k_largest_load, neighbours.memory_traffic.bytes_per_s / memory_bandwidth.bytes_per_s);
    out.memory_share_left = std::max(k_least_memory_share, 1 - load);
    out.copy_slowdown = 1 + parameters["host.memory_queueing"_key] * load / (1 - load);
  }
  out.steal = neighbours.overcommit > 1 ? 1 - 1 / neighbours.overcommit : 0;
  if (neighbours.vcpus <= 0) {
    out.core_speed = 1 - out.steal;
    return out;
  }
  const double busy = neighbours.threads;
  const double own = std::max(1, own_threads);
  const double vcpus = neighbours.vcpus;
  out.runnable_per_cpu = (busy + own) / vcpus;
  const double shared = shared_core_share(busy, own, vcpus);
  out.core_speed = 1 / (1 + shared * (1 / parameters["host.smt_speed"_key] - 1));
  // Every virtual CPU is taken: a thread shares one with busy/vcpus others, and waits for a tick to get on.
  if (busy >= vcpus) {
    out.core_speed /= 1 + busy / vcpus;
    out.scheduler_wait = parameters["host.scheduler_tick"_key];
  }
  out.core_speed *= 1 - out.steal;
  return out;
}

Duration rounded_to_ticks(Duration each, std::int64_t operations, Duration tick) {
  if (tick.ps <= 0 || operations <= 0) return each;
  const double ticks = std::ceil(each.seconds() * static_cast<double>(operations) / tick.seconds());
  return from_seconds(std::max(1.0, ticks) * tick.seconds() / static_cast<double>(operations));
}

double knowledge_worker_slowdown(const ParameterSet& parameters, NeighbourVictim victim, int workers) {
  FABRICAST_ASSERT(workers >= 0, "{} knowledge workers", workers);
  return knowledge_worker_slowdown_on(parameters, victim, workers, k_reference_cores);
}

}  // namespace fabricast::models
