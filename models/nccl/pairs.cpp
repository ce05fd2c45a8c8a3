// SPDX-License-Identifier: Apache-2.0
// Send-receive, all-to-all, gather and scatter: what pairs of ranks cross. Inside a host a pair uses the connection
// between the two GPUs; between hosts each channel of a pair has an HCA of its own at both ends (nics.hpp). What leaves
// and enters a GPU is the same for all its peers, so it is counted first and added once.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/nics.hpp"
#include "nccl/patterns.hpp"
#include "nccl/rccl.hpp"
#include "schedules/algorithms.hpp"

namespace fabricast::models::nccl {

namespace {

int power_of_two_up(double number) {
  int power = 1;
  while (power < number) power *= 2;
  return power;
}

/// Channels that a pair of ranks has over the network (paths.cc, ncclTopoComputeP2pChannels): 1 before 2.12, 2 before
/// 2.20. Then one for each HCA beside the GPU as far as they fill its slot, until 2.28 two as long as all ranks take
/// the channels there are less than four times, from 2.29 on one for 14 GB/s, as long as every eighth rank fits.
int network_channels(const HostNics& nics, std::size_t gpu, int ranks, int there) {
  if (nics.version() < 212) return 1;
  if (nics.version() < 220) return 2;
  int filling = 0;
  double sum = 0;
  while (filling < nics.spread(gpu) && sum < nics.slot_gb_per_s(gpu))
    sum += nics.rate_gb_per_s(nics.local_hca(gpu, filling++));
  if (nics.version() < 229) return power_of_two_up(std::max(filling, 2 * ranks > 4 * there ? 1 : 2));
  constexpr double gb_per_s_of_channel = 14;
  int channels = std::max(filling, static_cast<int>(std::ceil(sum / gb_per_s_of_channel)));
  while (channels > 1 && channels * ((ranks + 7) / 8) > there) channels /= 2;
  return power_of_two_up(channels);
}

/// Channels that each pair of GPUs of one host has at least (the same function): two for every NVLink of a direct or
/// switched connection, two without. RCCL: four for every link, eight without other hosts.
int local_channels(const PlanContext& context, const std::vector<DeviceId>& gpus, bool is_alone) {
  constexpr int most = 64;
  const int of_link = library_of(context, gpus[0]) == Library::nccl ? 2 : is_alone ? 8 : 4;
  int least = most;
  for (const auto from : gpus) {
    for (const auto to : gpus) {
      if (from == to) continue;
      const auto path = context.topology.path_in_host(from, to);
      const auto kind = kind_in_host(context, from, to, static_cast<int>(gpus.size()));
      if (kind != TransportKind::nvlink || !path || !path->uses_nvlink) return 2;
      for (const auto id : path->links) least = std::min(least, of_link * context.topology.link(id).lanes);
    }
  }
  return power_of_two_up(least);
}

}  // namespace

/// Counts the connections between hosts, by their two ends.
class PatternMaker::PairCounter {
 public:
  PairCounter(const PatternMaker& maker, Pattern& pattern, CrossingCounter& counter)
      : maker_(maker), pattern_(pattern), counter_(counter) {
    find_places();
    meet_kinds_of_hosts();
    if (maker.hosts_.size() > 1) {
      nics_.reserve(maker.hosts_.size());
      nics_.push_back(*maker.graph_.nics);
      for (auto host = maker.hosts_.begin() + 1; host != maker.hosts_.end(); ++host)
        nics_.emplace_back(maker.context_, host->gpus);
    }
    const int there = power_of_two_up(static_cast<double>(maker.graph_.channels.size()));
    for (std::size_t h = 0; h < nics_.size(); ++h) {
      if (nics_[h].hcas().empty()) throw NoRoute("a host has no HCA with a cable");
      for (std::size_t g = 0; g < nics_[h].gpus().size(); ++g) {
        const int channels = network_channels(nics_[h], g, static_cast<int>(maker.ranks_.size()), there);
        pattern_.pair_channels = std::min(pattern_.pair_channels, channels);
        const int parts = std::min(channels, nics_[h].spread(g));
        parts_ = std::lcm(parts_, parts);
      }
    }
    units_ = parts_ * maker.queue_pairs_;
    pattern_.shares = units_;
  }

