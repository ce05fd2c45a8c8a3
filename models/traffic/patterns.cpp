// SPDX-License-Identifier: Apache-2.0
// Who sends to whom in each traffic pattern.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "schedules/algorithms.hpp"
#include "traffic/planner.hpp"

namespace fabricast::models::traffic {

namespace {

/// splitmix64, for permutations that are the same on every machine.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  auto x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class PatternMaker {
 public:
  PatternMaker(const PlanContext& context, const Workload& workload)
      : topology_(context.topology), workload_(workload), seed_(context.pattern_seed.value_or(context.seed)) {
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto hcas = topology_.hcas_by_distance(topology_.device_in_host(host, DeviceKind::memory, 0));
      if (!hcas.empty()) hcas_.push_back(*std::ranges::min_element(hcas));
    }
  }

  Result<std::vector<FlowSpec>> make() {
    if (workload_.traffic.pattern == TrafficPattern::flows) {
      listed();
    } else if (hcas_.size() < 2) {
      fault(workload_.location, fmt::format("{} hosts are cabled to the fabric", hcas_.size()), "traffic needs two");
    } else {
      by_pattern();
    }
    if (!faults_.empty()) return tl::unexpected(faults_);
    return std::move(flows_);
  }

 private:
  void fault(const SourceLocation& where, std::string message, std::string hint) {
    faults_.push_back(make_error_at(where, std::move(message), std::move(hint)));
  }

  void by_pattern() {
    switch (workload_.traffic.pattern) {
      case TrafficPattern::flows:
        break;
      case TrafficPattern::incast:
        incast();
        break;
      case TrafficPattern::permutation:
        permutation();
        break;
      case TrafficPattern::parking_lot:
        parking_lot();
        break;
      case TrafficPattern::victim:
        victim();
        break;
      case TrafficPattern::ring_all_reduce:
        ring();
        break;
    }
  }

  void ring() {
    const auto rounds = schedules::ring(static_cast<int>(hcas_.size()), 0, 0);
    for (const auto& edge : rounds.front().steps)
      add(hcas_[static_cast<std::size_t>(edge.from)], hcas_[static_cast<std::size_t>(edge.to)]);
  }

  void add(DeviceId from, DeviceId to, std::string role = {}) {
    auto name = fmt::format("{} -> {}", host_name(from), host_name(to));
    if (!role.empty()) name += fmt::format(" ({})", role);
    flows_.push_back({std::move(name), from, to, 0, {}, -1});
  }

  [[nodiscard]] const std::string& host_name(DeviceId hca) const { return topology_.host_name(topology_.host_of(hca)); }
  [[nodiscard]] DeviceId leaf_of(DeviceId hca) const { return topology_.link(topology_.uplinks(hca).front()).to; }

  /// Of the fault "N asked for, M are there".
  bool enough(const char* what, int asked, std::size_t there) {
    if (asked <= static_cast<int>(there)) return true;
    fault(workload_.location, fmt::format("{} {} asked for, the topology has room for {}", asked, what, there),
          "use fewer, or a topology with more hosts");
    return false;
  }

  void incast() {
    const int senders = workload_.traffic.senders.value_or(static_cast<int>(hcas_.size()) - 1);
    if (!enough("senders", senders, hcas_.size() - 1)) return;
    for (int s = 1; s <= senders; ++s) add(hcas_[static_cast<std::size_t>(s)], hcas_[0]);
  }

