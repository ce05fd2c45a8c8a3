// SPDX-License-Identifier: Apache-2.0
#include "nccl/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "nccl/channels.hpp"
#include "nccl/tree.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

namespace {

Collective collective_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::all_gather_perf:
      return Collective::all_gather;
    case Benchmark::reduce_scatter_perf:
      return Collective::reduce_scatter;
    case Benchmark::broadcast_perf:
      return Collective::broadcast;
    case Benchmark::reduce_perf:
      return Collective::reduce;
    case Benchmark::alltoall_perf:
      return Collective::all_to_all;
    case Benchmark::sendrecv_perf:
      return Collective::send_receive;
    default:
      return Collective::all_reduce;
  }
}

bool is_peer_to_peer(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::send_receive;
}

/// Hops of one kind on the critical path of a chunk.
struct Hops {
  TransportKind kind = TransportKind::nvlink;
  double count = 0;
  Duration link_latency;     ///< of one hop: links and switches
  Duration adapter_latency;  ///< of one hop: HCAs
};

/// What one algorithm does on the channels in use: hops of a chunk, and how often each resource is crossed.
struct Pattern {
  std::vector<Hops> hops;
  std::vector<Crossing> crossings;  ///< by all channels together
  bool has_network = false;
};

class CollectivePlanner : public Planner {
 public:
  CollectivePlanner(const PlanContext& context, const Workload& workload, std::vector<DeviceId> ranks)
      : context_(context),
        workload_(workload),
        ranks_(std::move(ranks)),
        hosts_(group_by_host(context.topology, ranks_)),
        collective_(collective_of(workload.benchmark)) {
    if (ranks_.size() > 1) graph_ = search_channels(context_, hosts_);
    if (workload_.channels) fit_channels(static_cast<std::size_t>(*workload_.channels));
    set_facts();
  }

  [[nodiscard]] OperationPlan plan(Bytes size) const override;
  [[nodiscard]] int num_ranks() const override { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int num_hosts() const override { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const auto rank : ranks_) {
      names.push_back(context_.topology.device(rank).name);
      if (names.size() == 16 && ranks_.size() > 16) {
        names.emplace_back("...");
        break;
      }
    }
    return names;
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override;
  [[nodiscard]] std::vector<std::string> assumptions() const override;
  [[nodiscard]] double bus_factor() const override {
    const double n = num_ranks();
    switch (collective_) {
      case Collective::all_reduce:
        return 2 * (n - 1) / n;
      case Collective::all_gather:
      case Collective::reduce_scatter:
      case Collective::all_to_all:
        return (n - 1) / n;
      default:
        return 1;
    }
  }

 private:
  void fit_channels(std::size_t wanted) {
    if (graph_.channels.empty()) return;
    const auto found = graph_.channels.size();
    while (graph_.channels.size() < wanted) graph_.channels.push_back(graph_.channels[graph_.channels.size() % found]);
    graph_.channels.resize(wanted);
  }

  void set_facts() {
    facts_.num_ranks = num_ranks();
    facts_.num_nodes = num_hosts();
    facts_.compute_capability = static_cast<int>(device_value(context_, ranks_[0], "compute_capability", 70));
    facts_.is_nvlink = graph_.is_nvlink;
    facts_.is_amd = processor_of(context_.topology, ranks_[0]).rfind("epyc", 0) == 0;
    facts_.ll128_allowed = graph_.ll128_allowed;
    facts_.nvls_allowed = context_.software.nccl_nvls && graph_.has_nvswitch && facts_.compute_capability >= 90;
    facts_.graph_channels = graph_.graph_channels;
    facts_.node_gb_per_s = graph_.node_gb_per_s;
    facts_.channel_gb_per_s = graph_.channel_gb_per_s;
    const auto& version = context_.software.nccl_version;
    const auto dot = version.find('.');
    facts_.version =
        100 * std::atoi(version.c_str()) + (dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1));
    const char* names[] = {"volta", "ampere", "hopper"};
    architecture_ =
        facts_.compute_capability >= 90 ? names[2] : (facts_.compute_capability >= 80 ? names[1] : names[0]);
  }

