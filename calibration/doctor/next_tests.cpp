// SPDX-License-Identifier: Apache-2.0
#include "doctor/next_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "doctor/changes.hpp"

namespace fabricast::doctor {

namespace {

constexpr double k_apart = 0.10;   ///< |ln| that a test of a few repetitions shows
constexpr double k_clearly = 0.2;  ///< enough to stop looking for a better test
constexpr int k_senders = 4;       ///< of an incast

enum class Place { one_host, two_hosts, all_hosts };

struct Trial {
  const char* command;
  Benchmark benchmark;
  bool is_on_device;
  Place place;
  Bytes size;
  bool is_of_packets = false;  ///< what only packets show: pauses and drops
};

const std::vector<Trial>& trials() {
  static const std::vector<Trial> all{
      {"ib_write_bw, host memory", Benchmark::ib_write_bw, false, Place::two_hosts, {1 << 20}},
      {"ib_write_bw --use_cuda=0", Benchmark::ib_write_bw, true, Place::two_hosts, {1 << 20}},
      {"ib_write_lat, host memory", Benchmark::ib_write_lat, false, Place::two_hosts, {8}},
      {"osu_latency", Benchmark::osu_latency, false, Place::two_hosts, {8}},
      {"all_reduce_perf", Benchmark::all_reduce_perf, true, Place::one_host, {256 << 20}},
      {"all_reduce_perf", Benchmark::all_reduce_perf, true, Place::one_host, {8}},
      {"sendrecv_perf", Benchmark::sendrecv_perf, true, Place::all_hosts, {64 << 20}},
      {"all_reduce_perf", Benchmark::all_reduce_perf, true, Place::all_hosts, {1 << 30}},
      {"all_reduce_perf", Benchmark::all_reduce_perf, true, Place::all_hosts, {32 << 10}},
      {"alltoall_perf", Benchmark::alltoall_perf, true, Place::all_hosts, {256 << 20}},
      {"ib_write_bw from several hosts to one at once (watch rx_discards and out_of_sequence)",
       Benchmark::traffic,
       false,
       Place::all_hosts,
       {4 << 20},
       true},
  };
  return all;
}

/// Trials of one cluster; what they take there.
class Bench {
 public:
  explicit Bench(const Case& base) : base_(base), topology_(build_topology(base.spec, base.parameters, base.types)) {}

  [[nodiscard]] bool is_good() const { return topology_.has_value(); }

  /// Time under `cause` (null: healthy, forecast once), with the trial where `host` is.
  [[nodiscard]] std::optional<Duration> time(const Trial& trial, const Cause* cause, int host) {
    if (cause != nullptr) return forecast_of(trial, cause, host);
    const auto [known, is_new] = healthy_.try_emplace({&trial, shown_host(trial, host)});
    if (is_new) known->second = forecast_of(trial, nullptr, host);
    return known->second;
  }
  [[nodiscard]] bool fits(const Trial& trial, int host) const {
    const int hosts = topology_->num_hosts();
    const int gpus = topology_->count(DeviceKind::gpu, shown_host(trial, host));
    if (trial.is_on_device && gpus == 0) return false;
    if (trial.place == Place::one_host) return gpus > 1;
    if (trial.place == Place::two_hosts &&
        topology_->count(kind_of(trial), peer_of(trial, shown_host(trial, host))) == 0)
      return false;
    return hosts > (trial.is_of_packets ? 2 : 1);
  }
  [[nodiscard]] std::string command(const Trial& trial, int host) const {
    const int shown = shown_host(trial, host);
    const auto& first = topology_->host_name(shown);
    switch (trial.place) {
      case Place::one_host:
        return fmt::format("{} on {}", trial.command, first);
      case Place::two_hosts:
        return fmt::format("{}, between {} and {}", trial.command, first, topology_->host_name(peer_of(trial, shown)));
      case Place::all_hosts:
        break;
    }
    return fmt::format("{} over all hosts", trial.command);
  }

