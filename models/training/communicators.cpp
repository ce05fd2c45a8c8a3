// SPDX-License-Identifier: Apache-2.0
#include "training/communicators.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "paths/binding.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::training {

namespace {

/// Two flows that take equally long when they cross equally slow resources.
bool is_same_flow(const Flow& one, const Flow& other) {
  return one.bytes == other.bytes && one.rate_cap == other.rate_cap && one.latency == other.latency &&
         one.gap_share == other.gap_share && one.priority == other.priority && one.start == other.start;
}

bool is_same_plan(const OperationPlan& one, const OperationPlan& other) {
  return sum(one.before) == sum(other.before) &&
         std::ranges::equal(one.program.nodes, other.program.nodes, [](const Node& a, const Node& b) {
           return a.repeat == b.repeat && a.order == b.order && sum(a.fixed) == sum(b.fixed) && a.after == b.after &&
                  std::ranges::equal(a.flows, b.flows, is_same_flow);
         });
}

/// `into` does what `plan` does, too.
void merge(const OperationPlan& plan, OperationPlan& into) {
  for (std::size_t n = 0; n < plan.program.nodes.size(); ++n) {
    const auto& node = plan.program.nodes[n];
    for (std::size_t f = 0; f < node.flows.size(); ++f) {
      auto& flow = into.program.nodes[n].flows[f];
      const auto& more = node.flows[f].crossings;
      flow.crossings.insert(flow.crossings.end(), more.begin(), more.end());
      flow.crossings = merged(flow.crossings);
      flow.legs.insert(flow.legs.end(), node.flows[f].legs.begin(), node.flows[f].legs.end());
    }
  }
}

void repeat(std::vector<Term>& terms, double times) {
  for (auto& term : terms) term.time = from_seconds(times * term.time.seconds());
}

/// The nodes of `program` from `first` on take `times` as long as they do alone: their bytes and waits in a row.
void repeat(Program& program, std::size_t first, double times) {
  for (auto n = first; n < program.nodes.size(); ++n) {
    repeat(program.nodes[n].fixed, times);
    for (auto& flow : program.nodes[n].flows) {
      flow.bytes *= times;
      if (flow.payload > 0) flow.payload *= times;
      flow.latency = from_seconds(times * flow.latency.seconds());
      repeat(flow.latency_terms, times);
    }
  }
}

/// Links between switches, and limits of switches: what hosts that do not meet share.
bool is_between_switches(const Resources& resources, const Crossing& crossing) {
  const auto& topology = resources.topology();
  if (topology.host_of(resources.device(crossing.resource)) >= 0) return false;
  return !resources.is_link(crossing.resource) ||
         topology.kind(topology.link(LinkId{crossing.resource}).to) == DeviceKind::network_switch;
}

}  // namespace

void Wire::place(std::size_t first, const Lockstep& part) {
  const auto known = std::ranges::find(parts_, &part);
  placed_.emplace_back(first, static_cast<std::size_t>(known - parts_.begin()));
  if (known == parts_.end()) parts_.push_back(&part);
}

void Wire::fill(Program& program) const {
  std::vector<std::vector<std::vector<Crossing>>> crossings;  // [part][flow]
  for (const auto* part : parts_) crossings.push_back(part->crossings);
  if (is_alone_) {
    std::vector<std::vector<Crossing>*> flows;
    for (auto& part : crossings)
      for (auto& flow : part) flows.push_back(&flow);
    keep_binding_only(*resources_, flows);
  }
  for (const auto& [first, number] : placed_) {
    std::size_t flow = 0;
    for (std::size_t n = 0; n < parts_[number]->plan.program.nodes.size(); ++n)
      for (auto& one : program.nodes[first + n].flows) one.crossings = crossings[number][flow++];
  }
}

Communicators::Communicators(const PlanContext& context, std::vector<Neighbourhood> neighbourhoods, bool is_beside)
    : with_legs_(context.with_legs), neighbourhoods_(std::move(neighbourhoods)) {
  auto own = context;
  const auto has_likes = [](const Neighbourhood& one) { return !one.likes.empty(); };
  const bool has_routes = std::ranges::any_of(neighbourhoods_, has_likes) &&
                          context.topology.devices(DeviceKind::network_switch).size() > 1;
  own.one_of_groups = has_neighbours();
  // None may leave out what binds only beside the others.
  if (neighbourhoods_.size() > 1 || has_neighbours() || has_routes || is_beside) own.runs_alone = false;
  own.with_legs = context.with_legs || has_routes;
  context_ = std::make_shared<const PlanContext>(own);
}

Result<Communicators> Communicators::make(const PlanContext& context, const Workload& workload,
                                          const std::vector<std::vector<DeviceId>>& groups, bool is_beside) {
  Communicators out(context, neighbourhoods_of(context.topology, groups), is_beside);
  for (std::size_t n = 0; n < out.neighbourhoods_.size(); ++n) {
    for (const auto& gpus : out.neighbourhoods_[n].groups) {
      auto made = Communicator::make(*out.context_, workload, gpus);
      if (!made) return tl::unexpected(made.error());
      out.members_.push_back({std::move(*made), n});
    }
  }
  return out;
}