  /// The share of `from` for its `offset`-th next rank.
  void count(std::size_t from, std::size_t to, std::size_t offset) {
    const auto& context = maker_.context_;
    const auto gpu = maker_.ranks_[from];
    const auto peer = maker_.ranks_[to];
    if (places_[from].host == places_[to].host) {
      const auto& route = maker_.connections_.in_host(gpu, peer);
      add(route, units_);
      if (is_merged(from)) merge_hop(pattern_.hops, route, 0);
      return;
    }
    for (int unit = 0; unit < units_; ++unit) {
      const int turn = static_cast<int>((offset - 1) % k_turns) * parts_ + unit / maker_.queue_pairs_;
      const auto [source, target] = ends(from, to, turn);
      const auto flow = flow_of_queue_pair(from * places_.size() + to, unit % maker_.queue_pairs_);
      if (!is_merged(from) && count_known(from, to, source, target, flow)) continue;
      Route route;
      if (maker_.connections_.is_tcp(source.hca) || maker_.connections_.is_tcp(target.hca)) {
        route = maker_.connections_.between_hosts(source, target, flow);
        ++uses_[gpu.value].sends;
        ++uses_[peer.value].receives;
      } else {
        route.kind = TransportKind::network;
        add_fabric(context, source.hca, target.hca, flow, route, source.gpu, target.gpu);
        keep_ends(from, to, source, target, route);
      }
      add(route, 1);
      if (is_merged(from) && unit == 0) merge_whole(std::move(route), source, target);
    }
  }

  void finish() {
    const auto& context = maker_.context_;
    std::map<int, int> device_sends;  // of a process
    int most_device_sends = 0;
    for (const auto& [key, end] : in_order(sent_)) {
      const auto segment = sender_segment(context, end.gpu, end.sender, end.hca, maker_.connections_.sending(end.gpu));
      add(segment, end.times);
      if (segment.kind == TransportKind::network)
        most_device_sends = std::max(most_device_sends, device_sends[end.sender.value] += end.times);
      add_known(end);
      uses_[end.sender.value].sends += end.times;
    }
    for (const auto& [key, end] : in_order(received_)) {
      add(receiver_segment(context, end.hca, end.gpu), end.times);
      add_known(end);
      uses_[end.gpu.value].receives += end.times;
    }
    count_ways();
    std::vector<Crossing> of_links;
    for (std::size_t link = 0; link < link_counts_.size(); ++link)
      if (link_counts_[link] > 0)
        add_network_link(context.resources, LinkId{static_cast<int>(link)}, link_counts_[link], of_links);
    for (const auto& crossing : of_links) counter_.add(crossing.resource, crossing.times);
    const double cost = context.parameters.at("nccl.socket_both_ways_cost"_key).value;
    for (auto& hops : pattern_.hops) {
      hops.count = 1;
      if (!is_network(hops.kind)) continue;
      set_process_uses(uses_, cost, false, hops);
      hops.device_sends = most_device_sends;
    }
  }

 private:
  struct Place {
    std::size_t host = 0, gpu = 0;
    int index = 0;  ///< NVML's
  };

  /// Turns repeat: a multiple of every number of HCAs a GPU may have beside it up to 16.
  static constexpr std::size_t k_turns = 720720;

  /// One end of connections: what leaves `gpu` by `sender` and `hca`, or comes in.
  struct End {
    DeviceId gpu, sender, hca;
    int times = 0;
    int known_times = 0;              ///< of them, with nothing counted but links between hosts
    bool is_known = false;            ///< what follows is set
    int way = -1;                     ///< sent: number in ways_; -1 when this HCA's ways are its own
    int target = -1;                  ///< received: number in targets_
    std::vector<Crossing> crossings;  ///< of the adapter, whatever the other end
  };
  using Ends = std::vector<std::vector<End>>;  ///< by rank; a rank has few

  static std::map<std::tuple<DeviceId, DeviceId, DeviceId>, End> in_order(const Ends& ends) {
    std::map<std::tuple<DeviceId, DeviceId, DeviceId>, End> out;
    for (const auto& of_rank : ends)
      for (const auto& end : of_rank)
        if (end.times > 0) out.emplace(std::tuple(end.gpu, end.sender, end.hca), end);
    return out;
  }

  static End& end_of(std::vector<End>& ends, DeviceId gpu, DeviceId sender, DeviceId hca) {
    for (auto& end : ends)
      if (end.sender == sender && end.hca == hca) return end;
    ends.push_back({gpu, sender, hca});
    return ends.back();
  }

