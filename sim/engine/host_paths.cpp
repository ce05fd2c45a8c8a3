// SPDX-License-Identifier: Apache-2.0
#include "engine/host_paths.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "engine/host_limits.hpp"
#include "engine/packet_demand.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::Leg;
using models::Resources;

/// The legs of one flow that leave, or enter, one host: they share what the flow crosses there.
struct Bundle {
  std::vector<std::uint32_t> legs;
  std::vector<std::pair<DeviceId, int>> ports;  ///< with the times of the legs through it
  int times = 0;                                ///< of all legs
  bool is_receiving = false;
  double alone = k_unlimited;  ///< flow bytes/s by what nobody else uses
};

/// One crossing of a bundle.
struct User {
  int resource = 0;
  std::uint32_t bundle = 0;
  int times = 1;
};

class HostPathMaker {
 public:
  HostPathMaker(const ParameterSet& parameters, const Resources& resources, const std::vector<Job>& jobs)
      : parameters_(parameters), resources_(resources), topology_(resources.topology()), jobs_(jobs) {}

  HostPaths make() {
    for (const auto& job : jobs_) {
      out_.first_leg.emplace_back();
      for (const auto& round : job.plan->program.nodes) {
        out_.first_leg.back().emplace_back();
        for (const auto& flow : round.flows) {
          out_.first_leg.back().back().push_back(num_legs_);
          add_flow(flow);
        }
      }
    }
    stages_of_.resize(bundles_.size());
    add_shared_stages();
    add_own_stages();
    set_paths();
    return std::move(out_);
  }

 private:
  void add_flow(const Flow& flow) {
    if (!is_on_fabric(topology_, flow)) {
      Bundle all;
      all.legs = {num_legs_++};
      all.times = 1;
      all.alone = flow.rate_cap;
      for (const auto& crossing : flow.crossings)
        users_.push_back({crossing.resource, number_of_bundles(), crossing.times});
      bundles_.push_back(std::move(all));
      return;
    }
    const auto ends = add_bundles(flow);
    for (const auto& crossing : flow.crossings) {
      if (is_network_limit(resources_, crossing.resource)) continue;
      const int host = topology_.host_of(resources_.device(crossing.resource));
      const auto sending = ends.find({host, false});
      const auto end = sending != ends.end() ? sending : ends.find({host, true});
      if (end != ends.end()) users_.push_back({crossing.resource, end->second, crossing.times});
    }
  }

  /// {host, is receiving} -> bundle.
  std::map<std::pair<int, bool>, std::uint32_t> add_bundles(const Flow& flow) {
    std::map<std::pair<int, bool>, std::uint32_t> ends;
    for (const auto& leg : flow.legs) {
      for (const bool is_receiving : {false, true}) {
        const auto hca = is_receiving ? leg.to : leg.from;
        const auto [it, is_new] = ends.try_emplace({topology_.host_of(hca), is_receiving}, number_of_bundles());
        if (is_new) {
          bundles_.emplace_back();
          bundles_.back().is_receiving = is_receiving;
          if (!is_receiving) bundles_.back().alone = flow.rate_cap;
        }
        auto& bundle = bundles_[it->second];
        bundle.legs.push_back(num_legs_);
        bundle.times += leg.times;
        auto& ports = bundle.ports;
        const auto port = std::ranges::find(ports, hca, &std::pair<DeviceId, int>::first);
        if (port == ports.end()) {
          ports.emplace_back(hca, leg.times);
        } else {
          port->second += leg.times;
        }
      }
      ++num_legs_;
    }
    return ends;
  }

  [[nodiscard]] std::uint32_t number_of_bundles() const { return static_cast<std::uint32_t>(bundles_.size()); }

  double port_rate(DeviceId hca) {
    auto& rate = port_rates_[hca];
    if (rate == 0) rate = payload_rate(topology_, parameters_, hca);
    return rate;
  }