/// Adds what the neighbourhoods that are like this one put on links that they may share with it.
void Communicators::add_likes(const Neighbourhood& neighbourhood, Flow& flow) const {
  const auto& topology = context_->topology;
  const auto there = [&](DeviceId hca, const std::vector<int>& hosts) {
    const auto here = std::ranges::find(neighbourhood.hosts, topology.host_of(hca)) - neighbourhood.hosts.begin();
    FABRICAST_ASSERT(here < std::ssize(hosts), "'{}' is of no host of the group", topology.device(hca).name);
    return topology.device_in_host(hosts[static_cast<std::size_t>(here)], DeviceKind::hca,
                                   topology.device(hca).ordinal);
  };
  CrossingCounter counter;
  for (const auto& crossing : flow.crossings) counter.add(crossing.resource, crossing.times);
  const auto own_legs = flow.legs;
  for (const auto& hosts : neighbourhood.likes) {
    for (auto leg : own_legs) {
      leg.from = there(leg.from, hosts);
      leg.to = there(leg.to, hosts);
      Route route;
      add_wire(*context_, leg.from, leg.to, leg.flow - context_->seed, route);
      for (const auto& crossing : route.crossings)
        if (is_between_switches(context_->resources, crossing))
          counter.add(crossing.resource, leg.times * crossing.times);
      if (with_legs_) flow.legs.push_back(leg);
    }
  }
  flow.crossings = counter.take();
}

const Communicators::Exchange& Communicators::exchange(Benchmark operation, Bytes size) const {
  const auto [it, is_new] = exchanges_.try_emplace({operation, size.value});
  if (!is_new) return it->second;
  std::vector<OperationPlan> plans;
  for (const auto& member : members_) {
    auto plan = member.group.plan(operation, size);
    for (auto& node : plan.program.nodes)
      for (auto& flow : node.flows) add_likes(neighbourhoods_[member.neighbourhood], flow);
    const auto same = std::ranges::find_if(plans, [&](const auto& known) { return is_same_plan(plan, known); });
    if (same == plans.end())
      plans.push_back(std::move(plan));
    else
      merge(plan, *same);
  }
  std::vector<const OperationPlan*> at_once;
  for (const auto& plan : plans) at_once.push_back(&plan);
  it->second.time = time_together(context_->resources, at_once);
  for (auto& plan : plans) {
    auto& part = it->second.parts.emplace_back();
    for (auto& node : plan.program.nodes) {
      for (auto& flow : node.flows) {
        part.crossings.push_back(std::move(flow.crossings));
        flow.crossings.clear();
        flow.legs = with_legs_ ? merged_legs(std::move(flow.legs)) : std::vector<Leg>{};
      }
    }
    part.plan = std::move(plan);
  }
  return it->second;
}

Duration Communicators::time_alone(Benchmark operation, Bytes size) const { return exchange(operation, size).time; }

double Communicators::slowdown(Benchmark operation, Bytes size) const {
  return first().slowdown(operation, size, time_alone(operation, size));
}

std::set<DeviceId> Communicators::hcas_in_use() const {
  constexpr Bytes some{std::int64_t{1} << 30};
  const auto& topology = context_->topology;
  std::set<DeviceId> out;
  for (const auto& member : members_) {
    for (const auto& node : member.group.plan(Benchmark::all_reduce_perf, some).program.nodes) {
      for (const auto& flow : node.flows) {
        for (const auto& crossing : flow.crossings) {
          const auto device = context_->resources.device(crossing.resource);
          if (topology.kind(device) == DeviceKind::hca) out.insert(device);
        }
      }
    }
  }
  return out;
}

int Communicators::append(Program& program, Wire& wire, Benchmark operation, Bytes size, const std::vector<int>& after,
                          int stream, const std::string& name, int slowed, double times) const {
  std::vector<int> ends;
  for (const auto& part : exchange(operation, size).parts) {
    const bool is_first = ends.empty();
    const auto first = program.nodes.size() + 1;
    const double share = is_first && slowed >= 0 ? slowdown(operation, size) : -1;
    ends.push_back(append_operation(program, part.plan, after, is_first ? stream : -1, name, {slowed, share}));
    if (times != 1) repeat(program, first - 1, times);
    wire.place(first, part);
  }
  if (ends.size() == 1) return ends.front();
  Node join;
  join.kind = NodeKind::delay;
  join.label = name;
  join.after = std::move(ends);
  join.stream = stream;
  program.nodes.push_back(std::move(join));
  return static_cast<int>(program.nodes.size()) - 1;
}

}  // namespace fabricast::models::training
