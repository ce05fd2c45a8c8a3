// SPDX-License-Identifier: Apache-2.0
#include "nccl/patterns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/collnet.hpp"
#include "paths/binding.hpp"
#include "schedules/algorithms.hpp"

namespace fabricast::models::nccl {

bool is_peer_to_peer(Collective collective) { return collective == Collective::send_receive || has_parts(collective); }

bool has_parts(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::gather || collective == Collective::scatter;
}

bool is_network(TransportKind kind) {
  return kind == TransportKind::network || kind == TransportKind::network_staged || kind == TransportKind::socket;
}

std::uint64_t flow_of_queue_pair(std::uint64_t flow, int queue_pair) {
  return flow + (static_cast<std::uint64_t>(queue_pair) << 32U);
}

/// Inside a host one connection carries what all queue pairs of the network do.
void PatternMaker::count_inside(const Route& route, Pattern& pattern, CrossingCounter& counter) const {
  for (const auto& crossing : route.crossings) counter.add(crossing.resource, queue_pairs_ * crossing.times);
  add_legs(route, queue_pairs_, pattern.legs);
}

/// One connection between hosts, `times` times; each of its queue pairs carries one unit by its own way.
Route PatternMaker::count_between(const NetworkEnd& from, const NetworkEnd& to, std::uint64_t flow, int times,
                                  Pattern& pattern, CrossingCounter& counter) const {
  Route first;
  for (int q = 0; q < queue_pairs_; ++q) {
    auto route = connections_.between_hosts(from, to, flow_of_queue_pair(flow, q));
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, times * crossing.times);
    add_legs(route, times, pattern.legs);
    if (q == 0) first = std::move(route);
  }
  return first;
}

/// One edge of a channel's ring.
Route PatternMaker::count_hop(std::size_t channel, const Place& from, const Place& to, Pattern& pattern,
                              CrossingCounter& counter) const {
  const auto& here = graph_.channels[channel][from.host];
  const auto& there = graph_.channels[channel][to.host];
  if (from.host != to.host)
    return count_between({here.order[from.position], here.hca_out, here.sender},
                         {there.order[to.position], there.hca, {}}, channel, 1, pattern, counter);
  auto route = connections_.in_host(here.order[from.position], there.order[to.position]);
  count_inside(route, pattern, counter);
  return route;
}

/// A ring through all ranks, host by host; broadcast and reduce leave out the edge that closes it.
void PatternMaker::count_ring(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  std::vector<Place> places;
  for (std::size_t h = 0; h < hosts_.size(); ++h)
    for (std::size_t p = 0; p < hosts_[h].gpus.size(); ++p) places.push_back({h, p});
  const auto n = static_cast<int>(places.size());
  const auto edges = schedules::ring(n, 0, 0).front().steps;
  const double passes = collective_ == Collective::all_reduce ? 2 : 1;
  const double laps = is_chain(collective_) ? 1 : schedules::ring_rounds(n, passes) / n;
  std::set<DeviceId> entries;
  const auto over_network = [](const std::vector<Hops>& hops) {
    double count = 0;
    for (const auto& one : hops) count += is_network(one.kind) ? one.count : 0;
    return count;
  };
  for (std::size_t c = 0; c < channels; ++c) {
    entries.insert(graph_.channels[c].front().order.front());
    std::vector<Hops> hops;
    for (const auto& edge : edges) {
      const auto& from = places[static_cast<std::size_t>(edge.from)];
      const auto& to = places[static_cast<std::size_t>(edge.to)];
      // Nothing goes back into a broadcast's root, nor out of a reduce's.
      const auto& end = collective_ == Collective::broadcast ? to : from;
      if (is_chain(collective_) && graph_.channels[c][end.host].order[end.position] == root_) continue;
      const auto route = count_hop(c, from, to, pattern, counter);
      if (c == 0 || is_chain(collective_)) merge_hop(hops, route, laps, graph_.channels[c][from.host].hca_out);
    }
    // Of a chain the channel that begins with its root, or ends there: each root of equal hosts has one. What the
    // others cost more was taught with it (Chain::paid_hops).
    if (c == 0 || (is_chain(collective_) && over_network(hops) < over_network(pattern.hops))) pattern.hops = hops;
  }
  pattern.entries = static_cast<int>(entries.size());
}

