// SPDX-License-Identifier: Apache-2.0
#include "engine/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "engine/bounds.hpp"
#include "engine/causes.hpp"
#include "engine/host_limits.hpp"
#include "engine/interval.hpp"
#include "engine/row_scatter.hpp"
#include "engine/stream_terms.hpp"
#include "fabricast/lossless.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::OperationPlan;
using models::Planner;
using models::Resources;

/// Terms are rounded one by one: a transfer is as long as its own term.
constexpr double k_as_long = 0.999;

struct Bottleneck {
  std::string name;
  std::string parameter;
};

Bottleneck bottleneck_of(const Resources& resources, const Flow& flow) {
  const int binding = binding_crossing(resources, flow);
  if (binding < 0 && flow.gap_share > 0.5) return {"one connection with its gaps", flow.gap_parameter};
  if (binding < 0) return {flow.cap_name, flow.cap_parameter};
  const int resource = flow.crossings[static_cast<std::size_t>(binding)].resource;
  return {resources.name(resource), resources.parameter(resource)};
}

/// Adds a term, merging with an earlier one of the same name and parameter.
void add_term(std::vector<Term>& terms, const Term& term, std::int64_t times) {
  for (auto& known : terms) {
    if (known.name == term.name && known.parameter == term.parameter) {
      known.time += times * term.time;
      return;
    }
  }
  terms.push_back(term);
  terms.back().time = times * term.time;
}

/// From the node that ends last back to the one each waited for longest; of a chain all.
std::vector<std::size_t> critical_path(const models::Program& program, const OperationTiming& timing) {
  std::vector<std::size_t> path;
  if (program.is_chain()) {
    path.resize(program.nodes.size());
    std::iota(path.begin(), path.end(), std::size_t{0});
    return path;
  }
  const auto causes = waited_for(program, timing);
  for (int n = last_to_end(timing); n >= 0; n = causes[static_cast<std::size_t>(n)])
    path.push_back(static_cast<std::size_t>(n));
  std::ranges::reverse(path);
  return path;
}

/// A term's name without its numbers, which differ from size to size: "28 hops over nvlink (2 loops)" are hops.
std::string kind_of_term(const std::string& name) {
  if (name.find(" hops ") == std::string::npos) return name;
  const auto start = name.find_first_not_of("0123456789 ");
  return name.substr(start, name.find(" (") - start);
}

/// A row's terms, time and band from a plan and what the engine timed of it.
struct RowBuilder {
  const Resources& resources;
  const OperationPlan& plan;
  const OperationTiming& timing;
  const ParameterSet& parameters;
  bool is_packet = false;
  std::vector<std::size_t> path = critical_path(plan.program, timing);  ///< nodes whose times add up to the total

  [[nodiscard]] std::vector<Term> total_terms() const {
    std::vector<Term> terms;
    for (const auto n : path) {
      const auto& node = plan.program.nodes[n];
      for (const auto& term : node.fixed) add_term(terms, term, node.repeat);
      if (node.kind == models::NodeKind::compute) add_work(terms, node, timing.nodes[n]);
      if (!node.flows.empty()) add_flow(terms, node, timing.nodes[n]);
    }
    std::vector<Term> all;
    for (const auto& term : plan.before) add_term(all, term, 1);
    for (auto& term : terms) {
      if (plan.printed_share != 1) term.time = from_seconds(plan.printed_share * term.time.seconds());
      add_term(all, term, 1);
    }
    return all;
  }

  /// The time of the operation as the benchmark prints it.
  [[nodiscard]] Duration printed_total() const {
    const auto before = models::sum(plan.before);
    if (plan.printed_share == 1 || timing.total.is_past_range() || timing.total < before) return timing.total;
    return before + from_seconds(plan.printed_share * (timing.total - before).seconds());
  }

  void add_work(std::vector<Term>& terms, const models::Node& node, const NodeTiming& one) const {
    const auto* parameter = parameters.find(node.work_parameter);
    add_term(terms, {node.work_name, node.work, node.work_parameter, parameter == nullptr ? "" : parameter->source},
             one.repeat);
    if (one.slowed.ps > 0)
      add_term(terms, {node.work_name + ", beside transfers", one.slowed, "slowdown by active flows", "executor"}, 1);
  }

