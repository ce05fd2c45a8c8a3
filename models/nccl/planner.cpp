// SPDX-License-Identifier: Apache-2.0
#include "nccl/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/architecture.hpp"
#include "nccl/collnet.hpp"
#include "nccl/facts.hpp"
#include "nccl/hca_use.hpp"
#include "nccl/launch.hpp"
#include "nccl/network_plugin.hpp"
#include "nccl/nics.hpp"
#include "nccl/nvls.hpp"
#include "nccl/pair_channels.hpp"
#include "nccl/patterns.hpp"
#include "nccl/ranks.hpp"
#include "nccl/rccl.hpp"
#include "nccl/steps.hpp"
#include "nccl/symmetric.hpp"
#include "nccl/tuner_regions.hpp"
#include "nccl/tuning.hpp"
#include "nccl/workload_rules.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

/// A tuner plugin's tables are not published. One published log of Google's beside NCCL 2.21 takes trees as NCCL's own
/// tables do from this release on.
constexpr int k_tuner_release = 223;
/// Release from which sends and receives inside a host may take LL (NCCL_P2P_LL_THRESHOLD).
constexpr int k_lines_of_pairs = 214;

class CollectivePlanner : public Planner {
 public:
  CollectivePlanner(const PlanContext& context, const Workload& workload, std::vector<DeviceId> ranks)
      : own_software_(own_software(context, ranks)),
        context_(own_software_ ? with_software(context, *own_software_) : context),
        workload_(workload),
        ranks_(std::move(ranks)),
        hosts_(group_by_host(context.topology, ranks_)),
        slowest_(slowest_host(context_, hosts_)),
        collective_(collective_of(workload.benchmark)) {
    if (ranks_.size() > 1) graph_ = search_channels(context_, hosts_);
    if (workload_.channels) fit_channels(static_cast<std::size_t>(*workload_.channels));
    set_facts();
  }