  /// `nccl.<what>.<protocol>.<last>`, a more specific one by architecture first.
  [[nodiscard]] const Parameter& parameter(const std::string& what, std::string_view last = {}) const {
    const auto name = last.empty() ? what : fmt::format("{}.{}", what, last);
    return context_.parameters.first_of({fmt::format("{}.{}", name, architecture_), name});
  }

  [[nodiscard]] const Pattern& pattern(Algorithm algorithm, std::size_t channels) const {
    const auto [it, is_new] = patterns_.try_emplace({algorithm, channels});
    if (is_new) it->second = make_pattern(algorithm, channels);
    return it->second;
  }
  [[nodiscard]] Pattern make_pattern(Algorithm algorithm, std::size_t channels) const;
  void count_ring(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_chain(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_tree(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const;
  void count_nvls(Pattern& pattern, CrossingCounter& counter) const;
  void count_pairs(Pattern& pattern, CrossingCounter& counter) const;
  [[nodiscard]] Route hop(std::size_t channel, std::size_t host, std::size_t position) const;
  void keep_binding_only(std::vector<Crossing>& crossings) const;

  void limit_nvlink_stores(Flow& flow, const Choice& choice) const;
  void add_launch(OperationPlan& plan, Algorithm algorithm, Protocol protocol) const;
  [[nodiscard]] Term hop_term(const Hops& hops, Algorithm algorithm, Protocol protocol, double loops) const;
  void add_steps(OperationPlan& plan, const Choice& choice, std::size_t channels) const;

  PlanContext context_;
  Workload workload_;
  std::vector<DeviceId> ranks_;
  std::vector<HostGroup> hosts_;
  Collective collective_;
  ChannelGraph graph_;
  CommunicatorFacts facts_;
  std::string architecture_;
  mutable std::map<std::pair<Algorithm, std::size_t>, Pattern> patterns_;
};

/// The connection out of position `position` of a host's chain; the last position leads to the next host.
Route CollectivePlanner::hop(std::size_t channel, std::size_t host, std::size_t position) const {
  const auto& here = graph_.channels[channel][host];
  if (position + 1 < here.order.size()) return route_in_host(context_, here.order[position], here.order[position + 1]);
  const auto& next = graph_.channels[channel][(host + 1) % hosts_.size()];
  if (hosts_.size() == 1) return route_in_host(context_, here.order.back(), here.order.front());
  return route_between_hosts(context_, here.order.back(), here.hca, next.hca, next.order.front(), channel);
}

void merge_hop(std::vector<Hops>& hops, const Route& route, double count) {
  for (auto& known : hops) {
    if (known.kind != route.kind) continue;
    known.count += count;
    known.link_latency = std::max(known.link_latency, route.latency);
    known.adapter_latency = std::max(known.adapter_latency, route.adapter_latency);
    return;
  }
  hops.push_back({route.kind, count, route.latency, route.adapter_latency});
}

bool is_network(TransportKind kind) {
  return kind == TransportKind::network || kind == TransportKind::network_staged || kind == TransportKind::socket;
}

void CollectivePlanner::count_ring(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  const double n = num_ranks();
  const double laps = collective_ == Collective::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      for (std::size_t p = 0; p < hosts_[h].gpus.size(); ++p) {
        const auto route = hop(c, h, p);
        for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
        if (c == 0) merge_hop(pattern.hops, route, laps);
      }
    }
  }
}

/// Broadcast and reduce: a chain from the root through all ranks, i.e. the ring without its closing hop.
void CollectivePlanner::count_chain(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      for (std::size_t p = 0; p < hosts_[h].gpus.size(); ++p) {
        if (h + 1 == hosts_.size() && p + 1 == hosts_[h].gpus.size()) continue;
        const auto route = hop(c, h, p);
        for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
        if (c == 0) merge_hop(pattern.hops, route, 1);
      }
    }
  }
}