  /// What a flow takes alone; of one that its connection holds, the gaps between messages apart from the messages.
  void add_transfer(std::vector<Term>& terms, const Flow& flow, Duration time, std::int64_t repeat) const {
    auto limit = bottleneck_of(resources, flow);
    const auto source_of = [&](const std::string& name) {
      const auto* parameter = parameters.find(name);
      return parameter == nullptr ? std::string("topology") : parameter->source;
    };
    if (flow.gap_share > 0 && binding_crossing(resources, flow) < 0) {
      const auto gaps = from_seconds(flow.gap_share * time.seconds());
      add_term(terms,
               {"gaps between messages of a connection", gaps, flow.gap_parameter, source_of(flow.gap_parameter)},
               repeat);
      limit = {flow.cap_name, flow.cap_parameter};
      time = time - gaps;
    }
    add_term(terms, {fmt::format("transfer over {}", limit.name), time, limit.parameter, source_of(limit.parameter)},
             repeat);
  }

  void add_flow(std::vector<Term>& terms, const models::Node& node, const NodeTiming& one) const {
    const auto& flow = node.flows[one.critical_flow];
    for (const auto& term : one.latency_terms.empty() ? flow.latency_terms : one.latency_terms)
      add_term(terms, term, one.repeat);
    if (one.transfer.ps <= 0) return;
    const auto alone = flow.bytes <= 0 ? Duration{} : alone_time(flow);
    const bool is_shared = one.transfer > alone + k_rounding;
    add_transfer(terms, flow, is_shared ? alone : one.transfer, one.repeat);
    if (!is_shared) return;
    const auto rest = one.transfer - alone;
    add_term(terms,
             is_packet ? Term{"queues, pauses and packet headers", rest, "topology", "packet engine"}
                       : Term{sharing_at(one, flow), rest, "max-min fair share", "fluid engine"},
             one.repeat);
  }

  [[nodiscard]] Duration alone_time(const Flow& flow) const {
    return from_seconds(flow.bytes / rate_alone(resources, flow));
  }

  /// Where the longest transfer on the critical path was held; empty without one.
  [[nodiscard]] std::string holder() const {
    Duration longest{-1};
    std::string name;
    for (const auto n : path) {
      const auto& node = plan.program.nodes[n];
      const auto& one = timing.nodes[n];
      if (node.flows.empty() || one.repeat * one.transfer <= longest) continue;
      longest = one.repeat * one.transfer;
      name = held_by(one, node.flows[one.critical_flow]);
    }
    return name;
  }

  /// What all transfers take of the printed time: of a step its exposed exchanges, elsewhere those one after the other.
  [[nodiscard]] Duration transfers(const std::vector<Term>& terms) const {
    Duration all;
    if (plan.watched_stream >= 0) {
      for (const auto& term : terms)
        if (term.parameter == "topology" && !is_inside_work(term.name)) all += term.time;
      return all;
    }
    for (const auto n : path)
      if (!plan.program.nodes[n].flows.empty()) all += timing.nodes[n].repeat * timing.nodes[n].transfer;
    return from_seconds(plan.printed_share * all.seconds() /
                        static_cast<double>(std::max<std::int64_t>(1, plan.operations)));
  }

  /// An exchange that is part of a node's work (inside layers) and no flow of its own.
  [[nodiscard]] bool is_inside_work(const std::string& term) const {
    return std::ranges::any_of(path, [&](auto n) {
      const auto& node = plan.program.nodes[n];
      return node.kind == models::NodeKind::compute &&
             std::ranges::find(node.fixed, term, &Term::name) != node.fixed.end();
    });
  }

  /// What takes most of the time: what holds the transfers, or else the longest other term.
  [[nodiscard]] std::string bottleneck(const std::vector<Term>& terms) const {
    const auto longest = std::ranges::max_element(terms, {}, &Term::time);
    const auto name = holder();
    if (longest == terms.end() || (!name.empty() && transfers(terms).seconds() >= k_as_long * longest->time.seconds()))
      return name;
    return kind_of_term(longest->name);
  }