/// Trees of channels: those of the search have the first one, their doubles the second, so that an operation on few
/// channels uses the first alone (NVIDIA/nccl src/graph/connect.cc, connectTrees). Every head of NVLink SHARP has both,
/// channel by channel in turn (connectNvls).
PatternMaker::Trees PatternMaker::trees_of(Algorithm algorithm, std::size_t channels) const {
  const bool are_of_heads = algorithm == Algorithm::nvls;
  const auto of_head = std::min<std::size_t>(2, channels);
  const auto found = static_cast<std::size_t>(graph_.graph_channels);
  Trees out;
  for (std::size_t t = 0; t < (are_of_heads ? of_head * graph_.heads.front().size() : channels); ++t) {
    auto& tree = out.emplace_back();
    tree.is_second = are_of_heads ? t % of_head == 1 : t % (2 * found) >= found;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (are_of_heads) {
        const auto& head = graph_.heads[h][t / of_head];
        tree.ends.push_back({head.gpu, head.hca, {}});
      } else {
        tree.ends.push_back({graph_.channels[t][h].tree_gpu, graph_.channels[t][h].tree_hca, {}});
      }
    }
  }
  return out;
}

/// The edges from every host to its parent, up (reduce) and down (broadcast). A chunk passes the height of the tree of
/// hosts each way, by edges as slow as the slowest.
void PatternMaker::count_trees(const Trees& trees, Pattern& pattern, CrossingCounter& counter) const {
  const auto n = static_cast<int>(hosts_.size());
  const double height = std::ceil(std::log2(static_cast<double>(n)));
  std::array<std::vector<Hops>, 2> ways;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    for (int host = 0; host < n; ++host) {
      const int parent = schedules::double_tree_parent(host, n, trees[t].is_second);
      if (parent < 0) continue;
      const auto& child = trees[t].ends[static_cast<std::size_t>(host)];
      const auto& root = trees[t].ends[static_cast<std::size_t>(parent)];
      const auto up = count_between(child, root, t, 1, pattern, counter);
      const auto down = count_between(root, child, t, 1, pattern, counter);
      if (t > 0) continue;
      std::array<std::vector<Hops>, 2> edge;
      merge_hop(edge[0], up, height, child.hca);
      merge_hop(edge[1], down, height, root.hca);
      for (std::size_t way = 0; way < ways.size(); ++way) keep_slowest(ways[way], std::move(edge[way]));
    }
  }
  for (const auto& way : ways)
    for (const auto& hops : way) merge_hops(pattern.hops, hops);
}

/// What an NVLink leaves the chunks of a tree that pass it one way. First ones meet those of channels that take it at
/// the same place of their chain, later ones those of all.
class PatternMaker::ChunkCounter {
 public:
  ChunkCounter(const Resources& resources, Pattern& pattern) : resources_(resources), pattern_(pattern) {}

  void add(const Route& route, std::size_t place) {
    for (const auto& crossing : route.crossings) {
      if (!is_link_of(resources_, crossing, LinkKind::nvlink)) continue;
      const double capacity = resources_.capacity(crossing.resource);
      const auto set_slowest = [&](double& slowest, int uses) {
        slowest = slowest > 0 ? std::min(slowest, capacity / uses) : capacity / uses;
      };
      set_slowest(pattern_.first_chunk_rate, at_place_[{crossing.resource, place}] += crossing.times);
      set_slowest(pattern_.chunk_rate, all_[crossing.resource] += crossing.times);
    }
  }

 private:
  const Resources& resources_;
  Pattern& pattern_;
  std::map<std::pair<int, std::size_t>, int> at_place_;
  std::map<int, int> all_;
};

/// Double binary tree over hosts, a chain inside each.
void PatternMaker::count_tree(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  ChunkCounter chunks(context_.resources, pattern);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const auto& order = graph_.channels[c][h].order;
      std::vector<Hops> chain;
      for (std::size_t p = 0; p + 1 < order.size(); ++p) {
        const auto& down = connections_.in_host(order[p], order[p + 1]);
        count_inside(down, pattern, counter);
        chunks.add(down, p);
        count_inside(connections_.in_host(order[p + 1], order[p]), pattern, counter);
        if (c == 0) merge_hop(chain, down, 2);
      }
      keep_slowest(pattern.hops, std::move(chain));
    }
  }
  count_trees(trees_of(Algorithm::tree, channels), pattern, counter);
}

/// A GPU's port to the NVSwitches, both ways.
void PatternMaker::count_port(const HostGroup& host, DeviceId gpu, int times, CrossingCounter& counter) const {
  const auto path = context_.topology.path_in_host(gpu, host.gpus[gpu == host.gpus[0] ? 1 : 0]);
  FABRICAST_ASSERT(path && !path->links.empty(), "GPUs without NVSwitch");
  counter.add(path->links.front().value, queue_pairs_ * times);
  counter.add(context_.topology.reverse(path->links.front()).value, queue_pairs_ * times);
}

