// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "base/assert.hpp"
#include "engine/host_limits.hpp"
#include "engine/packet_demand.hpp"
#include "engine/packet_fabric.hpp"
#include "engine/packet_report.hpp"
#include "packet/simulation.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::Leg;
using models::OperationPlan;

/// Pieces in which a sender limited by its host hands a message to the HCA: the last one ends when the host would.
constexpr std::int64_t k_most_pieces = 128;
constexpr std::int64_t k_least_piece = 4096;  ///< a whole packet, so that headers weigh as in one message
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
    receive_rates_ = receive_rates(parameters_, resources_, jobs_);
    fabric_ = make_packet_fabric(
        {topology_, parameters_, workloads_[0]->transport, hcas_on_fabric(topology_, jobs_), receive_rates_});
    auto faults = packet::validate(fabric_.network);
    std::erase_if(faults, [](const Diagnostic& one) { return one.severity != Severity::error; });
    if (!faults.empty()) return tl::unexpected(faults);
    simulation_ = std::make_unique<packet::Simulation>(fabric_.network, simulation_options());
    simulation_->on_delivered([this](const packet::Completion& done) { end_piece(done.tag); });
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
    const HostLimits* limits = nullptr;  ///< of the round under way
    std::vector<Duration> transfer;      ///< per round, of all repeats
    OperationTiming timing;
  };
  struct Transfer {
    std::size_t job = 0;
    std::size_t flow = 0;
    std::size_t pieces_left = 0;
  };

  // ---- set-up -----------------------------------------------------------------------------------------------------

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
                                  static_cast<std::uint8_t>(priority_of(queue.job, queue.priority))};
      if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
    }
    return out;
  }

  // ---- rounds -----------------------------------------------------------------------------------------------------

  void prepare(std::size_t j) {
    const auto& plan = *jobs_[j].plan;
    auto& state = states_[j];
    state.transfer.resize(plan.rounds.size());
    for (const auto& round : plan.rounds) {
      RoundTiming timing;
      timing.fixed = models::sum(round.fixed);
      timing.repeat = round.repeat;
      timing.flow_ends.assign(round.flows.size(), Duration{-1});
      state.timing.rounds.push_back(std::move(timing));
    }
  }

  void next_round(std::size_t j) {
    auto& state = states_[j];
    const auto& plan = *jobs_[j].plan;
    if (state.round == plan.rounds.size()) {
      state.is_done = true;
      state.timing.total = simulation_->now() - jobs_[j].start + state.skipped;
      return;
    }
    const auto fixed = models::sum(plan.rounds[state.round].fixed);
    if (fixed.ps > 0) {
      simulation_->at(simulation_->now() + fixed, [this, j] { start_flows(j); });
    } else {
      start_flows(j);
    }
  }

  void start_flows(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->rounds[state.round];
    state.flows_left = round.flows.size();
    state.round_start = simulation_->now();
    if (round.flows.empty()) return end_round(j);
    state.limits = &limits_of(j);
    for (const auto f : starting_order(topology_, round)) start_flow(j, f);
  }

  /// Host limits of the round under way, shared with the rounds that the other jobs are in now.
  const HostLimits& limits_of(std::size_t j) {
    std::vector<std::size_t> rounds;  // of all jobs; one past the end for those that are not running
    for (std::size_t k = 0; k < jobs_.size(); ++k) {
      const bool is_running = !states_[k].is_done && simulation_->now() >= jobs_[k].start;
      rounds.push_back(k == j || is_running ? states_[k].round : jobs_[k].plan->rounds.size());
    }
    const auto [it, is_new] = limits_.try_emplace({j, rounds});
    if (!is_new) return it->second;
    std::vector<Flow> others;
    for (std::size_t k = 0; k < jobs_.size(); ++k) {
      if (k == j || rounds[k] == jobs_[k].plan->rounds.size()) continue;
      const auto& flows = jobs_[k].plan->rounds[rounds[k]].flows;
      others.insert(others.end(), flows.begin(), flows.end());
    }
    return it->second = host_limits(resources_, jobs_[j].plan->rounds[states_[j].round].flows, others);
  }

  void start_flow(std::size_t j, std::size_t f) {
    const auto& flow = jobs_[j].plan->rounds[states_[j].round].flows[f];
    const double rate = states_[j].limits->send_rates[f];
    if (!is_on_fabric(topology_, flow) || flow.bytes <= 0) {
      // Nothing enters the fabric: as in the fluid engine.
      const auto transfer = flow.bytes <= 0 || !std::isfinite(rate) ? Duration{} : from_seconds(flow.bytes / rate);
      simulation_->at(simulation_->now() + flow.latency + transfer, [this, j, f] { end_flow(j, f); });
      return;
    }
    const auto id = transfers_.size();
    transfers_.push_back({j, f, 0});
    const auto begin =
        simulation_->now() + std::max(Duration{}, flow.latency - fabric_latency(flow) - drain_time(flow));
    for (const auto& leg : flow.legs) post_leg(id, flow, leg, begin, rate);
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

  /// What a receiver slower than its port takes for the last packet: fluid latencies of such flows have it already.
  [[nodiscard]] Duration drain_time(const Flow& flow) const {
    const auto rate = receive_rates_.find(flow.legs.front().to.value);
    if (flow.legs.size() != 1 || rate == receive_rates_.end()) return {};
    return from_seconds(std::min(flow.bytes, static_cast<double>(topology_.spec().fabric.mtu)) / rate->second);
  }

  /// The leg's bytes over its queue pairs; in pieces when the host is slower than the fabric.
  void post_leg(std::size_t id, const Flow& flow, const Leg& leg, Duration begin, double rate) {
    const auto& state = states_[transfers_[id].job];
    const double alone = state.limits->fabric_rates[transfers_[id].flow];
    const auto bytes = range::whole(std::ceil(flow.bytes * leg.times));
    const auto& pairs = queue_pairs(transfers_[id].job, flow, leg);
    const auto n = static_cast<std::int64_t>(pairs.size());
    for (std::int64_t q = 0; q < n; ++q) {
      const auto share = part(bytes, q + 1, n) - part(bytes, q, n);
      if (share == 0) continue;
      if (rate >= k_near * alone) {
        post(id, pairs[static_cast<std::size_t>(q)], share, begin);
        continue;
      }
      // A piece goes out when its last byte is there; its own time on the wire is taken off.
      const auto pieces = std::clamp<std::int64_t>(share / k_least_piece, 1, k_most_pieces);
      const double on_wire = flow.bytes / static_cast<double>(pieces) / alone;
      for (std::int64_t k = 0; k < pieces; ++k) {
        const auto piece = part(share, k + 1, pieces) - part(share, k, pieces);
        const double whole = flow.bytes * static_cast<double>(k + 1) / static_cast<double>(pieces) / rate;
        post(id, pairs[static_cast<std::size_t>(q)], piece, begin + from_seconds(std::max(0.0, whole - on_wire)));
      }
    }
  }

  void post(std::size_t id, packet::QueuePairId pair, std::int64_t bytes, Duration start) {
    ++transfers_[id].pieces_left;
    const auto& verb = workloads_[transfers_[id].job]->transport.verb;
    packet::Message message;
    message.queue_pair = pair;
    message.bytes = {bytes};
    message.verb = verb == "read" ? packet::Verb::read : (verb == "send" ? packet::Verb::send : packet::Verb::write);
    message.start = start;
    message.tag = id;
    simulation_->post(message);
  }

  [[nodiscard]] int priority_of(std::size_t j, int flow_priority) const {
    if (has_lane_rule(topology_, settings_)) return 0;  // where routes start
    return priority_in_use(settings_, workloads_[j]->transport.priority,
                           flow_priority < 0 ? std::nullopt : std::optional(flow_priority));
  }

  /// Made at first use. A READ's initiator is the receiver of the data.
  const std::vector<packet::QueuePairId>& queue_pairs(std::size_t j, const Flow& flow, const Leg& leg) {
    const int priority = priority_of(j, flow.priority);
    auto& pairs = queue_pairs_[{j, leg.from, leg.to, leg.flow, priority}];
    if (!pairs.empty()) return pairs;
    const bool is_read = workloads_[j]->transport.verb == "read";
    packet::QueuePair pair;
    const auto there = route_of(leg.from, leg.to, leg.flow);
    pair.source = fabric_.sender(there.front());
    pair.destination = fabric_.sender(topology_.reverse(there.back()));
    pair.traffic_class = priority;
    if (workloads_[0]->transport.routing == "ecmp") {
      pair.route = ports_of(there);
      const auto back = way_back(there, route_of(leg.to, leg.from, leg.flow));
      pair.reverse_route = ports_of(back);
      pair.lanes = lanes_of(there);
      pair.reverse_lanes = lanes_of(back);
    }
    if (is_read) {
      std::swap(pair.source, pair.destination);
      std::swap(pair.route, pair.reverse_route);
      std::swap(pair.lanes, pair.reverse_lanes);
    }
    auto name = flow.name;
    if (name.empty()) name = fmt::format("{} -> {}", topology_.device(leg.from).name, topology_.device(leg.to).name);
    for (int q = 0; q < std::max(1, workloads_[j]->queue_pairs); ++q) {
      pairs.push_back(simulation_->add_queue_pair(pair));
      flow_names_.push_back(name);
    }
    return pairs;
  }

  /// Virtual lanes from the first switch on, where routes change them on their way (torus, dragonfly); else none.
  [[nodiscard]] std::vector<std::uint8_t> lanes_of(const std::vector<LinkId>& links) const {
    std::vector<std::uint8_t> lanes;
    if (!has_lane_rule(topology_, settings_)) return lanes;
    int lane = 0;
    for (std::size_t i = 1; i < links.size(); ++i) {
      lane = topology_.next_lane(links[i - 1], lane, links[i], settings_.virtual_lanes);
      lanes.push_back(static_cast<std::uint8_t>(lane));
    }
    return lanes;
  }

  [[nodiscard]] std::vector<LinkId> route_of(DeviceId from, DeviceId to, std::uint64_t flow) const {
    const auto path = topology_.path_between_hcas(from, to, flow);
    FABRICAST_ASSERT(path.has_value(), "no route for a leg of a flow");
    return path->links;
  }

  /// Acknowledgements take the fabric's own route back, where that joins the same two ports; else the same cables.
  [[nodiscard]] std::vector<LinkId> way_back(const std::vector<LinkId>& there, std::vector<LinkId> back) const {
    if (back.front() == topology_.reverse(there.back()) && back.back() == topology_.reverse(there.front())) return back;
    back.clear();
    for (auto link = there.rbegin(); link != there.rend(); ++link) back.push_back(topology_.reverse(*link));
    return back;
  }

  /// Egress ports from the first switch on.
  [[nodiscard]] std::vector<packet::PortId> ports_of(const std::vector<LinkId>& links) const {
    std::vector<packet::PortId> ports;
    for (std::size_t i = 1; i < links.size(); ++i) ports.push_back(fabric_.sender(links[i]));
    return ports;
  }

  void end_piece(std::uint64_t id) {
    auto& transfer = transfers_[id];
    if (--transfer.pieces_left == 0) end_flow(transfer.job, transfer.flow);
  }

  void end_flow(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    auto& timing = state.timing.rounds[state.round];
    timing.flow_ends[f] = simulation_->now() - state.round_start;
    if (--state.flows_left > 0) return;
    timing.critical_flow = f;
    timing.latency = jobs_[j].plan->rounds[state.round].flows[f].latency;
    end_round(j);
  }

  void end_round(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->rounds[state.round];
    auto& timing = state.timing.rounds[state.round];
    const auto took = simulation_->now() - state.round_start;
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
    out.report = make_report(fabric_.network, simulation_->results(), flow_names_);
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
  std::map<std::int32_t, double> receive_rates_;  ///< of HCAs slower than their port
  PacketFabric fabric_;
  std::unique_ptr<packet::Simulation> simulation_;
  std::vector<State> states_;
  std::vector<Transfer> transfers_;
  std::map<std::tuple<std::size_t, DeviceId, DeviceId, std::uint64_t, int>, std::vector<packet::QueuePairId>>
      queue_pairs_;
  std::vector<std::string> flow_names_;                                            ///< per queue pair
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, HostLimits> limits_;  ///< {job, rounds of all jobs}
  double skipped_bytes_ = 0;  ///< of repeats that were not simulated
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
