// SPDX-License-Identifier: Apache-2.0
#include "engine/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>

#include "base/assert.hpp"
#include "engine/simgrid_clock.hpp"

namespace fabricast::engine {

namespace {

using models::Crossing;
using models::Flow;
using models::Resources;
using models::Round;

double rate_alone(const Resources& resources, const Flow& flow) {
  double rate = flow.rate_cap;
  for (const auto& crossing : flow.crossings) {
    rate = std::min(rate, resources.capacity(crossing.resource) / crossing.times);
  }
  return rate;
}

/// Infinite when something on the way has no capacity.
double seconds_alone(const Resources& resources, const Flow& flow) {
  if (flow.bytes <= 0) return 0;
  const double rate = rate_alone(resources, flow);
  FABRICAST_ASSERT(!std::isinf(rate), "nothing limits a flow of {} bytes", flow.bytes);
  return rate > 0 ? flow.bytes / rate : std::numeric_limits<double>::infinity();
}

Duration transfer_alone(const Resources& resources, const Flow& flow) {
  return from_seconds_up(seconds_alone(resources, flow));
}

/// All flows one after another: no fair share of the same flows takes longer, because some resource is always full.
double serial_seconds(const Resources& resources, const std::vector<Flow>& flows) {
  double seconds = 0;
  for (const auto& flow : flows) seconds += flow.latency.seconds() + seconds_alone(resources, flow);
  return seconds;
}

double serial_seconds(const Resources& resources, const models::OperationPlan& plan) {
  double seconds = models::sum(plan.before).seconds();
  for (const auto& round : plan.rounds) {
    const double once = models::sum(round.fixed).seconds() + serial_seconds(resources, round.flows);
    seconds += once * static_cast<double>(round.repeat);
  }
  return seconds;
}

/// The flows of one run with resources renumbered densely, caps as resources of their own, and, unless `keep_all`,
/// resources that another one dominates left out.
struct DenseFlows {
  std::vector<double> capacities;
  std::vector<std::vector<Crossing>> crossings;  ///< per flow
};

DenseFlows make_dense(const Resources& resources, const std::vector<const Flow*>& flows, bool keep_all) {
  // users[resource] = (flow, times) in flow order; resources with equal users differ only in capacity.
  std::map<int, std::vector<std::pair<int, int>>> users;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (const auto& crossing : flows[f]->crossings)
      users[crossing.resource].emplace_back(static_cast<int>(f), crossing.times);
  }
  DenseFlows dense;
  dense.crossings.resize(flows.size());
  std::map<std::vector<std::pair<int, int>>, int> by_users;
  const auto add = [&](const std::vector<std::pair<int, int>>& who, double capacity) {
    if (!keep_all) {
      const auto [it, is_new] = by_users.try_emplace(who, static_cast<int>(dense.capacities.size()));
      if (!is_new) {
        auto& known = dense.capacities[static_cast<std::size_t>(it->second)];
        known = std::min(known, capacity);
        return;
      }
    }
    const int index = static_cast<int>(dense.capacities.size());
    dense.capacities.push_back(capacity);
    for (const auto& [flow, times] : who) dense.crossings[static_cast<std::size_t>(flow)].push_back({index, times});
  };
  for (const auto& [resource, who] : users) add(who, resources.capacity(resource));
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (std::isfinite(flows[f]->rate_cap)) add({{static_cast<int>(f), 1}}, flows[f]->rate_cap);
  }
  return dense;
}

/// Ends of flows started together on the idle network: latency, then a fair share of what they cross.
std::vector<Duration> finish_times(const Resources& resources, const std::vector<Flow>& flows, bool keep_all) {
  const double longest = serial_seconds(resources, flows);
  if (!std::isfinite(longest)) return std::vector<Duration>(flows.size(), Duration{range::k_past_range});
  std::vector<const Flow*> pointers;
  for (const auto& flow : flows) pointers.push_back(&flow);
  const auto dense = make_dense(resources, pointers, keep_all);
  auto& clock = SimGridClock::instance();
  clock.begin(dense.capacities, longest);
  std::vector<Duration> ends(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const double latency = flows[f].latency.seconds();
    const auto begin = [&, f] {
      if (flows[f].bytes <= 0) {
        ends[f] = flows[f].latency;
        return;
      }
      clock.start_flow(flows[f].bytes, dense.crossings[f], [&, f] { ends[f] = from_seconds_up(clock.now()); });
    };
    if (latency > 0) {
      clock.after(latency, begin);
    } else {
      begin();
    }
  }
  clock.run();
  return ends;
}