/// The fabric's switches reduce: in every channel each host's adapter sends the shares of all its GPUs once and
/// receives them once.
void PatternMaker::count_reducing_switches(Pattern& pattern, CrossingCounter& counter) const {
  int most_gpus = 0;
  for (const auto& host : hosts_) most_gpus = std::max(most_gpus, static_cast<int>(host.gpus.size()));
  for (std::size_t c = 0; c < static_cast<std::size_t>(graph_.graph_channels); ++c) {
    // With a limit of channels below those of the search the ones left carry all.
    const auto& channel = graph_.channels[c % graph_.channels.size()];
    const auto order = order_by_leaf(context_.topology, channel);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto& here = channel[order[i]];
      const auto& next = channel[order[(i + 1) % order.size()]];
      const auto g = static_cast<int>(hosts_[order[i]].gpus.size());
      const auto route =
          count_between({here.tree_gpu, here.tree_hca, {}}, {next.tree_gpu, next.tree_hca, {}}, c, g, pattern, counter);
      if (c == 0) merge_hop(pattern.hops, route, 0, here.tree_hca);
    }
  }
  for (auto& hops : pattern.hops) {
    if (!is_network(hops.kind)) continue;
    hops.count = 1;
    hops.connection_units = most_gpus;
  }
}

/// PAT among hosts of one GPU: at every distance each sends blocks to the host so far on. One unit of the flow is a
/// block of a rank.
void PatternMaker::count_pat(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  const auto n = hosts_.size();
  const auto blocks = schedules::aggregated_tree_blocks(static_cast<int>(n));
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t h = 0; h < n; ++h) {
      const auto& here = graph_.channels[c][h];
      std::vector<Hops> levels;
      for (std::size_t level = 0; level < blocks.size(); ++level) {
        const auto& there = graph_.channels[c][schedules::peer(h, std::size_t{1} << level, n)];
        const auto route = count_between({here.order.back(), here.hca_out, here.sender},
                                         {there.order.front(), there.hca, {}}, c, blocks[level], pattern, counter);
        if (c == 0) merge_hop(levels, route, 1, here.hca_out);
      }
      keep_slowest(pattern.hops, std::move(levels));
    }
  }
  pattern.units *= static_cast<int>(n) - 1;
  for (auto& hops : pattern.hops) hops.connection_units = static_cast<int>(n) - 1;
}

/// CollNetDirect with g GPUs per host: each hands g - 1 shares to others and its own reduced share to g - 1. One unit
/// of the flow is S / (g x HCAs).
void PatternMaker::count_collnet(Pattern& pattern, CrossingCounter& counter) const {
  for (const auto& host : hosts_) {
    const auto g = static_cast<int>(host.gpus.size());
    for (const auto gpu : host.gpus)
      if (g > 1) count_port(host, gpu, 2 * (g - 1) * graph_.graph_channels, counter);
  }
  if (ranks_.size() > hosts_.size()) pattern.hops.push_back({TransportKind::nvlink, 2, {}, {}, {}});
  count_reducing_switches(pattern, counter);
}

/// NVLink SHARP: the switch reduces and multicasts. Each of h heads reduces S/h: every GPU lets its whole buffer be
/// read (S out) and receives the whole result (S in); a head reads its reduced share (S/h in) and stores it (S/h out).
/// Between hosts a head's HCA carries its share up and down two trees, half of it each. One unit of the flow is S/h in
/// one host, S / (2 h) in several; where the fabric's switches reduce, S / (g x HCAs), as if all g GPUs were heads.
void PatternMaker::count_nvls(std::size_t channels, bool uses_collnet, Pattern& pattern,
                              CrossingCounter& counter) const {
  pattern.hops.push_back({TransportKind::nvlink, 1, {}, {}, {}});
  const bool is_alone = hosts_.size() == 1;
  const bool has_trees = !is_alone && !uses_collnet;
  const int units = is_alone       ? 1
                    : uses_collnet ? graph_.graph_channels
                                   : static_cast<int>(std::min<std::size_t>(2, channels));
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const auto& host = hosts_[h];
    const auto& heads = graph_.heads[h];
    const auto shares = static_cast<int>(has_trees || is_alone ? heads.size() : host.gpus.size());
    for (const auto gpu : host.gpus) {
      const bool is_head = uses_collnet || std::ranges::find(heads, gpu, &NvlsHead::gpu) != heads.end();
      count_port(host, gpu, (is_head ? shares + 1 : shares) * units, counter);
    }
  }
  if (uses_collnet && !is_alone) count_reducing_switches(pattern, counter);
  if (has_trees) count_trees(trees_of(Algorithm::nvls, channels), pattern, counter);
}