/// Double binary tree over hosts, a chain inside each; every edge is used up (reduce) and down (broadcast).
void CollectivePlanner::count_tree(std::size_t channels, Pattern& pattern, CrossingCounter& counter) const {
  const auto add = [&](const Route& route) {
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
  };
  std::size_t longest = 1;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const auto& here = graph_.channels[c][h];
      longest = std::max(longest, here.order.size());
      for (std::size_t p = 0; p + 1 < here.order.size(); ++p) {
        const auto down = route_in_host(context_, here.order[p], here.order[p + 1]);
        add(down);
        add(route_in_host(context_, here.order[p + 1], here.order[p]));
        if (c == 0 && h == 0) merge_hop(pattern.hops, down, 2);
      }
      const int parent = tree_parent(static_cast<int>(h), num_hosts(), c >= channels / 2 && channels > 1);
      if (parent < 0) continue;
      const auto& above = graph_.channels[c][static_cast<std::size_t>(parent)];
      const auto up = route_between_hosts(context_, here.order.front(), here.hca, above.hca, above.order.front(), c);
      add(up);
      add(route_between_hosts(context_, above.order.front(), above.hca, here.hca, here.order.front(), c));
      if (c == 0) merge_hop(pattern.hops, up, 0);
    }
  }
  for (auto& hops : pattern.hops) {
    if (is_network(hops.kind)) hops.count = 2 * std::ceil(std::log2(static_cast<double>(num_hosts())));
  }
}

/// NVLink SHARP: the switch reduces and multicasts. With g GPUs per host each lets its whole buffer be read (S out) and
/// stores its share (S/g out); it reads its reduced share (S/g in) and receives the whole result (S in). Between hosts
/// every HCA carries its share up and down, half of it over each of two trees. One unit of the flow is S / (2 g x
/// HCAs).
void CollectivePlanner::count_nvls(Pattern& pattern, CrossingCounter& counter) const {
  const auto trees = hosts_.size() > 1 ? 2 * static_cast<std::size_t>(graph_.graph_channels) : 1;
  for (const auto& host : hosts_) {
    const auto g = static_cast<int>(host.gpus.size());
    for (int i = 0; i < g && g > 1; ++i) {
      const auto path =
          context_.topology.path_in_host(host.gpus[static_cast<std::size_t>(i)], host.gpus[i == 0 ? 1 : 0]);
      FABRICAST_ASSERT(path && !path->links.empty(), "NVLS without NVSwitch");
      counter.add(path->links.front().value, (g + 1) * static_cast<int>(trees));
      counter.add(context_.topology.reverse(path->links.front()).value, (g + 1) * static_cast<int>(trees));
    }
  }
  pattern.hops.push_back({TransportKind::nvlink, 1, {}, {}});
  if (hosts_.size() == 1) return;
  for (std::size_t c = 0; c < trees; ++c) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const int parent = tree_parent(static_cast<int>(h), num_hosts(), c >= trees / 2);
      if (parent < 0) continue;
      const auto& here = graph_.channels[c][h];
      const auto& above = graph_.channels[c][static_cast<std::size_t>(parent)];
      const auto up = route_between_hosts(context_, here.order.front(), here.hca, above.hca, above.order.front(), c);
      const auto down = route_between_hosts(context_, above.order.front(), above.hca, here.hca, here.order.front(), c);
      const auto g = static_cast<int>(hosts_[h].gpus.size());
      for (const auto& crossing : up.crossings) counter.add(crossing.resource, g * crossing.times);
      for (const auto& crossing : down.crossings) counter.add(crossing.resource, g * crossing.times);
      if (c == 0) merge_hop(pattern.hops, up, 0);
    }
  }
  for (auto& hops : pattern.hops) {
    if (is_network(hops.kind)) hops.count = 2 * std::ceil(std::log2(static_cast<double>(num_hosts())));
  }
}