  /// A connection whose ends have both been met: only the links between them are new. False when they have not.
  bool count_known(std::size_t from, std::size_t to, const NetworkEnd& source, const NetworkEnd& target,
                   std::uint64_t flow) {
    const auto& context = maker_.context_;
    if (machines_[places_[from].host] == machines_[places_[to].host]) return false;
    auto& out = end_of(sent_[from], source.gpu, source.sender, source.hca);
    auto& in = end_of(received_[to], target.gpu, {}, target.hca);
    if (!out.is_known || !in.is_known) return false;
    if (out.way >= 0) {
      auto& times = ways_[static_cast<std::size_t>(out.way)].times;
      if (times.size() < targets_.size()) times.resize(targets_.size());
      ++times[static_cast<std::size_t>(in.target)];
    } else {
      const auto links = context.topology.links_between_hcas(source.hca, target.hca, flow + context.seed);
      if (links.empty()) return false;
      for (const auto link : links) ++link_counts_[static_cast<std::size_t>(link.value)];
    }
    if (context.with_legs) pattern_.legs.push_back({source.hca, target.hca, flow + context.seed, 1, false});
    for (auto* end : {&out, &in}) {
      ++end->times;
      ++end->known_times;
    }
    return true;
  }

  /// Notes what `route` crosses at either end beside links between hosts.
  void keep_ends(std::size_t from, std::size_t to, const NetworkEnd& source, const NetworkEnd& target,
                 const Route& route) {
    auto& out = end_of(sent_[from], source.gpu, source.sender, source.hca);
    auto& in = end_of(received_[to], target.gpu, {}, target.hca);
    ++out.times;
    ++in.times;
    const int here = machines_[places_[from].host];
    if ((out.is_known && in.is_known) || here == machines_[places_[to].host]) return;
    out.crossings.clear();
    in.crossings.clear();
    const auto& resources = maker_.context_.resources;
    for (const auto& crossing : route.crossings) {
      if (resources.is_link(crossing.resource)) continue;
      const int host = resources.topology().host_of(resources.device(crossing.resource));
      if (host < 0) continue;  // links that a switch spreads packets over: count_ways() counts them
      const bool is_here = resources.topology().machine_of(host) == here;
      (is_here ? out : in).crossings.push_back(crossing);
    }
    if (!out.is_known) out.way = way_of(source.hca);
    if (!in.is_known) in.target = target_of(target.hca);
    out.is_known = in.is_known = true;
  }

  /// HCAs whose ways to any other differ in their own cable alone, and how often a way to each target is taken.
  struct Ways {
    DeviceId one, other;     ///< two of them, the same when there is but one
    std::vector<int> times;  ///< [target]
  };

  int way_of(DeviceId hca) {
    const auto shared = maker_.context_.topology.way_class(hca);
    if (!shared) return -1;
    const auto [found, is_new] = way_numbers_.try_emplace(*shared, static_cast<int>(ways_.size()));
    if (is_new) ways_.push_back({hca, hca, {}});
    auto& ways = ways_[static_cast<std::size_t>(found->second)];
    if (ways.other == ways.one) ways.other = hca;
    return found->second;
  }

  int target_of(DeviceId hca) {
    const auto [found, is_new] = target_numbers_.try_emplace(hca.value, static_cast<int>(targets_.size()));
    if (is_new) targets_.push_back(hca);
    return found->second;
  }

  /// The links of shared ways, then the senders' own cables.
  void count_ways() {
    const auto& topology = maker_.context_.topology;
    for (const auto& ways : ways_) {
      for (std::size_t t = 0; t < ways.times.size(); ++t) {
        if (ways.times[t] == 0) continue;
        const auto path = topology.path_between_hcas(ways.one == targets_[t] ? ways.other : ways.one, targets_[t],
                                                     maker_.context_.seed);
        FABRICAST_ASSERT(path.has_value(), "no way between adapters that exchange");
        for (std::size_t link = 1; link < path->links.size(); ++link)
          link_counts_[static_cast<std::size_t>(path->links[link].value)] += ways.times[t];
      }
    }
    for (const auto& of_rank : sent_)
      for (const auto& end : of_rank)
        if (end.way >= 0 && end.known_times > 0)
          link_counts_[static_cast<std::size_t>(topology.uplinks(end.hca).front().value)] += end.known_times;
  }

  void add_known(const End& end) {
    for (const auto& crossing : end.crossings)
      if (end.known_times > 0) counter_.add(crossing.resource, end.known_times * crossing.times);
  }