  [[nodiscard]] bool has_nvls() const { return facts_.nvls_allowed; }
  [[nodiscard]] bool asks_for_collnet() const {
    return context_.software.nccl_collnet && collective_ == Collective::all_reduce && hosts_.size() > 1;
  }
  /// Of a communicator that asks for it.
  [[nodiscard]] const Gate& collnet() const { return collnet_gate_; }
  [[nodiscard]] const Gate& symmetric() const { return symmetric_gate_; }
  [[nodiscard]] OperationPlan plan(Bytes size) const override;
  [[nodiscard]] int num_ranks() const override { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int num_hosts() const override { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] std::vector<std::string> devices() const override { return device_names(context_.topology, ranks_); }
  [[nodiscard]] std::vector<GivenUsed> settings() const override;
  [[nodiscard]] std::vector<std::string> assumptions() const override;
  [[nodiscard]] std::vector<std::string> stand_ins() const override { return stand_ins_; }
  [[nodiscard]] std::vector<Term> waits(Duration time) const override {
    return waits_for_others(context_, workload_, slowest_.gpus[0], time);
  }
  [[nodiscard]] double bus_factor() const override {
    const double n = num_ranks();
    if (collective_ == Collective::all_reduce) return 2 * (n - 1) / n;
    return counts_parts(workload_.benchmark) ? (n - 1) / n : 1;
  }

 private:
  void fit_channels(std::size_t wanted) {
    if (graph_.channels.empty()) return;
    const auto found = graph_.channels.size();
    while (graph_.channels.size() < wanted) graph_.channels.push_back(graph_.channels[graph_.channels.size() % found]);
    graph_.channels.resize(wanted);
  }

  /// Settings that the network plugin of the adapters comes with.
  [[nodiscard]] bool comes_with_plugin(const char* field) const {
    if (hosts_.size() == 1 || graph_.channels.empty()) return false;
    return device_value_or(context_, graph_.channels[0][0].hca, field, 0) > 0;
  }

  /// The adapter whose plugin sets what NCCL plans with; of hosts without any, value -1.
  [[nodiscard]] DeviceId plugin_adapter() const {
    if (hosts_.size() > 1 && !graph_.channels.empty()) return graph_.channels[0][0].hca;
    const auto hcas = plugin_hcas(context_, hosts_[0].gpus[0]);
    return hcas.empty() ? DeviceId{} : hcas.front();
  }

  /// What plugins set in the process holds inside one host too, what belongs to an adapter between hosts only.
  void set_plugin() {
    adapter_ = plugin_adapter();
    plugin_ = network_plugin(context_, adapter_);
    if (hosts_.size() > 1) queue_pairs_ = queue_pairs_of(context_, adapter_);
    if (hosts_.size() > 1 || !plugin_.provider.empty()) return;
    plugin_.is_simple_only = false;
    plugin_.buffer_size = plugin_.p2p_chunk = 0;
  }

  void set_facts() {
    set_plugin();
    facts_ = facts_of(context_, hosts_, graph_);
    facts_.simple_only = workload_.protocol == "auto" && plugin_.is_simple_only;
    facts_.plugin_latency_us = hosts_.size() > 1 ? plugin_.reported_latency_s * 1e6 : 0;
    facts_.collective = collective_;
    facts_.has_schedules = has_schedules(context_, workload_, graph_, num_hosts());
    if (comes_with_plugin("plugin_tuner")) facts_.version = std::max(facts_.version, k_tuner_release);
    architecture_ = architecture_of(context_, least_capable(context_, hosts_));
    if (const int steps = rccl::steps_of_p2p_chunk(facts_); steps > 1 && plugin_.p2p_chunk <= 0)
      plugin_.p2p_chunk =
          steps * parameter_for(context_.parameters, architecture_, "nccl.p2p_network_chunk"_stem).value;
    stand_ins_ = stand_ins_among(
        context_, hosts_, hosts_.size() > 1 && !graph_.channels.empty() ? graph_.channels[0][0].hca : DeviceId{});
    set_collnet();
    set_nvls();
    if (context_.software.nccl_symmetric_memory) symmetric_gate_ = symmetric_gate(context_, hosts_, collective_);
    is_redirected_ = are_peers_redirected(context_.topology, hosts_);
  }

  /// The fabric's switches reduce where it is on and all allows it; trees that are asked for by name stay trees.
  void set_collnet() {
    if (!asks_for_collnet()) return;
    collnet_gate_ = collnet_gate(context_, hosts_, graph_);
    facts_.collnet_allowed = collnet_gate_.is_open && workload_.algorithm != "nvls_tree";
    if (facts_.collnet_allowed)
      stand_ins_.emplace_back("no log taught what CollNet costs: its times are NCCL's own planning numbers");
  }

  /// NVLink SHARP where all allows it; users overrule what is inferred of a VM, not what a plugin's settings say.
  void set_nvls() {
    auto offer = nvls_offer(context_, hosts_);
    nvls_gate_ = std::move(offer.gate);
    const bool is_forced = algorithm_from_name(workload_.algorithm) == Algorithm::nvls;
    if (nvls_gate_.is_open && !is_forced && comes_with_plugin("plugin_simple_only"))
      nvls_gate_ = {false, "the network plugin comes with settings for rings and trees only"};
    // The plugin leaves NCCL_NVLS_ENABLE alone where the user sets it.
    if (nvls_gate_.is_open && context_.software.nccl_nvls == NvlsSetting::automatic && !plugin_.why_no_nvls.empty())
      nvls_gate_ = {false, plugin_.why_no_nvls};
    const bool is_overruled = nvls_gate_.is_inferred && (is_forced || context_.software.nccl_nvls == NvlsSetting::on);
    facts_.nvls_allowed = context_.software.nccl_nvls != NvlsSetting::off && (nvls_gate_.is_open || is_overruled);
    if (!facts_.nvls_allowed) return;
    graph_.heads = std::move(offer.heads);
    facts_.nvls = search_nvls(context_, hosts_, graph_.heads);
    const auto chunk = parameter_for(context_.parameters, architecture_, "nccl.chunk.nvls"_stem).value;
    nvls_kernels_ = nvls_kernels(facts_, way_to_heads(context_, hosts_, graph_.heads), chunk);
    if (!workload_.channels) fit_channels(channels_beside_nvls(facts_, nvls_kernels_, graph_.channels.size()));
    if (collective_ == Collective::all_reduce && !architecture_.elder.empty())
      stand_ins_.push_back(fmt::format(
          "no log of NVLink SHARP has taught anything of {}, NCCL's own figures and values of {} stand for it",
          architecture_.name, architecture_.elder));
  }

  /// `queue_pairs`: of every connection between hosts, as many as have data at once.
  [[nodiscard]] const Pattern& pattern(Algorithm algorithm, Protocol protocol, std::size_t channels,
                                       int queue_pairs = 1) const {
    const auto buffers = protocol == Protocol::ll && hosts_.size() > 1 ? Buffers::host : Buffers::device;
    // Pairs of ranks have channels of their own.
    const auto [it, is_new] =
        patterns_.try_emplace({algorithm, buffers, is_peer_to_peer(collective_) ? 0 : channels, queue_pairs});
    if (is_new)
      it->second = PatternMaker(context_, collective_, ranks_, hosts_, graph_,
                                ranks_[static_cast<std::size_t>(workload_.root)], buffers, queue_pairs)
                       .make(algorithm, channels, facts_.collnet_allowed);
    return it->second;
  }

  [[nodiscard]] int most_channels(Algorithm algorithm) const {
    const int of_rings = static_cast<int>(graph_.channels.size());
    if (algorithm != Algorithm::nvls || workload_.channels) return of_rings;
    return facts_.collnet_allowed ? std::min(nvls_kernels_.channels, of_rings) : nvls_kernels_.channels;
  }
  /// Message by message the queue pairs of a connection are taken in turn: fewer messages leave some idle.
  [[nodiscard]] int queue_pairs_in_use(const Operation& operation) const {
    if (queue_pairs_ == 1 || splits_over_queue_pairs(context_.software)) return queue_pairs_;
    const auto algorithm = make_algorithm(operation);
    return static_cast<int>(std::clamp<double>(algorithm->messages(algorithm->cut()), 1, queue_pairs_));
  }
  [[nodiscard]] Launch launch() const {
    std::size_t most = 1;
    for (const auto& host : hosts_) most = std::max(most, host.gpus.size());
    return {workload_.launch, collective_, architecture_, slowest_.gpus[0], num_ranks(), static_cast<int>(most)};
  }
  /// Connections over the network have no LL buffers for send and receive (NCCL_ALLOC_P2P_NET_LL_BUFFERS=0).
  [[nodiscard]] Protocol protocol_of_pairs(const Communicator& group, Bytes size) const {
    const double part = static_cast<double>(size.value) / (has_parts(collective_) ? num_ranks() : 1);
    const double of_channel = parameter_for(context_.parameters, architecture_, "nccl.p2p_ll_limit"_stem).value;
    const auto& any = pattern(Algorithm::ring, Protocol::simple, 1);
    const bool is_short = part <= largest_ll_of_pair(context_.software, group, any, of_channel);
    return is_short && num_hosts() == 1 && facts_.version >= k_lines_of_pairs ? Protocol::ll : Protocol::simple;
  }
  [[nodiscard]] SymmetricRanks symmetric_ranks() const {
    const auto channels = static_cast<int>(graph_.channels.size());
    return {context_, ranks_, architecture_, symmetric_facts(facts_, channels, workload_.channels)};
  }
  [[nodiscard]] GivenUsed nvls_setting() const;
  [[nodiscard]] GivenUsed collnet_setting() const;

  std::optional<Software> own_software_;  ///< settings that RCCL makes itself
  PlanContext context_;
  Workload workload_;
  std::vector<DeviceId> ranks_;
  std::vector<HostGroup> hosts_;
  HostGroup slowest_;
  Collective collective_;
  ChannelGraph graph_;
  DeviceId adapter_;
  NetworkPlugin plugin_;
  int queue_pairs_ = 1;  ///< of a connection between hosts, where they take several ways
  CommunicatorFacts facts_;
  Gate nvls_gate_;
  NvlsKernels nvls_kernels_;  ///< where NVLink SHARP is on
  Gate collnet_gate_;
  Gate symmetric_gate_{false, "off by default"};  ///< open: NCCL takes its kernels for symmetric memory
  Architecture architecture_;
  std::vector<std::string> stand_ins_;
  bool is_redirected_ = false;
  mutable std::map<std::tuple<Algorithm, Buffers, std::size_t, int>, Pattern> patterns_;
};

OperationPlan CollectivePlanner::plan(Bytes size) const {
  OperationPlan plan;
  plan.size = size;
  if (num_ranks() == 1 || size.value == 0) {
    plan.algorithm = "none";
    plan.protocol = "none";
    add_launch(context_, launch(), {Algorithm::ring, Protocol::ll}, 1, plan);
    if (size.value > 0) plan.before.push_back(copy_to_itself(context_, ranks_[0], size));
    return plan;
  }
  if (symmetric_gate_.is_open) {
    plan_symmetric(symmetric_ranks(), launch(), size, plan);
    return plan;
  }
  const auto algorithm = algorithm_from_name(workload_.algorithm);
  const auto protocol = protocol_from_name(workload_.protocol);
  const Communicator group{num_ranks(),
                           num_hosts(),
                           static_cast<int>(slowest_.gpus.size()),
                           gpus_of_memory(context_, slowest_),
                           graph_.graph_channels,
                           facts_.nvls.heads,
                           graph_.channels.size(),
                           facts_.library,
                           architecture_,
                           slowest_.gpus[0],
                           facts_.collnet_allowed,
                           is_redirected_,
                           plugin_.nvls_tree_chunk > 0 ? plugin_.nvls_tree_chunk : nvls_kernels_.tree_chunk,
                           plugin_.buffer_size,
                           plugin_.p2p_chunk,
                           plugin_.one_rail_bytes,
                           plugin_.sends_runts,
                           workload_.iterations};
  Choice choice;
  if (is_peer_to_peer(collective_)) {
    choice = {Algorithm::ring, protocol.value_or(protocol_of_pairs(group, size))};
  } else {
    choice = choose_with_tuner(plugin_.tuner, facts_, collective_, size, algorithm, protocol);
  }
  const auto use = channel_use(facts_, choice, size, most_channels(choice.algorithm));
  plan.algorithm = is_peer_to_peer(collective_)
                       ? "direct"
                       : std::string(choice.algorithm == Algorithm::nvls && num_hosts() > 1 && !facts_.collnet_allowed
                                         ? "nvls_tree"
                                         : to_string(choice.algorithm));
  plan.protocol = std::string(to_string(choice.protocol));
  plan.channels = is_peer_to_peer(collective_) ? static_cast<int>(graph_.channels.size()) : use.channels;
  const auto channels = static_cast<std::size_t>(use.channels);
  const auto& one = pattern(choice.algorithm, choice.protocol, channels);
  const int pairs = queue_pairs_in_use({context_, group, one, collective_, choice, use, size});
  const auto& way = pairs == 1 ? one : pattern(choice.algorithm, choice.protocol, channels, pairs);
  const Operation operation{context_, group, way, collective_, choice, use, size};
  add_launch(context_, launch(), choice, is_peer_to_peer(collective_) ? blocks_of_pairs(operation) : use.channels,
             plan);
  plan.program.then(steps_node(operation));
  return plan;
}

GivenUsed CollectivePlanner::nvls_setting() const {
  const auto setting = context_.software.nccl_nvls;
  const auto* given = setting == NvlsSetting::automatic ? "auto" : (setting == NvlsSetting::on ? "on" : "off");
  if (facts_.nvls_allowed) {
    const auto between = facts_.nvls.between > 0 ? fmt::format(", {:.1f} between hosts", facts_.nvls.between) : "";
    return {"nvls", given, "on",
            fmt::format("{} channels found at {:.1f} GB/s{}", facts_.nvls.heads, facts_.nvls.inside, between)};
  }
  return {"nvls", given, "off", setting == NvlsSetting::off ? "forced" : nvls_gate_.reason};
}

GivenUsed CollectivePlanner::collnet_setting() const {
  if (facts_.collnet_allowed) return {"collnet", "on", "on", "the fabric's switches reduce (SHARP)"};
  return {"collnet", "on", "off", "trees are asked for"};
}

std::vector<GivenUsed> CollectivePlanner::settings() const {
  auto settings = virtual_settings(context_, ranks_);
  const auto by_tables =
      comes_with_plugin("plugin_tuner") ? std::string("the adapters' tuner plugin")
      : !plugin_.tuner.empty() && num_hosts() > 2
          ? std::string("regions of the plugin's tuner, else NCCL's own model")
          : fmt::format("least time in {} {}'s own model", to_string(facts_.library), context_.software.nccl_version);
  settings.push_back({"algorithm", workload_.algorithm,
                      workload_.algorithm == "auto" ? "per size, see the table" : workload_.algorithm,
                      workload_.algorithm == "auto" ? by_tables : "forced"});
  settings.push_back({"protocol", workload_.protocol,
                      workload_.protocol == "auto" ? "per size, see the table" : workload_.protocol,
                      workload_.protocol == "auto" ? by_tables : "forced"});
  if (collective_ == Collective::all_reduce) settings.push_back(nvls_setting());
  if (asks_for_collnet()) settings.push_back(collnet_setting());
  if (context_.software.nccl_symmetric_memory) settings.push_back(symmetric_setting(symmetric_gate_));
  settings.push_back({"channels", workload_.channels ? std::to_string(*workload_.channels) : "auto",
                      fmt::format("up to {}", graph_.channels.size()),
                      workload_.channels ? "forced" : channels_found(graph_)});
  if (num_ranks() == 1) settings.back() = {"channels", "auto", "none", "one rank"};
  if (graph_.nics)
    for (auto& setting : adapter_settings(context_, hosts_, pattern(Algorithm::ring, Protocol::simple, 1)))
      settings.push_back(std::move(setting));
  for (auto& setting : plugin_settings(context_, plugin_, adapter_)) settings.push_back(std::move(setting));
  return settings;
}

std::vector<std::string> CollectivePlanner::assumptions() const {
  std::set<std::string> out{"no other traffic on the cluster beside the listed workloads"};
  if (workload_.devices.empty()) out.insert(k_in_host_order);
  out.insert(stand_ins_.begin(), stand_ins_.end());
  const bool is_shared = sharing_of(context_, workload_, ranks_[0]).has_value();
  if (is_shared) out.insert("time slices of all GPUs begin together");
  if (is_shared || is_chain(collective_))
    out.insert(fmt::format("{} operations are queued before the host waits", workload_.iterations));
  std::vector<int> hosts;
  for (const auto& group : hosts_) hosts.push_back(group.host);
  for (auto& line : virtual_assumptions(context_, hosts)) out.insert(std::move(line));
  if (symmetric_gate_.is_open)
    for (auto& line : symmetric_assumptions(symmetric_ranks())) out.insert(std::move(line));
  if (facts_.nvls_allowed) out.insert("NVLink SHARP is available to the communicator");
  if (nvls_gate_.is_inferred)
    out.insert(fmt::format("{}: that this leaves no NVLink SHARP is inferred", nvls_gate_.reason));
  if (facts_.collnet_allowed)
    out.insert("a reduction tree of the fabric's switches is free for the job and reduces at the rate of its links");
  for (auto& line : plugin_assumptions(context_, plugin_, adapter_, num_hosts())) out.insert(std::move(line));
  if (plugin_.is_simple_only && protocol_from_name(workload_.protocol).value_or(Protocol::simple) != Protocol::simple)
    out.insert(fmt::format("{} forbids '{}' on this adapter: it may corrupt data", plugin_.name, workload_.protocol));
  if (comes_with_plugin("plugin_tuner"))
    out.insert("the adapters' tuner plugin chooses as NCCL 2.23 does: inferred, its tables are not published");
  if (allows_pat(facts_, collective_))
    out.insert(
        "no published log taught what PAT takes: NCCL's own planning figures, as runs over one machine's sockets");
  if (graph_.nics && !context_.one_of_groups)
    for (auto& line : hca_assumptions(context_, hosts_, graph_, is_peer_to_peer(collective_))) out.insert(line);
  if (num_ranks() == 1) return {out.begin(), out.end()};
  for (const auto& hops : pattern(Algorithm::ring, Protocol::simple, 1).hops) {
    if (hops.kind == TransportKind::network_staged)
      out.insert("GPUDirect RDMA is not used between hosts: data is staged in host memory");
    if (hops.kind == TransportKind::socket && hosts_.size() > 1) out.insert("hosts talk over TCP sockets");
    if (hops.kind == TransportKind::host_memory &&
        std::ranges::any_of(hosts_, [&](const HostGroup& host) { return has_far_buffers(context_, host.gpus); }))
      out.insert("the guest shows one NUMA node: shared-memory buffers of all its GPUs lie in one memory");
  }
  return {out.begin(), out.end()};
}

}  // namespace

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload) {
  if (auto faults = library_faults(context, workload); !faults.empty()) return tl::unexpected(std::move(faults));
  auto ranks = choose_ranks(context, workload);
  if (!ranks) return tl::unexpected(ranks.error());
  auto faults = unreachable_hosts(context, workload, *ranks);
  for (auto& fault : workload_faults(context, workload, *ranks)) faults.push_back(std::move(fault));
  if (faults.empty() && ranks->size() > 1 && !context.software.nccl_plugin.empty())
    faults = plugin_faults(context, workload, plugin_hcas(context, ranks->front()));
  if (const auto sharing = ranks->empty() ? std::nullopt : sharing_of(context, workload, ranks->front())) {
    const auto slicing = time_slicing_of(context, *sharing, ranks->front());
    if (!slicing) faults.insert(faults.end(), slicing.error().begin(), slicing.error().end());
  }
  if (!faults.empty()) return tl::unexpected(faults);
  auto planner = std::make_unique<CollectivePlanner>(context, workload, std::move(*ranks));
  if (context.software.nccl_nvls == NvlsSetting::on && !planner->has_nvls())
    return tl::unexpected(Diagnostics{nvls_beside_plugin(context, workload)});
  if (planner->asks_for_collnet() && !planner->collnet().is_open)
    return tl::unexpected(Diagnostics{no_collnet(context, workload, planner->collnet().reason)});
  if (context.software.nccl_symmetric_memory && workload.iterations > 0 && !planner->symmetric().is_open)
    return tl::unexpected(Diagnostics{no_symmetric_memory(context, workload, planner->symmetric().reason)});
  return planner;
}

}  // namespace fabricast::models::nccl