/// Send-receive goes round the ranks; all-to-all sends one share to everybody.
void CollectivePlanner::count_pairs(Pattern& pattern, CrossingCounter& counter) const {
  const std::size_t n = ranks_.size();
  const auto& topology = context_.topology;
  const auto add = [&](const Route& route, int times) {
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, times * crossing.times);
  };
  // What leaves and enters a GPU is the same for all its remote peers: find it once per rank.
  struct End {
    int host = 0;
    DeviceId hca;
    Route send, receive;
    bool is_tcp = false;
  };
  std::vector<End> ends(n);
  for (std::size_t r = 0; r < n; ++r) {
    ends[r].host = topology.host_of(ranks_[r]);
    if (hosts_.size() == 1) continue;
    ends[r].hca = topology.hcas_by_distance(ranks_[r]).front();
    ends[r].is_tcp = uses_tcp(context_, ends[r].hca);
    if (ends[r].is_tcp) continue;
    ends[r].send = sender_segment(context_, ranks_[r], ends[r].hca);
    ends[r].receive = receiver_segment(context_, ends[r].hca, ranks_[r]);
  }
  const std::size_t peers = collective_ == Collective::send_receive ? 1 : n - 1;
  std::vector<int> sent(n, 0);
  std::vector<int> received(n, 0);
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t k = 1; k <= peers; ++k) {
      const std::size_t to = (from + k) % n;
      Route route;
      if (ends[from].host == ends[to].host) {
        route = route_in_host(context_, ranks_[from], ranks_[to]);
      } else if (ends[from].is_tcp || ends[to].is_tcp) {
        route = route_between_hosts(context_, ranks_[from], ends[from].hca, ends[to].hca, ranks_[to], from * n + to);
      } else {
        route.kind = TransportKind::network;
        FABRICAST_ASSERT(add_fabric(context_, ends[from].hca, ends[to].hca, from * n + to, route),
                         "no route between ranks {} and {}", from, to);
        ++sent[from];
        ++received[to];
      }
      add(route, 1);
      if (from != 0) continue;
      if (is_network(route.kind) && route.kind != TransportKind::socket) {
        append(route, ends[from].send);
        append(route, ends[to].receive);
      }
      merge_hop(pattern.hops, route, 0);
    }
  }
  for (std::size_t r = 0; r < n; ++r) {
    add(ends[r].send, sent[r]);
    add(ends[r].receive, received[r]);
  }
  for (auto& hops : pattern.hops) hops.count = 1;
}

/// Of resources crossed equally often only the slowest can bind a lone flow.
void CollectivePlanner::keep_binding_only(std::vector<Crossing>& crossings) const {
  std::map<int, Crossing> slowest;
  for (const auto& crossing : crossings) {
    const auto [it, is_new] = slowest.try_emplace(crossing.times, crossing);
    if (!is_new && context_.resources.capacity(crossing.resource) < context_.resources.capacity(it->second.resource)) {
      it->second = crossing;
    }
  }
  crossings.clear();
  for (const auto& [times, crossing] : slowest) crossings.push_back(crossing);
  std::sort(crossings.begin(), crossings.end(), [](const auto& a, const auto& b) { return a.resource < b.resource; });
}

Pattern CollectivePlanner::make_pattern(Algorithm algorithm, std::size_t channels) const {
  Pattern pattern;
  CrossingCounter counter;
  if (is_peer_to_peer(collective_)) {
    count_pairs(pattern, counter);
  } else if (algorithm == Algorithm::tree) {
    count_tree(channels, pattern, counter);
  } else if (algorithm == Algorithm::nvls) {
    count_nvls(pattern, counter);
  } else if (collective_ == Collective::broadcast || collective_ == Collective::reduce) {
    count_chain(channels, pattern, counter);
  } else {
    count_ring(channels, pattern, counter);
  }
  pattern.crossings = counter.take();
  if (context_.runs_alone && !context_.full_expansion) keep_binding_only(pattern.crossings);
  for (const auto& hops : pattern.hops) pattern.has_network = pattern.has_network || is_network(hops.kind);
  return pattern;
}

