// SPDX-License-Identifier: Apache-2.0
#include "mpi/ucx_threshold.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr double k_better = 0.99;             ///< UCX_RNDV_PERF_DIFF, 1 %
constexpr double k_registration = 90e-9;      ///< s, UCX_IB_RCACHE_OVERHEAD: a look-up in the cache of registrations
constexpr double k_overhead = 40e-9;          ///< s, of rc_mlx5
constexpr double k_segment = 8'256;           ///< B, UCX_IB_SEG_SIZE less headers: nothing smaller is announced
constexpr double k_copy = 5'800 * 1048576.0;  ///< B/s, UCX_BCOPY_BW of processors but AMD's
constexpr double k_copy_amd = 5'008 * 1048576.0;
constexpr double k_roce_latency = 200e-9;  ///< s more than InfiniBand of the same speed

struct OfSpeed {
  double most;     ///< B/s of data
  double latency;  ///< s
};

// Of uct_ib_iface_query, by the speed of a lane.
constexpr OfSpeed k_latencies[] = {{1.1e9, 5000e-9},  // single data rate, four lanes
                                   {1.4e9, 1300e-9},  // a lane of 10 Gb/s
                                   {2.1e9, 2500e-9},  // double
                                   {3.2e9, 600e-9},   // a lane of 25 Gb/s
                                   {5.1e9, 1300e-9},  // quadruple: 32 Gb/s, 40 over Ethernet
                                   {6.3e9, 600e-9},   // 50 Gb/s in one lane or two
                                   {7.0e9, 700e-9}};  // fourteen
constexpr double k_latency = 600e-9;                  ///< s, of faster ones

double planned_latency(const PlannedPort& port) {
  const auto* found = std::ranges::find_if(k_latencies, [&](const OfSpeed& one) { return port.rate <= one.most; });
  return (found == std::end(k_latencies) ? k_latency : found->latency) + (port.is_roce ? k_roce_latency : 0);
}

/// Registrations, latencies and overheads of `ports` devices stand in a sum; the receiver registers, too, where it
/// reads.
double threshold(double latency, double rate, int ports, bool is_read, double copy) {
  const double gain = k_better * (k_registration * ports * (is_read ? 2 : 1) + 2 * latency + 2 * latency * ports +
                                  2 * k_overhead + k_overhead * ports) -
                      k_registration - k_overhead;
  return gain / (1 / std::min(rate, copy) - k_better / (rate * ports));
}

}  // namespace

Bytes longest_eager_of_ucx(const PlannedPort& port, int num_ports, bool is_amd) {
  FABRICAST_ASSERT(port.rate > 0 && port.payload_share > 0 && num_ports > 0, "no port of {} B/s", port.rate);
  const double rate = port.rate * port.payload_share;
  const double copy = is_amd ? k_copy_amd : k_copy;
  const double latency = planned_latency(port);
  const double first = std::max(
      k_segment, std::min(threshold(latency, rate, num_ports, true, copy), threshold(latency, rate, 1, false, copy)));
  return Bytes{static_cast<std::int64_t>(std::floor(first)) - 1};
}

}  // namespace fabricast::models::mpi