  /// A random cycle through all hosts [Sattolo 1986]: nobody sends to himself.
  void permutation() {
    std::vector<std::size_t> to(hcas_.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = i;
    auto state = seed_;
    for (std::size_t i = to.size() - 1; i > 0; --i) std::swap(to[i], to[next_random(state) % i]);
    for (std::size_t i = 0; i < to.size(); ++i) add(hcas_[i], hcas_[to[i]]);
  }

  void parking_lot() {
    std::map<int, std::vector<DeviceId>> by_hops;
    for (std::size_t h = 1; h < hcas_.size(); ++h) {
      const auto path = topology_.path_between_hcas(hcas_[h], hcas_[0]);
      if (path) by_hops[path->network_switch_hops].push_back(hcas_[h]);
    }
    for (const auto& [hops, hosts] : by_hops) add(hosts.front(), hcas_[0], fmt::format("{} switches", hops));
    if (by_hops.empty()) return;
    const auto& farthest = by_hops.rbegin()->second;
    const auto other = std::find_if(farthest.begin(), farthest.end(),
                                    [&](DeviceId hca) { return leaf_of(hca) != leaf_of(farthest.front()); });
    const auto second = other != farthest.end() ? *other : farthest.back();
    if (second != farthest.front()) add(second, hcas_[0], fmt::format("{} switches", by_hops.rbegin()->first));
  }

  void victim() {
    const int behind = workload_.traffic.senders.value_or(1);
    const int beside = workload_.traffic.local_senders.value_or(1);
    std::vector<DeviceId> near;
    std::map<std::int32_t, std::vector<DeviceId>> far;
    for (std::size_t h = 1; h < hcas_.size(); ++h) {
      const auto leaf = leaf_of(hcas_[h]);
      if (leaf == leaf_of(hcas_[0])) {
        near.push_back(hcas_[h]);
      } else {
        far[leaf.value].push_back(hcas_[h]);
      }
    }
    const auto remote = far.empty() ? std::vector<DeviceId>{} : far.begin()->second;
    if (!enough("hosts beside the receiver (local senders and one idle host)", beside + 1, near.size()) ||
        !enough("hosts behind the trunk (senders and the victim)", behind + 1, remote.size()))
      return;
    for (int s = 0; s < behind; ++s) add(remote[static_cast<std::size_t>(s)], hcas_[0], "trunk");
    for (int s = 0; s < beside; ++s) add(near[static_cast<std::size_t>(s)], hcas_[0], "local");
    add(remote[static_cast<std::size_t>(behind)], near[static_cast<std::size_t>(beside)], "victim");
  }

  /// `host` or `host.hcaN` to an HCA; a fault and nothing when there is none.
  std::optional<DeviceId> end(const TrafficFlow& flow, const std::string& name) {
    const auto own = std::ranges::find(hcas_, name, [this](DeviceId hca) { return host_name(hca); });
    if (own != hcas_.end()) return *own;
    const auto device = topology_.find_device(name);
    if (device && topology_.kind(*device) == DeviceKind::hca && !topology_.uplinks(*device).empty()) return device;
    std::vector<std::string> known;
    for (const auto hca : hcas_) known.push_back(host_name(hca));
    const auto near = nearest_name(name, known);
    fault(flow.location, fmt::format("'{}' is no host or HCA on the fabric", name),
          near.empty() ? "write a host's name, or host.hcaN" : fmt::format("did you mean '{}'?", near));
    return std::nullopt;
  }

  void listed() {
    for (const auto& one : workload_.traffic.flows) {
      const auto from = end(one, one.from);
      const auto to = end(one, one.to);
      if (!from || !to) continue;
      if (topology_.host_of(*from) == topology_.host_of(*to)) {
        fault(one.location, fmt::format("a flow from '{}' to itself", one.from), "flows cross the fabric");
        continue;
      }
      flows_.push_back({one.name.empty() ? fmt::format("{} -> {}", one.from, one.to) : one.name, *from, *to,
                        one.bytes ? one.bytes->value : 0, one.start, one.priority.value_or(-1)});
    }
  }

  const Topology& topology_;
  const Workload& workload_;
  std::uint64_t seed_;
  std::vector<DeviceId> hcas_;  ///< the first of every host
  std::vector<FlowSpec> flows_;
  Diagnostics faults_;
};

}  // namespace

Result<std::vector<FlowSpec>> make_flows(const PlanContext& context, const Workload& workload) {
  return PatternMaker(context, workload).make();
}

}  // namespace fabricast::models::traffic