  /// Where the flow was held while others were active; what holds it alone when that is not known.
  [[nodiscard]] std::string held_by(const NodeTiming& one, const Flow& flow) const {
    return one.binding >= 0 ? resources.name(one.binding) : bottleneck_of(resources, flow).name;
  }

  [[nodiscard]] std::string sharing_at(const NodeTiming& one, const Flow& flow) const {
    const auto place = held_by(one, flow);
    if (place == bottleneck_of(resources, flow).name) return "sharing with concurrent flows";
    return fmt::format("sharing {} with concurrent flows", place);
  }

  /// Of a time and a floor; the scatter is the one of the plan's floor.
  [[nodiscard]] Duration longer_of(Duration time, Duration floor) const {
    const double scatter = 2 * plan.floor_jitter * plan.floor.seconds();
    if (scatter <= 0) return std::max(time, floor);
    const double t = time.seconds();
    const double f = floor.seconds();
    return from_seconds((t + f + std::hypot(t - f, scatter)) / 2);
  }

  [[nodiscard]] bool is_floor(const Term& term) const {
    return term.name == plan.floor_term.name && term.parameter == plan.floor_term.parameter;
  }

  /// The band of the longer of two: what the operation takes itself, and its floor. What hides behind the other widens
  /// nothing. `of` makes the band of a row.
  template <typename Of>
  [[nodiscard]] Interval band(const Row& row, Duration waited, Of of) const {
    if (plan.floor.ps <= 0 || plan.watched_stream >= 0) return of(row);
    Row own = row;
    std::erase_if(own.terms, [&](const Term& term) { return is_floor(term); });
    own.time = models::sum(own.terms);
    Row least = row;
    least.time = plan.floor + waited;
    least.terms = {plan.floor_term};
    least.terms[0].time = plan.floor;
    const auto one = of(own);
    const auto other = of(least);
    return {std::min(row.time, longer_of(one.low, other.low)), std::max(row.time, longer_of(one.high, other.high))};
  }

  /// Divides the terms by the number of operations; the largest takes what rounding leaves, so that they add up. True
  /// when the operation waits for its floor, however fast it is itself.
  bool set_time(Row& row) const {
    auto terms = plan.watched_stream < 0 ? total_terms() : stream_terms(plan, timing, parameters);
    Duration total = printed_total();
    if (plan.operations > 1) {
      total = (total + Duration{plan.operations - 1}) / plan.operations;
      for (auto& term : terms) term.time = term.time / plan.operations;
    }
    const auto least = longer_of(total, plan.floor);
    const bool waits = least > total && plan.floor_jitter <= 0;
    if (least > total) {
      auto wait = plan.floor_term;
      wait.time = least - total;
      terms.push_back(std::move(wait));
      total = least;
    }
    row.time = total;
    const auto rest = total - models::sum(terms);
    if (rest.ps != 0) {
      auto largest =
          std::max_element(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
      if (largest != terms.end()) {
        largest->time += rest;
      } else {
        terms.push_back({"rounding", rest, "", ""});
      }
    }
    row.terms = std::move(terms);
    return waits;
  }
};

/// Completion of every flow of the first node, which is the only one of plans that ask for it.
std::vector<FlowTime> flow_times(const RowBuilder& builder, std::optional<int> workload_priority) {
  std::vector<FlowTime> out;
  if (!builder.plan.has_flow_times || builder.plan.program.nodes.empty()) return out;
  const auto& node = builder.plan.program.nodes[0];
  const auto settings = lossless_settings(builder.resources.topology(), builder.parameters);
  const bool has_lanes = has_lane_rule(builder.resources.topology(), settings);
  for (std::size_t f = 0; f < node.flows.size(); ++f) {
    const auto& flow = node.flows[f];
    const auto asked = flow.priority < 0 ? std::nullopt : std::optional(flow.priority);
    const auto& topology = builder.resources.topology();
    const int marked = flow.legs.empty()
                           ? priority_in_use(settings, workload_priority, asked)
                           : priority_in_use(topology, settings, flow.legs.front().from, workload_priority, asked);
    const int priority = has_lanes ? 0 : marked;
    out.push_back({flow.name, priority, to_bytes(flow.bytes), flow.start, builder.timing.nodes[0].flow_ends[f],
                   flow.latency - flow.start + builder.alone_time(flow)});
  }
  return out;
}

}  // namespace