void PatternMaker::count_adapter_uses(Pattern& pattern) const {
  const auto& resources = context_.resources;
  for (auto& hops : pattern.hops) {
    for (const auto& crossing : pattern.crossings) {
      if (hops.adapter.value >= 0 && !resources.is_link(crossing.resource) &&
          resources.device(crossing.resource) == hops.adapter)
        hops.adapter_uses = std::max(hops.adapter_uses, static_cast<int>(crossing.times));
    }
  }
}

/// One process, one proxy thread. In rings it serves the channels that enter or leave a host by its GPU, one way each.
PatternMaker::Processes PatternMaker::processes_of_rings(Algorithm algorithm, std::size_t channels) const {
  Processes out;
  const bool is_ring = algorithm == Algorithm::ring || algorithm == Algorithm::pat;
  for (std::size_t c = 0; c < channels; ++c) {
    for (const auto& in_host : graph_.channels[c % graph_.channels.size()]) {
      ++out.uses[is_ring ? in_host.order.front().value : in_host.tree_gpu.value].receives;
      ++out.uses[is_ring ? in_host.order.back().value : in_host.tree_gpu.value].sends;
    }
  }
  return out;
}

/// In trees of hosts a GPU exchanges both ways with the host above its own and with those below: half of the hosts have
/// two below them in one tree and none in the other. In one hop meet the messages of those below in all channels.
PatternMaker::Processes PatternMaker::processes_of_trees(const Trees& trees) const {
  Processes out;
  std::vector<int> below(hosts_.size());
  std::map<int, int> channels;
  for (std::size_t t = 0; t < trees.size(); ++t) {
    const auto& ends = trees[t].ends;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int most = ++channels[ends[h].gpu.value];
      out.meeting = std::max(out.meeting, most);
      const auto parent =
          schedules::double_tree_parent(static_cast<int>(h), static_cast<int>(hosts_.size()), trees[t].is_second);
      if (parent < 0) continue;
      if (t == 0) ++below[static_cast<std::size_t>(parent)];
      for (const auto end : {h, static_cast<std::size_t>(parent)}) {
        auto& use = out.uses[ends[end].gpu.value];
        ++use.sends;
        ++use.receives;
      }
    }
  }
  out.meeting *= *std::ranges::max_element(below);
  return out;
}

void PatternMaker::count_process_uses(Algorithm algorithm, std::size_t channels, Pattern& pattern) const {
  const bool is_of_trees = algorithm == Algorithm::tree || algorithm == Algorithm::nvls;
  // Processes of all hosts have numbers of their own.
  const auto processes =
      is_of_trees ? processes_of_trees(trees_of(algorithm, channels)) : processes_of_rings(algorithm, channels);
  const double cost = context_.parameters.at("nccl.socket_both_ways_cost"_key).value;
  for (auto& hops : pattern.hops) {
    if (!is_network(hops.kind)) continue;
    set_process_uses(processes.uses, cost, is_chain(collective_), hops);
    if (is_of_trees) hops.process_meeting = processes.meeting;
  }
}

Pattern PatternMaker::make(Algorithm algorithm, std::size_t channels, bool uses_collnet) const {
  Pattern pattern;
  CrossingCounter counter;
  if (!is_peer_to_peer(collective_)) pattern.units = queue_pairs_;
  if (is_peer_to_peer(collective_) || algorithm == Algorithm::msccl) {
    count_pairs(pattern, counter);
  } else if (algorithm == Algorithm::tree) {
    count_tree(channels, pattern, counter);
  } else if (algorithm == Algorithm::nvls) {
    count_nvls(channels, uses_collnet, pattern, counter);
  } else if (algorithm == Algorithm::collnet) {
    count_collnet(pattern, counter);
  } else if (algorithm == Algorithm::pat) {
    count_pat(channels, pattern, counter);
  } else {
    count_ring(channels, pattern, counter);
  }
  pattern.crossings = counter.take();
  count_adapter_uses(pattern);
  if (hosts_.size() > 1 && !is_peer_to_peer(collective_)) count_process_uses(algorithm, channels, pattern);
  pattern.legs = merged_legs(std::move(pattern.legs));
  if (context_.runs_alone && !context_.full_expansion && !context_.with_legs)
    keep_binding_only(context_.resources, {&pattern.crossings});
  return pattern;
}

}  // namespace fabricast::models::nccl
