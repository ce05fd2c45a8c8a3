// SPDX-License-Identifier: Apache-2.0
// Which benchmark reads which key of a workload. tests/unit/simulate/setting_effects_test.cpp walks them all.
#include "config/workload_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "config/schema.hpp"

namespace fabricast::config {

namespace {

// What a benchmark does, as far as its keys depend on it.
constexpr unsigned k_latency = 1u << 0;            // of one pair, over MPI
constexpr unsigned k_bandwidth = 1u << 1;          // the same
constexpr unsigned k_several_latency = 1u << 2;    // of several pairs
constexpr unsigned k_several_bandwidth = 1u << 3;  // the same
constexpr unsigned k_collective = 1u << 4;         // of MPI
constexpr unsigned k_verbs_latency = 1u << 5;      // perftest
constexpr unsigned k_verbs_bandwidth = 1u << 6;    // the same
constexpr unsigned k_nccl = 1u << 7;               // nccl-tests
constexpr unsigned k_copies = 1u << 8;             // host_copies
constexpr unsigned k_step = 1u << 9;               // gpu_step
constexpr unsigned k_streams = 1u << 10;           // iperf3
constexpr unsigned k_round_trips = 1u << 11;       // sockperf
constexpr unsigned k_shared = 1u << 12;            // gpu_sharing
constexpr unsigned k_remote = 1u << 13;            // remote_gpu
constexpr unsigned k_migration = 1u << 14;         // vgpu_migration
constexpr unsigned k_traffic = 1u << 15;           // traffic
constexpr unsigned k_training = 1u << 16;          // training

constexpr unsigned k_pairs = k_latency | k_bandwidth | k_several_latency | k_several_bandwidth;
constexpr unsigned k_verbs = k_verbs_latency | k_verbs_bandwidth;
constexpr unsigned k_exchange = k_nccl | k_step | k_training;

unsigned kind_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::osu_latency:
      return k_latency;
    case Benchmark::osu_bw:
    case Benchmark::osu_bibw:
      return k_bandwidth;
    case Benchmark::osu_multi_lat:
      return k_several_latency;
    case Benchmark::osu_mbw_mr:
      return k_several_bandwidth;
    case Benchmark::host_copies:
      return k_copies;
    case Benchmark::gpu_step:
      return k_step;
    case Benchmark::iperf3:
      return k_streams;
    case Benchmark::sockperf:
      return k_round_trips;
    case Benchmark::gpu_sharing:
      return k_shared;
    case Benchmark::remote_gpu:
      return k_remote;
    case Benchmark::vgpu_migration:
      return k_migration;
    case Benchmark::traffic:
      return k_traffic;
    case Benchmark::training:
      return k_training;
    default:
      break;
  }
  if (family_of(benchmark) == BenchmarkFamily::nccl_tests) return k_nccl;
  if (family_of(benchmark) == BenchmarkFamily::osu) return k_collective;
  return is_bandwidth_test(benchmark) ? k_verbs_bandwidth : k_verbs_latency;
}

struct Reader {
  std::string_view key;
  unsigned by;
};

/// Keys that are not here are read by every benchmark.
constexpr std::array k_readers{Reader{"gpus", k_collective | k_exchange | k_copies},
                               Reader{"ranks", k_collective | k_nccl | k_step},
                               Reader{"ranks_per_host", k_pairs | k_collective | k_verbs | k_exchange},
                               Reader{"devices", ~(k_collective | k_streams | k_round_trips | k_traffic)},
                               Reader{"buffers", k_pairs | k_collective | k_verbs | k_nccl},
                               Reader{"algorithm", k_collective | k_nccl | k_step},
                               Reader{"protocol", k_nccl | k_step},
                               Reader{"channels", k_exchange},
                               Reader{"launch", k_exchange},
                               Reader{"window", k_bandwidth | k_several_bandwidth | k_verbs_bandwidth},
                               Reader{"pairs", k_several_latency | k_several_bandwidth},
                               Reader{"queue_pairs", k_verbs_bandwidth},
                               Reader{"bidirectional", k_verbs_bandwidth | k_copies},
                               Reader{"direction", k_copies},
                               Reader{"streams", k_streams},
                               Reader{"compute", k_step},
                               Reader{"transport", ~(k_copies | k_shared)}};