Row make_row(const Resources& resources, const Planner& planner, const OperationPlan& plan,
             const OperationTiming& timing, const Waits& waits, const ParameterSet& parameters,
             const Workload& workload, bool is_packet, const std::vector<Duration>& drawn,
             std::set<std::string>& outside_in) {
  Row row;
  row.size = plan.size;
  const RowBuilder builder{resources, plan, timing, parameters, is_packet};
  const bool is_held_by_floor = builder.set_time(row);
  Duration waited;
  for (auto& wait : waits(row.time)) {
    row.time += wait.time;
    waited += wait.time;
    row.terms.push_back(std::move(wait));
  }
  row.label = plan.label;
  row.figures = plan.figures;
  row.algbw = average_rate(plan.size, row.time);
  row.busbw = row.algbw * planner.bus_factor();
  if (is_bandwidth_test(workload.benchmark) && row.time.ps > 0) row.messages_per_s = 1.0 / row.time.seconds();
  row.algorithm = plan.algorithm;
  row.protocol = plan.protocol;
  row.channels = plan.channels;
  // Who waits for a floor is not faster for anything else, short of what others take of the devices.
  row.bottleneck = is_held_by_floor && waited <= plan.floor ? plan.floor_term.name : builder.bottleneck(row.terms);
  // With routes drawn by a hash the fabric allows what the best draw does.
  const auto bound = bound_of(resources, plan);
  row.physical_bound = bound;
  if (!drawn.empty()) row.physical_bound = std::min({bound, spread_bound(resources, plan), std::ranges::min(drawn)});
  const int ranks = plan.num_ranks > 0 ? plan.num_ranks : planner.num_ranks();
  const int hosts = plan.num_hosts > 0 ? plan.num_hosts : planner.num_hosts();
  const bool is_step = workload.benchmark == Benchmark::training;
  const auto between = scatter(planner, plan, row, waited, workload, hosts, parameters);
  const auto least = std::min(row.physical_bound, row.time);
  const auto band_by = [&](const auto& known) {
    return builder.band(row, waited, [&](const Row& part) { return interval(part, parameters, known, between); });
  };
  Interval band;
  if (has_record(parameters)) {
    const auto kind = kind_of(resources.topology(), workload.benchmark, hosts, planner.devices(), row);
    const auto known = acquaintance(row, kind, ranks, hosts, parameters, is_step);
    band = band_by(known);
    row.is_extrapolated = !known.in.empty();
    outside_in.insert(known.in.begin(), known.in.end());
  } else {
    const auto outside = extrapolation(row, ranks, hosts, parameters, is_step);
    band = band_by(outside);
    row.is_extrapolated = outside.is_outside;
  }
  row.low_time = std::max(band.low, least);
  row.high_time = band.high;
  if (plan.high.ps > 0) {
    row.low_time = std::clamp(plan.low, least, row.time);
    row.high_time = std::max(plan.high, row.time);
  }
  if (!drawn.empty()) {
    const auto draws = spread_of_draws(row.time, bound, drawn);
    row.low_time = std::max(least, both({row.low_time, row.time}, draws, row.time).low);
    row.high_time = both({row.time, row.high_time}, draws, row.time).high;
  }
  if (auto figures = planner.figures(row, waited); !figures.empty()) row.figures = std::move(figures);
  if (plan.watched_stream >= 0) row.timeline = timeline(plan, timing);
  row.flows = flow_times(builder, workload.transport.priority);
  return row;
}

bool is_past_range(const Row& row) {
  const auto is_past = [](const auto&... all) { return (all.is_past_range() || ...); };
  return is_past(row.size, row.time, row.low_time, row.high_time, row.physical_bound) ||
         std::ranges::any_of(row.terms, [&](const Term& term) { return is_past(term.time); }) ||
         std::ranges::any_of(row.flows,
                             [&](const FlowTime& flow) { return is_past(flow.bytes, flow.end, flow.alone); });
}

}  // namespace fabricast::engine