void CollectivePlanner::add_launch(OperationPlan& plan, Algorithm algorithm, Protocol protocol) const {
  const auto& base = parameter(fmt::format("nccl.base_time.{}.{}", to_string(algorithm), to_string(protocol)));
  plan.before.push_back({"kernel start and synchronisation", from_seconds(base.value), base.name, base.source});
  const auto& interval = context_.parameters.first_of(
      {processor_of(context_.topology, ranks_[0]) + ".launch_interval", "cuda.launch_interval"});
  double per_thread = 1;
  if (workload_.launch == LaunchMode::one_thread) {
    for (const auto& host : hosts_) per_thread = std::max(per_thread, static_cast<double>(host.gpus.size()));
  }
  if (workload_.launch == LaunchMode::graph) {
    const auto& saving = context_.parameters.at("cuda.graph_saving");
    plan.before.push_back({"launch saved by the CUDA graph", from_seconds(-std::min(saving.value, base.value)),
                           saving.name, saving.source});
    return;
  }
  plan.floor = from_seconds(interval.value * per_thread);
  plan.floor_term = {fmt::format("waiting for the launching thread ({:.0f} launches of one thread)", per_thread),
                     {},
                     interval.name,
                     interval.source};
}

Term CollectivePlanner::hop_term(const Hops& hops, Algorithm algorithm, Protocol protocol, double loops) const {
  const auto& time = context_.parameters.first_of(
      {fmt::format("nccl.hop_time.{}.{}.{}.{}", to_string(algorithm), to_string(protocol), to_string(hops.kind),
                   architecture_),
       fmt::format("nccl.hop_time.{}.{}.{}", to_string(algorithm), to_string(protocol), to_string(hops.kind))});
  // Inside a host the figure is the whole flag exchange. Over the network the links come on top, and the adapters as
  // often as their latency lies in the way of one hop (receiver's credit, data, completion).
  double one = std::max(time.value, hops.link_latency.seconds());
  if (is_network(hops.kind)) {
    one = time.value + hops.link_latency.seconds() +
          context_.parameters.number("nccl.network_one_ways") * hops.adapter_latency.seconds();
  }
  const double seconds = hops.count * loops * one;
  return {fmt::format("{:.0f} hops over {}{}", hops.count * loops, to_string(hops.kind),
                      loops > 1 ? fmt::format(" ({:.0f} loops)", loops) : ""),
          from_seconds(seconds), time.name, time.source};
}

/// Thread blocks reach less of an NVLink with their stores (or NVLink SHARP operations) than a copy engine does.
void CollectivePlanner::limit_nvlink_stores(Flow& flow, const Choice& choice) const {
  const auto& reached =
      parameter("nccl.nvlink_store_share", choice.algorithm == Algorithm::nvls ? "nvls" : to_string(choice.protocol));
  for (const auto& crossing : flow.crossings) {
    const auto& resources = context_.resources;
    if (!resources.is_link(crossing.resource) ||
        context_.topology.link_kind(LinkId{crossing.resource}) != LinkKind::nvlink)
      continue;
    const double limit = reached.value * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = fmt::format("stores over {}", resources.name(crossing.resource));
    flow.cap_parameter = reached.name;
  }
}

