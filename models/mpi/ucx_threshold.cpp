// SPDX-License-Identifier: Apache-2.0
#include "mpi/ucx_threshold.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr double k_better = 0.99;         ///< UCX_RNDV_PERF_DIFF, 1 %
constexpr double k_registration = 90e-9;  ///< s, UCX_IB_RCACHE_OVERHEAD: a look-up in the cache of registrations
constexpr double k_overhead = 40e-9;      ///< s, of rc_mlx5
constexpr double k_segment = 8'256;       ///< B, UCX_IB_SEG_SIZE less headers: nothing smaller is announced
constexpr double k_mebibyte = 1048576;
constexpr double k_copy = 5'800 * k_mebibyte;  ///< B/s, UCX_BCOPY_BW of processors but AMD's
constexpr double k_copy_amd = 5'008 * k_mebibyte;
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

constexpr double k_one_root = 3'500 * k_mebibyte;          ///< B/s
constexpr double k_across_roots = 220 * k_mebibyte;        ///< B/s
constexpr double k_across_roots_amd = 5'100 * k_mebibyte;  ///< B/s, from Zen 2 on
/// Seconds of a segment, rc_mlx5's posting and completion: two published tables of GPU memory switch above 128 KiB (one
/// root) and above 256 KiB (AMD, across), which 55 to 62 ns explain.
constexpr double k_of_segment = 58e-9;

// Of uct_tcp_iface_query and uct_tcp_netif_caps; memory is not registered.
constexpr double k_tcp_latency = 5.2e-6;           ///< s, and 576 bits on the wire
constexpr double k_tcp_frame = 576.0 / 8;          ///< B
constexpr double k_tcp_overhead = 50e-6;           ///< s, at each end
constexpr double k_tcp_most = 2'200 * k_mebibyte;  ///< B/s, UCX_TCP_MAX_BW

/// What a transport costs at each end beside its latency, s.
struct AtEnd {
  double registration = k_registration;
  double overhead = k_overhead;
};

/// Registrations, latencies and overheads of `ports` devices stand in a sum; the receiver registers, too, where it
/// reads.
double gain_of_copies(double latency, int ports, bool is_read, const AtEnd& end = {}) {
  return k_better * (end.registration * ports * (is_read ? 2 : 1) + 2 * latency + 2 * latency * ports +
                     2 * end.overhead + end.overhead * ports) -
         end.registration - end.overhead;
}

double threshold(double latency, double rate, int ports, bool is_read, double copy) {
  return gain_of_copies(latency, ports, is_read) / (1 / std::min(rate, copy) - k_better / (rate * ports));
}

Bytes below(double first) { return Bytes{static_cast<std::int64_t>(std::floor(std::max(k_segment, first))) - 1}; }

}  // namespace

Bytes longest_eager_of_ucx(const PlannedPort& port, int num_ports, bool is_amd) {
  FABRICAST_ASSERT(port.rate > 0 && port.payload_share > 0 && num_ports > 0, "no port of {} B/s", port.rate);
  const double rate = port.rate * port.payload_share;
  const double copy = is_amd ? k_copy_amd : k_copy;
  const double latency = planned_latency(port);
  return below(std::min(threshold(latency, rate, num_ports, true, copy), threshold(latency, rate, 1, false, copy)));
}

Bytes longest_eager_of_ucx(const PlannedPort& port, double gpu_rate) {
  FABRICAST_ASSERT(port.rate > 0 && gpu_rate > 0, "no port of {} B/s, no GPU of {}", port.rate, gpu_rate);
  const double rate = std::min(port.rate * port.payload_share, gpu_rate);
  return below(gain_of_copies(planned_latency(port), 1, false) / ((1 - k_better) / rate + k_of_segment / k_segment));
}

Bytes longest_eager_of_ucx_over_tcp(const PlannedPort& port, Bytes segment, bool is_capped, bool is_amd) {
  FABRICAST_ASSERT(port.rate > 0 && port.payload_share > 0, "no port of {} B/s", port.rate);
  const double all = port.rate * port.payload_share;
  const double rate = is_capped ? std::min(all, k_tcp_most) : all;
  const double gain = gain_of_copies(k_tcp_latency + k_tcp_frame / port.rate, 1, false, {0, k_tcp_overhead});
  const double copy = is_amd ? k_copy_amd : k_copy;
  const double per_byte = segment.value > 0
                              ? (1 - k_better) / rate + k_tcp_overhead / static_cast<double>(segment.value)
                              : 1 / std::min(rate, copy) - k_better / rate;
  return below(gain / per_byte);
}

double planned_gpu_rate_of_ucx(bool has_one_root, bool is_amd) {
  return has_one_root ? k_one_root : is_amd ? k_across_roots_amd : k_across_roots;
}

}  // namespace fabricast::models::mpi