RoundTiming time_alone(const Resources& resources, const Round& round, bool keep_all) {
  RoundTiming timing;
  timing.fixed = models::sum(round.fixed);
  timing.repeat = round.repeat;
  if (round.flows.empty()) return timing;
  std::vector<Duration> ends;
  if (round.flows.size() == 1 && !keep_all) {
    ends = {round.flows[0].latency + transfer_alone(resources, round.flows[0])};
  } else {
    ends = finish_times(resources, round.flows, keep_all);
  }
  const auto last = std::max_element(ends.begin(), ends.end());
  timing.critical_flow = static_cast<std::size_t>(last - ends.begin());
  timing.latency = round.flows[timing.critical_flow].latency;
  timing.transfer = *last - timing.latency;
  timing.flow_ends = std::move(ends);
  return timing;
}

OperationTiming run_alone(const Resources& resources, const models::OperationPlan& plan, const FluidOptions& options) {
  OperationTiming timing;
  timing.total = models::sum(plan.before);
  for (const auto& round : plan.rounds) {
    auto one = time_alone(resources, round, options.full_expansion);
    if (options.full_expansion) {
      for (std::int64_t i = 1; i < round.repeat; ++i) {
        const auto again = time_alone(resources, round, true);
        timing.total += again.fixed + again.latency + again.transfer;
      }
      timing.total += one.fixed + one.latency + one.transfer;
    } else {
      timing.total += one.repeat * (one.fixed + one.latency + one.transfer);
    }
    timing.rounds.push_back(one);
  }
  return timing;
}

/// Several jobs on one clock. Rounds of a job follow one another; jobs meet on shared resources.
class ConcurrentRun {
 public:
  ConcurrentRun(const Resources& resources, const std::vector<Job>& jobs, bool keep_all) : jobs_(jobs) {
    std::vector<const Flow*> flows;
    for (const auto& job : jobs) {
      first_flow_.emplace_back();
      for (const auto& round : job.plan->rounds) {
        first_flow_.back().push_back(static_cast<int>(flows.size()));
        for (const auto& flow : round.flows) flows.push_back(&flow);
      }
    }
    dense_ = make_dense(resources, flows, keep_all);
    states_.resize(jobs.size());
  }

  /// `longest`: seconds that all jobs would take one after another, from the first start on.
  std::vector<OperationTiming> run(double longest) {
    clock_.begin(dense_.capacities, longest);
    Duration first = jobs_[0].start;
    for (const auto& job : jobs_) first = std::min(first, job.start);
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      auto& timing = states_[j].timing;
      for (const auto& round : jobs_[j].plan->rounds) {
        RoundTiming one;
        one.fixed = models::sum(round.fixed);
        one.repeat = round.repeat;
        if (jobs_[j].plan->has_flow_times) one.flow_ends.resize(round.flows.size());
        timing.rounds.push_back(one);
      }
      states_[j].start = jobs_[j].start - first;
      clock_.after((states_[j].start + models::sum(jobs_[j].plan->before)).seconds(), [this, j] { next_round(j); });
    }
    clock_.run();
    std::vector<OperationTiming> timings;
    for (auto& state : states_) timings.push_back(std::move(state.timing));
    return timings;
  }

 private:
  struct State {
    std::size_t round = 0;
    std::int64_t repeat = 0;
    std::size_t flows_left = 0;
    double round_start = 0;
    Duration start;  ///< after the first job's
    OperationTiming timing;
  };

  void next_round(std::size_t j) {
    auto& state = states_[j];
    const auto& plan = *jobs_[j].plan;
    if (state.round == plan.rounds.size()) {
      state.timing.total = from_seconds_up(clock_.now()) - state.start;
      return;
    }
    const auto& round = plan.rounds[state.round];
    const auto fixed = models::sum(round.fixed);
    if (fixed.ps > 0) {
      clock_.after(fixed.seconds(), [this, j] { start_flows(j); });
    } else {
      start_flows(j);
    }
  }

  void start_flows(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->rounds[state.round];
    state.flows_left = round.flows.size();
    state.round_start = clock_.now();
    if (round.flows.empty()) return end_round(j);
    const int first = first_flow_[j][state.round];
    for (std::size_t f = 0; f < round.flows.size(); ++f) {
      const auto& flow = round.flows[f];
      const auto begin = [this, j, f, first, bytes = flow.bytes] {
        if (bytes <= 0) return end_flow(j, f);
        clock_.start_flow(bytes, dense_.crossings[static_cast<std::size_t>(first) + f],
                          [this, j, f] { end_flow(j, f); });
      };
      clock_.after(flow.latency.seconds(), begin);
    }
  }

  void end_flow(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    auto& timing = state.timing.rounds[state.round];
    if (jobs_[j].plan->has_flow_times) timing.flow_ends[f] = from_seconds_up(clock_.now() - state.round_start);
    if (--state.flows_left > 0) return;
    timing.critical_flow = f;
    timing.latency = jobs_[j].plan->rounds[state.round].flows[f].latency;
    // Repeats of a round may differ beside other jobs; the mean is reported.
    sum_transfer_s_[{j, state.round}] += clock_.now() - state.round_start - timing.latency.seconds();
    end_round(j);
  }

  void end_round(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->rounds[state.round];
    if (++state.repeat == round.repeat) {
      auto& timing = state.timing.rounds[state.round];
      timing.transfer = from_seconds(sum_transfer_s_[{j, state.round}] / static_cast<double>(round.repeat));
      state.repeat = 0;
      ++state.round;
    }
    next_round(j);
  }

  SimGridClock& clock_ = SimGridClock::instance();
  const std::vector<Job>& jobs_;
  std::vector<std::vector<int>> first_flow_;
  DenseFlows dense_;
  std::vector<State> states_;
  std::map<std::pair<std::size_t, std::size_t>, double> sum_transfer_s_;
};