/// The pipelined part: hops of the first chunk, network store and forward, and the coupled flow of all channels.
void CollectivePlanner::add_steps(OperationPlan& plan, const Choice& choice, std::size_t channels) const {
  const auto& pattern_used = pattern(choice.algorithm, channels);
  const double n = num_ranks();
  const double size = static_cast<double>(plan.size.value);
  const bool is_pairs = is_peer_to_peer(collective_);
  const bool is_one_way = collective_ == Collective::broadcast || collective_ == Collective::reduce;
  const bool is_chain = is_one_way || choice.algorithm == Algorithm::tree;
  const auto proto = to_string(choice.protocol);
  const double channel_count = choice.algorithm == Algorithm::nvls || is_pairs ? 1 : static_cast<double>(channels);
  const double share = parameter("nccl.payload_share", proto).value;
  const double largest_chunk =
      context_.parameters.at(fmt::format("nccl.chunk.{}.{}", is_chain ? "pipelined" : "ring", proto)).value;

  const double per_channel = size / channel_count;  // bytes of the operation one channel handles
  const double per_step = is_chain || is_pairs ? per_channel : per_channel / n;
  const double chunk = std::min(largest_chunk, std::max(per_step, 1.0));
  const double loops = std::max(1.0, std::ceil(per_step / largest_chunk));

  Round round;
  round.label = fmt::format("{} {}", to_string(choice.algorithm), proto);
  Flow flow;
  const auto add_latency = [&](Term term) {
    flow.latency += term.time;
    flow.latency_terms.push_back(std::move(term));
  };
  // Trees pay their way up and down once, a ring goes round in every loop. Broadcast and reduce do not wait for the far
  // end: nccl-tests queues iterations, so the root is already in the next one and each rank pays one hop.
  for (auto hops : pattern_used.hops) {
    if (is_one_way) hops.count = std::min(hops.count, 1.0);
    add_latency(hop_term(hops, choice.algorithm, choice.protocol,
                         choice.algorithm == Algorithm::ring && !is_chain && !is_pairs ? loops : 1));
  }

  double bytes_per_crossing = per_channel;  // chain, tree, NVLS share, pairs
  if (is_pairs) bytes_per_crossing = collective_ == Collective::all_to_all ? size / n : size;
  if (choice.algorithm == Algorithm::nvls) {
    const double trees = hosts_.size() > 1 ? 2 * graph_.graph_channels : 1;
    bytes_per_crossing = size / (static_cast<double>(hosts_[0].gpus.size()) * trees);
  }
  double payload_per_crossing = bytes_per_crossing;
  if (!is_chain && !is_pairs && choice.algorithm == Algorithm::ring) {
    const double steps = collective_ == Collective::all_reduce ? 2 * (n - 1) : n - 1;
    const auto which = collective_ == Collective::all_reduce ? "all_reduce" : "all_gather";
    payload_per_crossing = per_step * steps;
    bytes_per_crossing = per_step * (steps + parameter(fmt::format("nccl.local_work.{}", which), proto).value);
  }
  const bool is_shm = std::any_of(pattern_used.hops.begin(), pattern_used.hops.end(),
                                  [](const Hops& h) { return h.kind == TransportKind::host_memory; });
  const auto& copy = is_shm ? context_.parameters.at(fmt::format("nccl.shm_channel_bandwidth.{}", proto))
                            : parameter("nccl.channel_bandwidth", proto);
  flow.bytes = bytes_per_crossing / share;
  flow.payload = payload_per_crossing;
  flow.crossings = pattern_used.crossings;
  double parallel = 1;  // channels that share one unit of the flow
  if (is_pairs)
    parallel =
        std::max(1.0, std::min<double>(static_cast<double>(graph_.channels.size()),
                                       std::ceil(bytes_per_crossing / parameter("nccl.p2p_bytes_per_channel").value)));
  flow.cap_name = fmt::format("one channel's thread block ({})", proto);
  flow.cap_parameter = copy.name;
  if (choice.algorithm != Algorithm::nvls) flow.rate_cap = copy.value * parallel / share;
  limit_nvlink_stores(flow, choice);
  if (choice.algorithm == Algorithm::tree) {
    double fill_hops = 0;
    for (const auto& hops : pattern_used.hops) fill_hops += hops.count;
    const double fill = std::max(0.0, fill_hops - 1) * chunk / copy.value;
    add_latency({"filling the pipeline with the first chunk", from_seconds(fill), copy.name, copy.source});
  }
  if (is_chain && !is_pairs) {
    const auto& step = parameter("nccl.chunk_overhead", proto);
    add_latency({fmt::format("{:.0f} chunks", loops), from_seconds((loops - 1) * step.value), step.name, step.source});
  }
  for (const auto& hops : pattern_used.hops) {
    if (!is_network(hops.kind) || is_one_way || choice.algorithm == Algorithm::nvls) continue;
    const auto& factor = context_.parameters.at("nccl.network_store_and_forward");
    double rate = flow.rate_cap * share;
    for (const auto& crossing : flow.crossings) {
      rate = std::min(rate, context_.resources.capacity(crossing.resource) / crossing.times);
    }
    const double slice = choice.protocol == Protocol::simple ? chunk / 2 : chunk;
    add_latency({"network store and forward of slices", from_seconds(factor.value * hops.count * slice / share / rate),
                 factor.name, factor.source});
  }
  round.flows.push_back(std::move(flow));
  plan.rounds.push_back(std::move(round));
}