 private:
  [[nodiscard]] std::optional<Duration> forecast_of(const Trial& trial, const Cause* cause, int host) const {
    auto one = base_;
    one.scenario.workloads = {workload_of(trial, shown_host(trial, host))};
    if (cause != nullptr && !cause->apply(one)) return std::nullopt;
    const auto times = forecast(one, {trial.size}, trial.is_of_packets ? Fidelity::packet : Fidelity::fluid);
    return times.empty() ? std::nullopt : std::optional(times.front());
  }
  /// The suspected host; where none is (-1), or all take part, the first that can run the trial: a head node without
  /// GPUs may come before it.
  [[nodiscard]] int shown_host(const Trial& trial, int host) const {
    if (host >= 0 && trial.place != Place::all_hosts) return host;
    return trial.is_on_device ? topology_->first_host_with(DeviceKind::gpu) : 0;
  }
  /// The other host of a trial between two: the next that has what the trial runs on.
  [[nodiscard]] int peer_of(const Trial& trial, int host) const {
    return topology_->next_host_with(kind_of(trial), host);
  }
  [[nodiscard]] static DeviceKind kind_of(const Trial& trial) {
    return trial.is_on_device ? DeviceKind::gpu : DeviceKind::memory;
  }

  [[nodiscard]] Workload workload_of(const Trial& trial, int host) const {
    Workload out;
    out.benchmark = trial.benchmark;
    out.name = std::string(to_string(trial.benchmark));
    out.send_buffer = out.receive_buffer = trial.is_on_device ? BufferPlace::device : BufferPlace::host;
    out.launch = base_.scenario.workloads.front().launch;
    if (trial.is_of_packets) {
      out.traffic.pattern = TrafficPattern::incast;
      out.traffic.senders = std::min(k_senders, topology_->num_hosts() - 1);
    }
    const auto kind = kind_of(trial);
    const auto add = [&](int of, int count) {
      for (int d = 0; d < count; ++d)
        out.devices.push_back(topology_->device(topology_->device_in_host(of, kind, d)).name);
    };
    if (trial.place == Place::one_host) add(host, topology_->count(kind, host));
    if (trial.place == Place::two_hosts) {
      add(host, 1);
      add(peer_of(trial, host), 1);
    }
    return out;
  }

  const Case& base_;
  Result<Topology> topology_;
  std::map<std::pair<const Trial*, int>, std::optional<Duration>> healthy_;  ///< by trial and host
};

int host_of(const Cause* a, const Cause* b) {
  if (a != nullptr && a->host >= 0) return a->host;
  return b != nullptr ? b->host : -1;
}

/// The first trial of `bench` that tells `a` from `b` clearly, else the one that does best.
std::optional<NextTest> best_of(Bench& bench, const Cause* a, const Cause* b) {
  if (!bench.is_good()) return std::nullopt;
  const int host = host_of(a, b);
  std::optional<NextTest> best;
  double most = k_apart;
  for (const auto& trial : trials()) {
    if (!bench.fits(trial, host)) continue;
    const auto first = bench.time(trial, a, host), second = bench.time(trial, b, host);
    if (!first || !second) continue;
    const double apart = std::abs(std::log(first->seconds() / second->seconds()));
    if (apart <= most) continue;
    most = apart;
    best = NextTest{bench.command(trial, host), trial.size, to_string(*first), to_string(*second)};
    if (apart > k_clearly) break;
  }
  return best;
}

}  // namespace

std::optional<NextTest> next_test(const Case& base, const Cause* a, const Cause* b) {
  Bench bench(base);
  return best_of(bench, a, b);
}

std::vector<HiddenCause> hidden_causes(const Case& base, const std::vector<const Cause*>& causes) {
  std::vector<HiddenCause> out;
  Bench bench(base);
  std::set<std::string> seen;
  for (const auto* cause : causes) {
    // One host stands for the others.
    if (!seen.insert(cause->id).second) continue;
    HiddenCause one{cause->id, cause->title, cause->place, {}};
    one.test = best_of(bench, nullptr, cause);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace fabricast::doctor