/// Timings of a plan whose time does not fit.
OperationTiming past_range(const models::OperationPlan& plan) {
  OperationTiming timing;
  timing.total = {range::k_past_range};
  for (const auto& round : plan.rounds) {
    RoundTiming one;
    one.repeat = round.repeat;
    one.flow_ends.assign(round.flows.size(), Duration{range::k_past_range});
    timing.rounds.push_back(std::move(one));
  }
  return timing;
}

std::vector<OperationTiming> run_together(const Resources& resources, const std::vector<Job>& jobs, double longest,
                                          const FluidOptions& options) {
  if (std::isfinite(longest)) return ConcurrentRun(resources, jobs, options.full_expansion).run(longest);
  std::vector<OperationTiming> timings;
  for (const auto& job : jobs) timings.push_back(past_range(*job.plan));
  return timings;
}

}  // namespace

// Jobs that cannot meet run apart, so that a clock that is a double need not hold the time between them.
std::vector<OperationTiming> run(const Resources& resources, const std::vector<Job>& jobs,
                                 const FluidOptions& options) {
  if (jobs.size() == 1) return {run_alone(resources, *jobs[0].plan, options)};
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t j) { return jobs[j].start; });
  std::vector<OperationTiming> timings(jobs.size());
  for (std::size_t next = 0; next < order.size();) {
    const double first = jobs[order[next]].start.seconds();
    double longest = 0;
    std::vector<std::size_t> members;
    while (next < order.size() && (members.empty() || jobs[order[next]].start.seconds() - first <= longest)) {
      longest = std::max(longest, jobs[order[next]].start.seconds() - first) +
                serial_seconds(resources, *jobs[order[next]].plan);
      members.push_back(order[next++]);
    }
    std::ranges::sort(members);
    std::vector<Job> together;
    for (const auto j : members) together.push_back(jobs[j]);
    auto some = run_together(resources, together, longest, options);
    for (std::size_t m = 0; m < members.size(); ++m) timings[members[m]] = std::move(some[m]);
  }
  return timings;
}

std::vector<Duration> run_tasks(const Resources& resources, const std::vector<Task>& tasks) {
  std::vector<const Flow*> flows;
  std::vector<int> waiting_for(tasks.size());
  std::vector<std::vector<int>> successors(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    flows.push_back(&tasks[t].flow);
    waiting_for[t] = static_cast<int>(tasks[t].after.size());
    for (const int p : tasks[t].after) successors[static_cast<std::size_t>(p)].push_back(static_cast<int>(t));
  }
  double longest = 0;
  for (const auto* flow : flows) longest += flow->latency.seconds() + seconds_alone(resources, *flow);
  if (!std::isfinite(longest)) return std::vector<Duration>(tasks.size(), Duration{range::k_past_range});
  const auto dense = make_dense(resources, flows, false);
  auto& clock = SimGridClock::instance();
  clock.begin(dense.capacities, longest);
  std::vector<Duration> ends(tasks.size());
  std::function<void(int)> start;
  const auto end = [&](int t) {
    ends[static_cast<std::size_t>(t)] = from_seconds_up(clock.now());
    for (const int s : successors[static_cast<std::size_t>(t)]) {
      if (--waiting_for[static_cast<std::size_t>(s)] == 0) start(s);
    }
  };
  start = [&](int t) {
    const auto& flow = tasks[static_cast<std::size_t>(t)].flow;
    clock.after(flow.latency.seconds(), [&, t] {
      if (flow.bytes <= 0) return end(t);
      clock.start_flow(flow.bytes, dense.crossings[static_cast<std::size_t>(t)], [&, t] { end(t); });
    });
  };
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].after.empty()) start(static_cast<int>(t));
  }
  clock.run();
  return ends;
}

int binding_crossing(const Resources& resources, const Flow& flow) {
  int binding = -1;
  double rate = flow.rate_cap;
  for (std::size_t c = 0; c < flow.crossings.size(); ++c) {
    const double share = resources.capacity(flow.crossings[c].resource) / flow.crossings[c].times;
    if (share < rate) {
      rate = share;
      binding = static_cast<int>(c);
    }
  }
  return binding;
}

}  // namespace fabricast::engine
