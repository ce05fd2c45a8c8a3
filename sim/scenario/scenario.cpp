// SPDX-License-Identifier: Apache-2.0
// One table of all benchmarks: name, family, kind, and default sweep.
#include "fabricast/scenario.hpp"

#include <algorithm>
#include <array>

namespace fabricast {

namespace {

struct Entry {
  Benchmark benchmark;
  std::string_view name;
  BenchmarkFamily family;
  bool is_collective;
  bool is_bandwidth;
  Bytes from;
  Bytes to;
};

using enum Benchmark;
using F = BenchmarkFamily;
constexpr Bytes k_4_mib{4 << 20};
constexpr Bytes k_1_mib{1 << 20};
constexpr Bytes k_8_mib{8 << 20};
constexpr Bytes k_128_mib{128 << 20};
constexpr Bytes k_1_gib{1 << 30};
constexpr Bytes k_32_gib{std::int64_t{32} << 30};

// nccl-tests sweep from 8 B to 128 MiB in the READMEs' form (-b 8 -e 128M -f 2); OSU 0 or 1 B to 4 MiB (collectives 1
// MiB); perftest -a 2 B to 8 MiB.
constexpr std::array k_benchmarks{
    Entry{osu_latency, "osu_latency", F::osu, false, false, {0}, k_4_mib},
    Entry{osu_bw, "osu_bw", F::osu, false, true, {1}, k_4_mib},
    Entry{osu_bibw, "osu_bibw", F::osu, false, true, {1}, k_4_mib},
    Entry{osu_multi_lat, "osu_multi_lat", F::osu, false, false, {0}, k_4_mib},
    Entry{osu_mbw_mr, "osu_mbw_mr", F::osu, false, true, {1}, k_4_mib},
    Entry{osu_allreduce, "osu_allreduce", F::osu, true, false, {4}, k_1_mib},
    Entry{osu_allgather, "osu_allgather", F::osu, true, false, {1}, k_1_mib},
    Entry{osu_reduce_scatter, "osu_reduce_scatter", F::osu, true, false, {4}, k_1_mib},
    Entry{osu_bcast, "osu_bcast", F::osu, true, false, {1}, k_1_mib},
    Entry{osu_reduce, "osu_reduce", F::osu, true, false, {4}, k_1_mib},
    Entry{osu_alltoall, "osu_alltoall", F::osu, true, false, {1}, k_1_mib},
    Entry{osu_gather, "osu_gather", F::osu, true, false, {1}, k_1_mib},
    Entry{osu_scatter, "osu_scatter", F::osu, true, false, {1}, k_1_mib},
    Entry{osu_barrier, "osu_barrier", F::osu, true, false, {0}, {0}},
    Entry{ib_write_lat, "ib_write_lat", F::perftest, false, false, {2}, k_8_mib},
    Entry{ib_write_bw, "ib_write_bw", F::perftest, false, true, {2}, k_8_mib},
    Entry{ib_send_lat, "ib_send_lat", F::perftest, false, false, {2}, k_8_mib},
    Entry{ib_send_bw, "ib_send_bw", F::perftest, false, true, {2}, k_8_mib},
    Entry{ib_read_lat, "ib_read_lat", F::perftest, false, false, {2}, k_8_mib},
    Entry{ib_read_bw, "ib_read_bw", F::perftest, false, true, {2}, k_8_mib},
    Entry{all_reduce_perf, "all_reduce_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{all_gather_perf, "all_gather_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{reduce_scatter_perf, "reduce_scatter_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{broadcast_perf, "broadcast_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{reduce_perf, "reduce_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{alltoall_perf, "alltoall_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{sendrecv_perf, "sendrecv_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{gather_perf, "gather_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{scatter_perf, "scatter_perf", F::nccl_tests, true, false, {8}, k_128_mib},
    Entry{host_copies, "host_copies", F::system, false, true, {4}, {1 << 30}},
    Entry{gpu_step, "gpu_step", F::system, true, false, {0}, {0}},
    Entry{iperf3, "iperf3", F::system, false, true, {128 << 10}, {128 << 10}},
    Entry{sockperf, "sockperf", F::system, false, false, {64}, {64}},
    // Rows of gpu_sharing are clients, of remote_gpu the data of a step, of vgpu_migration framebuffers.
    Entry{gpu_sharing, "gpu_sharing", F::sharing, false, false, {1}, {1}},
    Entry{remote_gpu, "remote_gpu", F::sharing, false, false, k_1_mib, k_1_gib},
    Entry{vgpu_migration, "vgpu_migration", F::sharing, false, false, k_1_gib, k_32_gib},
    Entry{traffic, "traffic", F::traffic, false, false, {2'000'000}, {2'000'000}},
    // Rows are numbers of GPUs: workload.gpus.
    Entry{training, "training", F::training, true, false, {1}, {1}},
};

const Entry& entry_of(Benchmark benchmark) {
  return *std::find_if(k_benchmarks.begin(), k_benchmarks.end(),
                       [&](const Entry& entry) { return entry.benchmark == benchmark; });
}

}  // namespace

std::string_view to_string(Benchmark benchmark) { return entry_of(benchmark).name; }

const std::vector<std::string>& benchmark_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& entry : k_benchmarks) all.emplace_back(entry.name);
    return all;
  }();
  return names;
}

std::optional<Benchmark> benchmark_from_name(std::string_view name) {
  for (const auto& entry : k_benchmarks) {
    if (entry.name == name) return entry.benchmark;
  }
  return std::nullopt;
}

BenchmarkFamily family_of(Benchmark benchmark) { return entry_of(benchmark).family; }
bool is_collective(Benchmark benchmark) { return entry_of(benchmark).is_collective; }
bool has_root(Benchmark benchmark) {
  const auto all = {osu_bcast,      osu_reduce,  osu_gather,  osu_scatter,
                    broadcast_perf, reduce_perf, gather_perf, scatter_perf};
  return std::ranges::find(all, benchmark) != all.end();
}
bool counts_parts(Benchmark benchmark) {
  const auto all = {all_gather_perf, reduce_scatter_perf, alltoall_perf, gather_perf, scatter_perf};
  return std::ranges::find(all, benchmark) != all.end();
}
bool is_bandwidth_test(Benchmark benchmark) { return entry_of(benchmark).is_bandwidth; }

std::string_view to_string(TrafficPattern pattern) {
  switch (pattern) {
    case TrafficPattern::flows:
      return "flows";
    case TrafficPattern::incast:
      return "incast";
    case TrafficPattern::permutation:
      return "permutation";
    case TrafficPattern::parking_lot:
      return "parking_lot";
    case TrafficPattern::victim:
      return "victim";
    case TrafficPattern::ring_all_reduce:
      return "ring_all_reduce";
  }
  return "";
}

std::string_view to_string(LaunchMode mode) {
  switch (mode) {
    case LaunchMode::one_thread:
      return "one_thread";
    case LaunchMode::thread_per_gpu:
      return "thread_per_gpu";
    case LaunchMode::process_per_gpu:
      return "process_per_gpu";
    case LaunchMode::graph:
      return "graph";
  }
  return "";
}

std::string_view to_string(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::to_host:
      return "to_host";
    case CopyDirection::to_device:
      return "to_device";
    case CopyDirection::both:
      return "both";
    case CopyDirection::to_peer:
      return "to_peer";
  }
  return "";
}

std::string_view to_string(Statistic statistic) { return statistic == Statistic::max ? "max" : "mean"; }

std::optional<SharePolicy> share_policy_from_name(std::string_view name) {
  for (const auto policy : {SharePolicy::best_effort, SharePolicy::equal_share, SharePolicy::fixed_share}) {
    if (to_string(policy) == name) return policy;
  }
  return std::nullopt;
}

std::string_view to_string(SharePolicy policy) {
  switch (policy) {
    case SharePolicy::best_effort:
      return "best_effort";
    case SharePolicy::equal_share:
      return "equal_share";
    case SharePolicy::fixed_share:
      return "fixed_share";
  }
  return "";
}

std::vector<Bytes> default_sizes(Benchmark benchmark) {
  const auto& entry = entry_of(benchmark);
  std::vector<Bytes> sizes;
  if (entry.from.value == 0) sizes.push_back({0});
  for (Bytes size{std::max<std::int64_t>(1, entry.from.value)}; size <= entry.to && entry.to.value > 0; size = 2 * size)
    sizes.push_back(size);
  return sizes;
}

}  // namespace fabricast