OperationPlan CollectivePlanner::plan(Bytes size) const {
  OperationPlan plan;
  plan.size = size;
  if (num_ranks() == 1 || size.value == 0) {
    plan.algorithm = "none";
    plan.protocol = "none";
    add_launch(plan, Algorithm::ring, Protocol::ll);
    return plan;
  }
  const auto algorithm = algorithm_from_name(workload_.algorithm);
  const auto protocol = protocol_from_name(workload_.protocol);
  Choice choice;
  if (is_peer_to_peer(collective_)) {
    const double largest_ll = context_.parameters.at("nccl.p2p_ll_limit").value;
    choice = {Algorithm::ring, static_cast<double>(size.value) <= largest_ll ? Protocol::ll : Protocol::simple};
    if (protocol) choice.protocol = *protocol;
  } else {
    choice = choose(facts_, collective_, size, algorithm, protocol);
  }
  const auto use = channel_use(facts_, choice, size, static_cast<int>(graph_.channels.size()));
  plan.algorithm = is_peer_to_peer(collective_) ? "direct"
                                                : std::string(choice.algorithm == Algorithm::nvls && num_hosts() > 1
                                                                  ? "nvls_tree"
                                                                  : to_string(choice.algorithm));
  plan.protocol = std::string(to_string(choice.protocol));
  plan.channels = is_peer_to_peer(collective_) ? static_cast<int>(graph_.channels.size()) : use.channels;
  add_launch(plan, choice.algorithm, choice.protocol);
  add_steps(plan, choice, static_cast<std::size_t>(use.channels));
  return plan;
}

std::vector<GivenUsed> CollectivePlanner::settings() const {
  std::vector<GivenUsed> settings;
  settings.push_back({"algorithm", workload_.algorithm,
                      workload_.algorithm == "auto" ? "per size, see the table" : workload_.algorithm,
                      workload_.algorithm == "auto"
                          ? fmt::format("least time in NCCL {}'s own model", context_.software.nccl_version)
                          : "forced"});
  settings.push_back(
      {"protocol", workload_.protocol, workload_.protocol == "auto" ? "per size, see the table" : workload_.protocol,
       workload_.protocol == "auto" ? fmt::format("least time in NCCL {}'s own model", context_.software.nccl_version)
                                    : "forced"});
  settings.push_back({"channels", workload_.channels ? std::to_string(*workload_.channels) : "auto",
                      fmt::format("up to {}", graph_.channels.size()),
                      workload_.channels ? "forced"
                                         : fmt::format("{} found at {:.1f} GB/s each, doubled", graph_.graph_channels,
                                                       graph_.channel_gb_per_s)});
  return settings;
}

std::vector<std::string> CollectivePlanner::assumptions() const {
  std::set<std::string> out{"ranks are placed on GPUs in host order",
                            "no other traffic on the cluster beside the listed workloads"};
  if (facts_.nvls_allowed) out.insert("NVLink SHARP is available to the communicator");
  if (hosts_.size() > 1) {
    for (const auto& hops : pattern(Algorithm::ring, 1).hops) {
      if (hops.kind == TransportKind::network_staged)
        out.insert("GPUDirect RDMA is not used between hosts: data is staged in host memory");
      if (hops.kind == TransportKind::socket) out.insert("hosts talk over TCP sockets");
    }
  }
  return {out.begin(), out.end()};
}

