// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/assert.hpp"
#include "engine/host_limits.hpp"
#include "engine/host_paths.hpp"
#include "engine/packet_demand.hpp"
#include "engine/packet_fabric.hpp"
#include "engine/packet_pairs.hpp"
#include "engine/packet_report.hpp"
#include "engine/ring_rounds.hpp"
#include "packet/simulation.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::OperationPlan;

/// Pieces in which flows beside the fabric ask for what they share inside a host.
constexpr double k_most_pieces = 1024;
constexpr double k_least_piece = 4096;  ///< a packet: turns are as long as those of flows on the fabric
/// Queues in the time series: those that several flows share, most shared first.
constexpr std::size_t k_most_sampled = 64;

class PacketRun {
 public:
  PacketRun(const ParameterSet& parameters, const models::Resources& resources, const std::vector<Job>& jobs,
            const std::vector<const Workload*>& workloads, const PacketOptions& options)
      : parameters_(parameters),
        resources_(resources),
        topology_(resources.topology()),
        settings_(lossless_settings(topology_, parameters)),
        jobs_(jobs),
        workloads_(workloads),
        options_(options),
        states_(jobs.size()) {}

  Result<PacketOutcome> run() {
    fabric_ = make_packet_fabric({topology_, parameters_, workloads_[0]->transport, hcas_on_fabric(topology_, jobs_)});
    auto faults = packet::validate(fabric_.network);
    std::erase_if(faults, [](const Diagnostic& one) { return one.severity != Severity::error; });
    if (!faults.empty()) return tl::unexpected(faults);
    simulation_ = std::make_unique<packet::Simulation>(fabric_.network, simulation_options());
    simulation_->on_delivered([this](const packet::Completion& done) { end_message(done.tag); });
    add_host_paths();
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      prepare(j);
      simulation_->at(jobs_[j].start + models::sum(jobs_[j].plan->before), [this, j] { next_round(j); });
    }
    simulation_->run();
    return outcome();
  }

 private:
  struct State {
    std::size_t round = 0;
    std::int64_t repeat = 0;
    std::size_t flows_left = 0;
    Duration round_start;
    Duration last_round{-1};  ///< how long the repeat before took
    Duration skipped;         ///< time of repeats that were not simulated
    bool is_done = false;
    RingProgress ring;
    std::vector<Duration> transfer;  ///< per round, of all repeats
    OperationTiming timing;
  };
  struct Transfer {
    std::size_t job = 0;
    std::size_t flow = 0;
    std::size_t messages_left = 0;
  };

  // ---- set-up -----------------------------------------------------------------------------------------------------

  void add_host_paths() {
    host_paths_ = make_host_paths(parameters_, resources_, jobs_);
    std::vector<packet::StageId> stages;
    for (const double rate : host_paths_.capacities) stages.push_back(simulation_->add_stage(Bandwidth{rate}));
    path_ids_.push_back(packet::HostPathId::none);
    for (std::size_t p = 1; p < host_paths_.paths.size(); ++p) {
      packet::HostPath path;
      for (const auto& use : host_paths_.paths[p].send) path.send.push_back({stages[use.stage], use.times});
      for (const auto& use : host_paths_.paths[p].receive) path.receive.push_back({stages[use.stage], use.times});
      path_ids_.push_back(simulation_->add_host_path(path));
    }
  }

  [[nodiscard]] packet::Options simulation_options() const {
    packet::Options out;
    const auto& routing = workloads_[0]->transport.routing;
    if (routing == "spray") out.routing = packet::RoutingMode::spray;
    if (routing == "adaptive") out.routing = packet::RoutingMode::adaptive;
    out.seed = options_.seed;
    out.shortcuts = options_.shortcuts;
    out.stop = options_.stop;
    if (options_.progress) {
      out.progress = [this, all = std::max(1.0, payload_of(jobs_))](const packet::Progress& at) {
        options_.progress(std::min(1.0, (static_cast<double>(at.delivered.value) + skipped_bytes_) / all));
      };
    }
    out.record_pauses = options_.record_pauses;
    out.sample_interval = options_.sample_interval;
    if (options_.sample_interval.ps > 0) {
      out.sample_flows = true;
      out.sampled_queues = sampled_queues();
    }
    return out;
  }

  [[nodiscard]] std::vector<packet::PortClass> sampled_queues() const {
    std::vector<packet::PortClass> out;
    for (const auto& queue : shared_queues(topology_, jobs_, k_most_sampled)) {
      const packet::PortClass one{fabric_.sender(queue.link),
                                  static_cast<std::uint8_t>(pairs_.priority_of(queue.job, queue.priority))};
      if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
    }
    return out;
  }

  // ---- rounds -----------------------------------------------------------------------------------------------------

  void prepare(std::size_t j) {
    const auto& plan = *jobs_[j].plan;
    auto& state = states_[j];
    state.transfer.resize(plan.program.nodes.size());
    for (const auto& round : plan.program.nodes) {
      NodeTiming timing;
      timing.fixed = models::sum(round.fixed);
      timing.repeat = round.repeat;
      timing.flow_ends.assign(round.flows.size(), Duration{-1});
      state.timing.nodes.push_back(std::move(timing));
    }
  }

  void next_round(std::size_t j) {
    auto& state = states_[j];
    const auto& plan = *jobs_[j].plan;
    if (state.round == plan.program.nodes.size()) {
      state.is_done = true;
      state.timing.total = simulation_->now() - jobs_[j].start + state.skipped;
      return;
    }
    const auto fixed = models::sum(plan.program.nodes[state.round].fixed);
    if (is_ring(j)) {
      start_ring(j);
    } else if (fixed.ps > 0) {
      simulation_->at(simulation_->now() + fixed, [this, j] { start_flows(j); });
    } else {
      start_flows(j);
    }
  }

  [[nodiscard]] bool is_ring(std::size_t j) const {
    const auto& round = jobs_[j].plan->program.nodes[states_[j].round];
    return round.order != models::RepeatOrder::barrier && round.repeat > 1 && !round.flows.empty();
  }

  void start_ring(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    state.round_start = simulation_->now();
    state.ring = RingProgress(round.flows.size(), round.repeat, round.order);
    if (jobs_.size() == 1 && !options_.full_expansion) state.ring.stop_when_steady();
    for (const auto f : starting_order(topology_, round)) begin_in_ring(j, f);
  }

  void begin_in_ring(std::size_t j, std::size_t f) {
    start_flow(j, f, models::sum(jobs_[j].plan->program.nodes[states_[j].round].fixed));
  }

  void end_in_ring(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    for (const auto next : state.ring.end(f, simulation_->now())) begin_in_ring(j, next);
    if (!state.ring.is_done()) return;
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    auto& timing = state.timing.nodes[state.round];
    const auto skipped = state.ring.left_out_time();
    state.skipped += skipped;
    skipped_bytes_ += payload_of(round) * static_cast<double>(state.ring.left_out());
    timing.critical_flow = f;
    describe_ring(round, simulation_->now() - state.round_start + skipped, timing);
    name_bottleneck(j);
    ++state.round;
    next_round(j);
  }

  /// What the fluid engine's shares would say, of the flow that ended the round.
  void name_bottleneck(std::size_t j) {
    const auto& round = jobs_[j].plan->program.nodes[states_[j].round];
    auto& timing = states_[j].timing.nodes[states_[j].round];
    if (round.flows.size() < 2) return;
    // In a ring all are active all the time.
    const auto ends = is_ring(j) ? std::vector<Duration>(round.flows.size(), Duration{INT64_MAX}) : timing.flow_ends;
    timing.binding = shared_bottleneck(resources_, active_beside(round.flows, ends, timing.critical_flow));
  }

  void start_flows(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    state.flows_left = round.flows.size();
    state.round_start = simulation_->now();
    if (round.flows.empty()) return end_round(j);
    for (const auto f : starting_order(topology_, round)) start_flow(j, f, {});
  }

  void start_flow(std::size_t j, std::size_t f, Duration wait) {
    const auto& flow = jobs_[j].plan->program.nodes[states_[j].round].flows[f];
    if (flow.bytes <= 0) {
      simulation_->at(simulation_->now() + wait + flow.latency, [this, j, f] { end_flow(j, f); });
      return;
    }
    if (!is_on_fabric(topology_, flow)) {
      simulation_->at(simulation_->now() + wait + flow.latency, [this, j, f] { pass_host(j, f, 0); });
      return;
    }
    const auto id = transfers_.size();
    transfers_.push_back({j, f, 0});
    const auto before = std::max(Duration{}, flow.latency - fabric_latency(flow));
    const auto begin = simulation_->now() + wait + before + wait_for_receiver(j, f);
    for (std::size_t l = 0; l < flow.legs.size(); ++l) post_leg(id, flow, l, begin);
  }

  /// A flow beside the fabric from byte `from` on: piece by piece through what it crosses, as far as others use it too.
  void pass_host(std::size_t j, std::size_t f, double from) {
    const auto& flow = jobs_[j].plan->program.nodes[states_[j].round].flows[f];
    if (from >= flow.bytes) return end_flow(j, f);
    const auto path = host_paths_.path(j, states_[j].round, f, 0);
    const auto& stages = host_paths_.paths[path].send;
    const bool is_alone =
        std::ranges::none_of(stages, [&](const auto& use) { return host_paths_.is_shared[use.stage] != 0; });
    const double piece = is_alone ? flow.bytes : std::max(k_least_piece, flow.bytes / k_most_pieces);
    const double until = std::min(flow.bytes, from + piece);
    simulation_->at(simulation_->pass(path_ids_[path], until - from), [this, j, f, until] { pass_host(j, f, until); });
  }

  /// Cables and switches on the longest leg: the packets pay it themselves.
  [[nodiscard]] Duration fabric_latency(const Flow& flow) const {
    Duration longest;
    for (const auto& leg : flow.legs) {
      const auto path = topology_.path_between_hcas(leg.from, leg.to, leg.flow);
      FABRICAST_ASSERT(path.has_value(), "no route for a leg of a flow");
      longest = std::max(longest, path->latency);
    }
    return longest;
  }

  /// Bytes that arrive faster than the receiving host takes them are in memory as late as if the sender had been as
  /// slow. The first packet would be there sooner.
  [[nodiscard]] Duration wait_for_receiver(std::size_t j, std::size_t f) const {
    const auto& flow = jobs_[j].plan->program.nodes[states_[j].round].flows[f];
    const auto& stages = host_paths_.paths[host_paths_.path(j, states_[j].round, f, 0)];
    if (flow.legs.size() != 1 || stages.receive.empty()) return {};
    double arrival = host_paths_.slowest(stages.send);
    for (const auto& crossing : flow.crossings) {
      if (is_network_limit(resources_, crossing.resource))
        arrival = std::max(arrival, crossing.times / resources_.capacity(crossing.resource));
    }
    const double first = std::min(flow.bytes, static_cast<double>(topology_.spec().fabric.mtu));
    return from_seconds(first * std::max(0.0, host_paths_.slowest(stages.receive) - arrival));
  }

  /// The leg's bytes over its queue pairs.
  void post_leg(std::size_t id, const Flow& flow, std::size_t l, Duration begin) {
    const auto j = transfers_[id].job;
    const auto& leg = flow.legs[l];
    const auto path = path_ids_[host_paths_.path(j, states_[j].round, transfers_[id].flow, l)];
    const auto bytes = range::whole(std::ceil(flow.bytes * leg.times));
    const auto& pairs = pairs_.of(*simulation_, j, flow, leg);
    const auto n = static_cast<std::int64_t>(pairs.size());
    for (std::int64_t q = 0; q < n; ++q) {
      const auto share = part(bytes, q + 1, n) - part(bytes, q, n);
      if (share == 0) continue;
      ++transfers_[id].messages_left;
      const auto& verb = workloads_[j]->transport.verb;
      packet::Message message;
      message.queue_pair = pairs[static_cast<std::size_t>(q)];
      message.bytes = {share};
      message.verb = verb == "read" ? packet::Verb::read : (verb == "send" ? packet::Verb::send : packet::Verb::write);
      message.start = begin;
      message.tag = id;
      message.path = path;
      simulation_->post(message);
    }
  }

  void end_message(std::uint64_t id) {
    auto& transfer = transfers_[id];
    if (--transfer.messages_left == 0) end_flow(transfer.job, transfer.flow);
  }

  void end_flow(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    auto& timing = state.timing.nodes[state.round];
    timing.flow_ends[f] = simulation_->now() - state.round_start;
    if (is_ring(j)) return end_in_ring(j, f);
    if (--state.flows_left > 0) return;
    timing.critical_flow = f;
    timing.latency = jobs_[j].plan->program.nodes[state.round].flows[f].latency;
    end_round(j);
  }

  void end_round(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    auto& timing = state.timing.nodes[state.round];
    const auto took = simulation_->now() - state.round_start;
    if (state.repeat == 0) name_bottleneck(j);
    state.transfer[state.round] += took - timing.latency;
    ++state.repeat;
    if (jobs_.size() == 1 && !options_.full_expansion && took == state.last_round) {
      const auto left = round.repeat - state.repeat;
      state.skipped += left * (took + timing.fixed);
      skipped_bytes_ += payload_of(round) * static_cast<double>(left);
      state.transfer[state.round] += left * (took - timing.latency);
      state.repeat = round.repeat;
    }
    state.last_round = took;
    if (state.repeat == round.repeat) {
      timing.transfer = state.transfer[state.round] / round.repeat;
      state.repeat = 0;
      state.last_round = {-1};
      ++state.round;
    }
    next_round(j);
  }

  // ---- results ----------------------------------------------------------------------------------------------------

  PacketOutcome outcome() {
    PacketOutcome out;
    out.report = make_report(fabric_.network, simulation_->results(), pairs_.flow_names());
    out.report.flow_control = to_string(settings_.flow_control);
    if (settings_.flow_control == FlowControl::pfc) out.report.lossless = settings_.pfc;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      auto& state = states_[j];
      if (!state.is_done) state.timing.total = simulation_->now() - jobs_[j].start;
      out.timings.push_back(std::move(state.timing));
    }
    return out;
  }

  const ParameterSet& parameters_;
  const models::Resources& resources_;
  const Topology& topology_;
  LosslessSettings settings_;
  const std::vector<Job>& jobs_;
  const std::vector<const Workload*>& workloads_;
  const PacketOptions& options_;
  PacketFabric fabric_;
  PacketPairs pairs_{topology_, settings_, workloads_, fabric_};
  std::unique_ptr<packet::Simulation> simulation_;
  std::vector<State> states_;
  std::vector<Transfer> transfers_;
  HostPaths host_paths_;
  std::vector<packet::HostPathId> path_ids_;  ///< [path of host_paths_]
  double skipped_bytes_ = 0;                  ///< of repeats that were not simulated
};

}  // namespace

Result<PacketOutcome> run_packets(const ParameterSet& parameters, const models::Resources& resources,
                                  const std::vector<Job>& jobs, const std::vector<const Workload*>& workloads,
                                  const PacketOptions& options) {
  auto faults = contradictions(workloads);
  if (!faults.empty()) return tl::unexpected(faults);
  return PacketRun(parameters, resources, jobs, workloads, options).run();
}

}  // namespace fabricast::engine
