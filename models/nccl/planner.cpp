// SPDX-License-Identifier: Apache-2.0
#include "nccl/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "nccl/patterns.hpp"
#include "nccl/ranks.hpp"
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
    if (is_new)
      it->second =
          PatternMaker(context_, collective_, ranks_, hosts_, graph_, ranks_[static_cast<std::size_t>(workload_.root)])
              .make(algorithm, channels);
    return it->second;
  }

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
  flow.legs = pattern_used.legs;
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

}  // namespace

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload) {
  auto ranks = choose_ranks(context, workload);
  if (!ranks) return tl::unexpected(ranks.error());
  auto faults = unreachable_hosts(context, workload, *ranks);
  if (workload.algorithm != "auto" && !algorithm_from_name(workload.algorithm)) {
    auto fault = make_error(fmt::format("'{}' is not an NCCL algorithm", workload.algorithm),
                            "NCCL benchmarks take auto, ring, tree or nvls");
    fault.location = workload.location;
    faults.push_back(std::move(fault));
  }
  if (workload.root >= static_cast<int>(ranks->size())) {
    auto fault = make_error(fmt::format("root is rank {}, there are {} ranks", workload.root, ranks->size()),
                            "ranks count from 0");
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