Result<std::vector<DeviceId>> ranks_of(const PlanContext& context, const Workload& workload) {
  std::vector<DeviceId> ranks;
  const auto all = context.topology.devices(DeviceKind::gpu);
  Diagnostics faults;
  const auto fault = [&](std::string message, std::string hint) {
    auto diagnostic = make_error(std::move(message), std::move(hint));
    diagnostic.location = workload.location;
    faults.push_back(std::move(diagnostic));
  };
  for (const auto& name : workload.devices) {
    const auto device = context.topology.find_device(name);
    if (!device || context.topology.kind(*device) != DeviceKind::gpu) {
      fault(fmt::format("'{}' is not a GPU of topology '{}'", name, context.topology.name()),
            "GPUs are called host.gpuN");
    } else {
      ranks.push_back(*device);
    }
  }
  if (workload.devices.empty()) {
    const auto wanted =
        static_cast<std::size_t>(workload.gpus.value_or(workload.ranks.value_or(static_cast<int>(all.size()))));
    if (wanted > all.size()) {
      fault(fmt::format("{} GPUs asked for, topology '{}' has {}", wanted, context.topology.name(), all.size()),
            "raise the host count of the topology or lower workload.gpus");
    } else if (workload.ranks_per_host) {
      for (int host = 0; host < context.topology.num_hosts() && ranks.size() < wanted; ++host) {
        const auto gpus = context.topology.devices(DeviceKind::gpu, host);
        for (std::size_t g = 0;
             g < gpus.size() && g < static_cast<std::size_t>(*workload.ranks_per_host) && ranks.size() < wanted; ++g) {
          ranks.push_back(gpus[g]);
        }
      }
      if (ranks.size() < wanted)
        fault(fmt::format("{} GPUs with {} per host need more hosts than the {} there are", wanted,
                          *workload.ranks_per_host, context.topology.num_hosts()),
              "");
    } else {
      ranks.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted));
    }
  }
  if (faults.empty() && ranks.empty())
    fault(fmt::format("topology '{}' has no GPU", context.topology.name()), "NCCL benchmarks need GPUs");
  if (!faults.empty()) return tl::unexpected(faults);
  return ranks;
}

/// Every host must reach the next through the fabric.
Diagnostics unreachable_hosts(const PlanContext& context, const Workload& workload,
                              const std::vector<DeviceId>& ranks) {
  Diagnostics faults;
  const auto hosts = group_by_host(context.topology, ranks);
  for (std::size_t h = 0; hosts.size() > 1 && h < hosts.size(); ++h) {
    const auto here = context.topology.hcas_by_distance(hosts[h].gpus.front());
    const auto next = context.topology.hcas_by_distance(hosts[(h + 1) % hosts.size()].gpus.front());
    if (!here.empty() && !next.empty() && context.topology.path_between_hcas(here.front(), next.front())) continue;
    auto fault =
        make_error(fmt::format("no network path from host '{}' to host '{}'", context.topology.host_name(hosts[h].host),
                               context.topology.host_name(hosts[(h + 1) % hosts.size()].host)),
                   "give both hosts an HCA and connect them in `fabric`");
    fault.location = workload.location;
    faults.push_back(std::move(fault));
    break;
  }
  return faults;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload) {
  auto ranks = ranks_of(context, workload);
  if (!ranks) return tl::unexpected(ranks.error());
  auto faults = unreachable_hosts(context, workload, *ranks);
  if (workload.algorithm != "auto" && !algorithm_from_name(workload.algorithm)) {
    auto fault = make_error(fmt::format("'{}' is not an NCCL algorithm", workload.algorithm),
                            "NCCL benchmarks take auto, ring, tree or nvls");
    fault.location = workload.location;
    faults.push_back(std::move(fault));
  }
  if (workload.protocol != "auto" && !protocol_from_name(workload.protocol)) {
    auto fault = make_error(fmt::format("'{}' is not an NCCL protocol", workload.protocol),
                            "NCCL benchmarks take auto, ll, ll128 or simple");
    fault.location = workload.location;
    faults.push_back(std::move(fault));
  }
  if (!faults.empty()) return tl::unexpected(faults);
  return std::make_unique<CollectivePlanner>(context, workload, std::move(*ranks));
}

}  // namespace fabricast::models::nccl