  /// One rank of every kind of host meets every kind of connection in all-to-all; else others cross other kinds.
  bool is_merged(std::size_t from) const {
    return maker_.collective_ != Collective::all_to_all || examples_.contains(maker_.ranks_[from]);
  }

  /// Equal hosts with the same GPUs in use count once.
  void meet_kinds_of_hosts() {
    for (const auto* host : unlike_hosts(maker_.context_.topology, maker_.hosts_)) {
      examples_.insert(host->gpus.front());
      pattern_.pair_channels =
          std::min(pattern_.pair_channels, local_channels(maker_.context_, host->gpus, maker_.hosts_.size() == 1));
    }
  }

  void find_places() {
    std::map<DeviceId, Place> by_gpu;
    for (std::size_t h = 0; h < maker_.hosts_.size(); ++h) {
      const auto& gpus = maker_.hosts_[h].gpus;
      for (std::size_t g = 0; g < gpus.size(); ++g)
        by_gpu[gpus[g]] = {h, g, nvml_index(maker_.context_.topology, gpus[g])};
    }
    for (const auto rank : maker_.ranks_) places_.push_back(by_gpu.at(rank));
    const auto& topology = maker_.context_.topology;
    for (const auto& host : maker_.hosts_)
      machines_.push_back(topology.machine_of(topology.host_of(host.gpus.front())));
    sent_.resize(places_.size());
    received_.resize(places_.size());
    link_counts_.resize(static_cast<std::size_t>(maker_.context_.topology.num_links()));
  }

  std::pair<NetworkEnd, NetworkEnd> ends(std::size_t from, std::size_t to, int turn) const {
    const auto& here = nics_[places_[from].host];
    const auto& there = nics_[places_[to].host];
    const auto sender = here.sender(places_[from].gpu, places_[to].index, turn);
    const auto hca = there.local_hca(places_[to].gpu, turn);
    return {{maker_.ranks_[from], here.hcas()[sender.hca], here.gpus()[sender.gpu]},
            {maker_.ranks_[to], there.hcas()[hca], {}}};
  }

  void add(const Route& route, int times) {
    for (const auto& crossing : route.crossings) counter_.add(crossing.resource, times * crossing.times);
    add_legs(route, times, pattern_.legs);
  }

  void merge_whole(Route route, const NetworkEnd& source, const NetworkEnd& target) {
    if (route.kind != TransportKind::socket) {
      append(route, sender_segment(maker_.context_, source.gpu, source.sender, source.hca,
                                   maker_.connections_.sending(source.gpu)));
      append(route, receiver_segment(maker_.context_, target.hca, target.gpu));
    }
    merge_hop(pattern_.hops, route, 0, source.hca);
  }

  const PatternMaker& maker_;
  Pattern& pattern_;
  CrossingCounter& counter_;
  std::vector<HostNics> nics_;   ///< by host
  std::vector<Place> places_;    ///< by rank
  std::set<DeviceId> examples_;  ///< first GPUs of hosts of each kind
  int parts_ = 1;                ///< HCAs that a pair takes in turn
  int units_ = 1;                ///< units of one pair: of every HCA one for each queue pair
  Ends sent_, received_;
  std::map<int, ProcessUse> uses_;  ///< units that a process sends and receives over the network
  std::vector<int> machines_;       ///< of [host, or virtual machine]: limits of the hardware are theirs
  std::vector<int> link_counts_;    ///< [link] of known connections
  std::vector<Ways> ways_;
  std::map<int, int> way_numbers_;     ///< by Topology::way_class
  std::vector<DeviceId> targets_;      ///< HCAs that receive
  std::map<int, int> target_numbers_;  ///< by device
};

void PatternMaker::count_pairs(Pattern& pattern, CrossingCounter& counter) const {
  const std::size_t n = ranks_.size();
  const std::size_t peers = collective_ == Collective::send_receive ? 1 : n - 1;
  PairCounter pairs(*this, pattern, counter);
  for (std::size_t from = 0; from < n; ++from) {
    if (collective_ == Collective::scatter && ranks_[from] != root_) continue;
    for (std::size_t offset = 1; offset <= peers; ++offset) {
      const auto to = schedules::peer(from, offset, n);
      if (collective_ != Collective::gather || ranks_[to] == root_) pairs.count(from, to, offset);
    }
  }
  pairs.finish();
}

}  // namespace fabricast::models::nccl