/// Tests of pairs have two ranks for each, which a count may say; of several pairs it says how many there are.
bool has_as_many(const Node& workload, std::string_view key, Benchmark benchmark) {
  const auto* pairs = workload.find("pairs");
  if (pairs == nullptr && pairs_its_ranks(benchmark)) return true;
  const auto* count = workload.find(std::string(key));
  return count == nullptr || count->kind != Node::Kind::scalar ||
         as_integer(*count) == 2 * (pairs == nullptr ? 1 : as_integer(*pairs));
}

bool is_read(const Node& workload, std::string_view key, Benchmark benchmark) {
  if (key == "root") return has_root(benchmark);
  if (key == "senders" || key == "local_senders") {
    const auto* pattern = workload.find("pattern");
    const bool is_victim = pattern != nullptr && pattern->scalar == "victim";
    const bool is_incast = pattern != nullptr && pattern->scalar == "incast";
    return benchmark != Benchmark::traffic || is_victim || (key == "senders" && is_incast);
  }
  if (key == "bidirectional" && benchmark == Benchmark::host_copies) {
    const auto* direction = workload.find("direction");
    return direction != nullptr && direction->scalar == "to_peer";
  }
  const bool is_count = key == "gpus" || key == "ranks";
  if (is_count && (kind_of(benchmark) & (k_pairs | k_verbs)) != 0) return has_as_many(workload, key, benchmark);
  const auto found = std::ranges::find(k_readers, key, &Reader::key);
  return found == k_readers.end() || (found->by & kind_of(benchmark)) != 0;
}

}  // namespace

bool pairs_its_ranks(Benchmark benchmark) {
  return (kind_of(benchmark) & (k_several_latency | k_several_bandwidth)) != 0;
}

const Node* find_read(const Node& workload, const char* key, Benchmark benchmark) {
  return is_read(workload, key, benchmark) ? workload.find(key) : nullptr;
}

Diagnostics warn_of_unread_keys(const Node& workload, Benchmark benchmark) {
  Diagnostics out;
  for (const auto& entry : workload.entries) {
    const auto& key = entry.key.scalar;
    if (is_read(workload, key, benchmark)) continue;
    const bool is_of_pattern = key == "senders" || key == "local_senders";
    const auto what = is_of_pattern ? std::string("this pattern") : std::string(to_string(benchmark));
    auto warning = entry.key.error(fmt::format("{} does not read '{}'", what, key), "leave it out");
    warning.severity = Severity::warning;
    out.push_back(std::move(warning));
  }
  return out;
}

Diagnostics warn_of_idle_starts(const std::vector<const Node*>& workloads) {
  std::set<double> starts;
  for (const auto* workload : workloads) {
    const auto* start = workload->find("start");
    starts.insert(start == nullptr ? 0 : as_quantity(*start, Dimension::time));
  }
  if (starts.size() > 1) return {};
  Diagnostics out;
  for (const auto* workload : workloads) {
    const auto* start = workload->find("start");
    if (start == nullptr || *starts.begin() == 0) continue;
    const bool is_alone = workloads.size() == 1;
    auto warning = start->error(is_alone ? "'start' changes nothing: the workload runs alone"
                                         : "'start' changes nothing: all workloads start together",
                                is_alone ? "leave it out, or add the workload that runs beside it to `workloads`"
                                         : "leave it out, or write another time for one of them");
    warning.severity = Severity::warning;
    out.push_back(std::move(warning));
  }
  return out;
}

}  // namespace fabricast::config