  /// Whether the ports of all users together cannot fill `capacity`.
  bool is_never_full(const std::vector<User>& users, double capacity) {
    std::map<std::pair<DeviceId, bool>, double> most;
    for (const auto& user : users) {
      const auto& bundle = bundles_[user.bundle];
      if (bundle.ports.empty()) return false;
      for (const auto& [hca, times] : bundle.ports) {
        auto& weight = most[{hca, bundle.is_receiving}];
        weight = std::max(weight, static_cast<double>(user.times) / bundle.times);
      }
    }
    double demand = 0;
    for (const auto& [port, weight] : most) demand += weight * port_rate(port.first);
    return capacity >= k_near * demand;
  }

  void add_shared_stages() {
    std::ranges::stable_sort(users_, {}, &User::resource);
    std::map<std::vector<std::pair<std::uint32_t, int>>, std::uint32_t> by_users;
    for (auto first = users_.begin(); first != users_.end();) {
      const auto last = std::find_if(first, users_.end(), [&](const User& u) { return u.resource != first->resource; });
      const std::vector<User> users(first, last);
      const double capacity = resources_.capacity(first->resource);
      first = last;
      if (users.size() == 1) {
        auto& alone = bundles_[users[0].bundle].alone;
        alone = std::min(alone, capacity / users[0].times);
        continue;
      }
      if (is_never_full(users, capacity)) continue;
      std::vector<std::pair<std::uint32_t, int>> who;
      for (const auto& user : users) who.emplace_back(user.bundle, user.times);
      const auto [it, is_new] = by_users.try_emplace(std::move(who), new_stage(capacity, true));
      if (is_new) {
        for (const auto& [bundle, times] : it->first)
          stages_of_[bundle].push_back({it->second, static_cast<double>(times)});
      } else {
        drop_last_stage();
        out_.capacities[it->second] = std::min(out_.capacities[it->second], capacity);
      }
    }
  }

  void add_own_stages() {
    for (std::uint32_t b = 0; b < bundles_.size(); ++b) {
      const auto& bundle = bundles_[b];
      double demand = bundle.ports.empty() ? k_unlimited : 0;
      for (const auto& [hca, times] : bundle.ports) demand += port_rate(hca);
      if (bundle.alone * bundle.times >= k_near * demand || bundle.alone == k_unlimited) continue;
      stages_of_[b].push_back({new_stage(bundle.alone, false), 1.0});
    }
  }

  std::uint32_t new_stage(double capacity, bool is_shared) {
    out_.capacities.push_back(capacity);
    out_.is_shared.push_back(is_shared ? 1 : 0);
    return static_cast<std::uint32_t>(out_.capacities.size() - 1);
  }

  void drop_last_stage() {
    out_.capacities.pop_back();
    out_.is_shared.pop_back();
  }

  void set_paths() {
    out_.path_of_leg.resize(num_legs_);
    for (std::uint32_t b = 0; b < bundles_.size(); ++b) {
      if (stages_of_[b].empty()) continue;
      for (const auto leg : bundles_[b].legs) {
        auto& path = out_.path_of_leg[leg];
        if (path == 0) {
          path = static_cast<std::uint32_t>(out_.paths.size());
          out_.paths.emplace_back();
        }
        auto& side = bundles_[b].is_receiving ? out_.paths[path].receive : out_.paths[path].send;
        for (const auto& use : stages_of_[b]) side.push_back({use.stage, use.times / bundles_[b].times});
      }
    }
  }

  const ParameterSet& parameters_;
  const Resources& resources_;
  const Topology& topology_;
  const std::vector<Job>& jobs_;
  std::vector<Bundle> bundles_;
  std::vector<User> users_;
  std::vector<std::vector<LegStages::Use>> stages_of_;  ///< [bundle], times per byte of the flow
  std::map<DeviceId, double> port_rates_;
  std::uint32_t num_legs_ = 0;
  HostPaths out_;
};

}  // namespace

double HostPaths::slowest(const std::vector<LegStages::Use>& side) const {
  double seconds_per_byte = 0;
  for (const auto& use : side) seconds_per_byte = std::max(seconds_per_byte, use.times / capacities[use.stage]);
  return seconds_per_byte;
}

HostPaths make_host_paths(const ParameterSet& parameters, const Resources& resources, const std::vector<Job>& jobs) {
  return HostPathMaker(parameters, resources, jobs).make();
}

}  // namespace fabricast::engine
