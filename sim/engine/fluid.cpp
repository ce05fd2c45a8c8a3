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
#include "engine/dense_flows.hpp"
#include "engine/host_limits.hpp"
#include "engine/ring_rounds.hpp"
#include "engine/simgrid_clock.hpp"

namespace fabricast::engine {

namespace {

using models::Crossing;
using models::Flow;
using models::Node;
using models::RepeatOrder;
using models::Resources;

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
  for (const auto& round : plan.program.nodes) {
    const double once = models::sum(round.fixed).seconds() + serial_seconds(resources, round.flows);
    seconds += once * static_cast<double>(round.repeat);
  }
  return seconds;
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

/// Alone, what holds the critical flow is known without a look at the others.
void name_bottleneck(const Resources& resources, const Node& round, NodeTiming& timing) {
  const auto f = timing.critical_flow;
  const auto transfer = timing.flow_ends[f] - round.flows[f].latency;
  if (transfer.ps > transfer_alone(resources, round.flows[f]).ps + 2)
    timing.binding = shared_bottleneck(resources, active_beside(round.flows, timing.flow_ends, f));
}

NodeTiming time_alone(const Resources& resources, const Node& round, bool keep_all) {
  NodeTiming timing;
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
  name_bottleneck(resources, round, timing);
  return timing;
}

bool is_ring(const Node& round) { return round.order == RepeatOrder::neighbour && round.repeat > 1; }

NodeTiming time_ring(const Resources& resources, const Node& round, bool keep_all) {
  auto timing = time_alone(resources, round, keep_all);
  std::vector<Duration> latencies;
  std::vector<Duration> transfers;
  for (std::size_t f = 0; f < round.flows.size(); ++f) {
    latencies.push_back(timing.fixed + round.flows[f].latency);
    transfers.push_back(timing.flow_ends[f] - round.flows[f].latency);
  }
  const auto slowest = std::max_element(transfers.begin(), transfers.end());
  timing.critical_flow = static_cast<std::size_t>(slowest - transfers.begin());
  name_bottleneck(resources, round, timing);
  Duration whole = ring_time(latencies, transfers, round.repeat);
  if (keep_all) {
    whole = {};
    for (const auto end : run_tasks(resources, ring_tasks(round))) whole = std::max(whole, end);
  }
  describe_ring(round, whole, timing);
  return timing;
}

OperationTiming run_alone(const Resources& resources, const models::OperationPlan& plan, const FluidOptions& options) {
  OperationTiming timing;
  timing.total = models::sum(plan.before);
  for (const auto& round : plan.program.nodes) {
    auto one = is_ring(round) ? time_ring(resources, round, options.full_expansion)
                              : time_alone(resources, round, options.full_expansion);
    if (is_ring(round)) {
      timing.total += one.whole;
    } else if (options.full_expansion) {
      for (std::int64_t i = 1; i < round.repeat; ++i) {
        const auto again = time_alone(resources, round, true);
        timing.total += again.fixed + again.latency + again.transfer;
      }
      timing.total += one.fixed + one.latency + one.transfer;
    } else {
      timing.total += one.repeat * (one.fixed + one.latency + one.transfer);
    }
    timing.nodes.push_back(one);
  }
  return timing;
}

/// Several jobs on one clock. Rounds of a job follow one another; jobs meet on shared resources.
class ConcurrentRun {
 public:
  ConcurrentRun(const Resources& resources, const std::vector<Job>& jobs, bool keep_all)
      : resources_(resources), jobs_(jobs) {
    std::vector<const Flow*> flows;
    for (const auto& job : jobs) {
      first_flow_.emplace_back();
      for (const auto& round : job.plan->program.nodes) {
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
      for (const auto& round : jobs_[j].plan->program.nodes) {
        NodeTiming one;
        one.fixed = models::sum(round.fixed);
        one.repeat = round.repeat;
        if (jobs_[j].plan->has_flow_times) one.flow_ends.resize(round.flows.size());
        timing.nodes.push_back(one);
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
    RingProgress ring;
    std::vector<int> waiting;  ///< [flow of a ring]: repeats whose bytes wait behind those under way
    std::vector<char> is_busy;
    OperationTiming timing;
  };

  void next_round(std::size_t j) {
    auto& state = states_[j];
    const auto& plan = *jobs_[j].plan;
    if (state.round == plan.program.nodes.size()) {
      state.timing.total = from_seconds_up(clock_.now()) - state.start;
      return;
    }
    const auto& round = plan.program.nodes[state.round];
    const auto fixed = models::sum(round.fixed);
    if (is_ring(round)) {
      start_ring(j);
    } else if (fixed.ps > 0) {
      clock_.after(fixed.seconds(), [this, j] { start_flows(j); });
    } else {
      start_flows(j);
    }
  }

  /// Flow f of the round that job j is in, then the flows of the rounds that all jobs are in.
  [[nodiscard]] std::vector<const Flow*> active_with(std::size_t j, std::size_t f) const {
    std::vector<const Flow*> out;
    for (std::size_t k = 0; k < jobs_.size(); ++k) {
      if (states_[k].round >= jobs_[k].plan->program.nodes.size()) continue;
      for (const auto& flow : jobs_[k].plan->program.nodes[states_[k].round].flows) out.push_back(&flow);
    }
    std::iter_swap(out.begin(), std::ranges::find(out, &jobs_[j].plan->program.nodes[states_[j].round].flows[f]));
    return out;
  }

  void start_ring(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    state.round_start = clock_.now();
    state.ring = RingProgress(round.flows.size(), round.repeat, round.order);
    state.waiting.assign(round.flows.size(), 0);
    state.is_busy.assign(round.flows.size(), 0);
    for (std::size_t f = 0; f < round.flows.size(); ++f) begin_in_ring(j, f);
  }

  void begin_in_ring(std::size_t j, std::size_t f) {
    const auto& round = jobs_[j].plan->program.nodes[states_[j].round];
    clock_.after((models::sum(round.fixed) + round.flows[f].latency).seconds(), [this, j, f] {
      ++states_[j].waiting[f];
      send_in_ring(j, f);
    });
  }

  void send_in_ring(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    if (state.is_busy[f] != 0 || state.waiting[f] == 0) return;
    --state.waiting[f];
    const double bytes = jobs_[j].plan->program.nodes[state.round].flows[f].bytes;
    if (bytes <= 0) return end_in_ring(j, f);
    state.is_busy[f] = 1;
    const auto place = static_cast<std::size_t>(first_flow_[j][state.round]) + f;
    clock_.start_flow(bytes, dense_.crossings[place], [this, j, f] { end_in_ring(j, f); });
  }

  void end_in_ring(std::size_t j, std::size_t f) {
    auto& state = states_[j];
    state.is_busy[f] = 0;
    for (const auto next : state.ring.end(f, {})) begin_in_ring(j, next);
    if (!state.ring.is_done()) return send_in_ring(j, f);
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    auto& timing = state.timing.nodes[state.round];
    timing.critical_flow = f;
    timing.binding = shared_bottleneck(resources_, active_with(j, f));
    describe_ring(round, from_seconds(clock_.now() - state.round_start), timing);
    ++state.round;
    next_round(j);
  }

  void start_flows(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
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
    auto& timing = state.timing.nodes[state.round];
    if (jobs_[j].plan->has_flow_times) timing.flow_ends[f] = from_seconds_up(clock_.now() - state.round_start);
    if (--state.flows_left > 0) return;
    timing.critical_flow = f;
    if (state.repeat == 0) timing.binding = shared_bottleneck(resources_, active_with(j, f));
    timing.latency = jobs_[j].plan->program.nodes[state.round].flows[f].latency;
    // Repeats of a round may differ beside other jobs; the mean is reported.
    sum_transfer_s_[{j, state.round}] += clock_.now() - state.round_start - timing.latency.seconds();
    end_round(j);
  }

  void end_round(std::size_t j) {
    auto& state = states_[j];
    const auto& round = jobs_[j].plan->program.nodes[state.round];
    if (++state.repeat == round.repeat) {
      auto& timing = state.timing.nodes[state.round];
      timing.transfer = from_seconds(sum_transfer_s_[{j, state.round}] / static_cast<double>(round.repeat));
      state.repeat = 0;
      ++state.round;
    }
    next_round(j);
  }

  const Resources& resources_;
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
  for (const auto& round : plan.program.nodes) {
    NodeTiming one;
    one.repeat = round.repeat;
    one.flow_ends.assign(round.flows.size(), Duration{range::k_past_range});
    timing.nodes.push_back(std::move(one));
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
  std::vector<int> held(tasks.size(), 1);  ///< by the latency, and by the task it is behind
  std::vector<int> followers(tasks.size(), -1);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    flows.push_back(&tasks[t].flow);
    waiting_for[t] = static_cast<int>(tasks[t].after.size());
    if (tasks[t].behind >= 0) {
      followers[static_cast<std::size_t>(tasks[t].behind)] = static_cast<int>(t);
      ++held[t];
    }
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
  std::function<void(int)> send;
  const auto end = [&](int t) {
    ends[static_cast<std::size_t>(t)] = from_seconds_up(clock.now());
    if (const int next = followers[static_cast<std::size_t>(t)];
        next >= 0 && --held[static_cast<std::size_t>(next)] == 0)
      send(next);
    for (const int s : successors[static_cast<std::size_t>(t)]) {
      if (--waiting_for[static_cast<std::size_t>(s)] == 0) start(s);
    }
  };
  send = [&](int t) {
    const auto& flow = tasks[static_cast<std::size_t>(t)].flow;
    if (flow.bytes <= 0) return end(t);
    clock.start_flow(flow.bytes, dense.crossings[static_cast<std::size_t>(t)], [&, t] { end(t); });
  };
  start = [&](int t) {
    const auto& flow = tasks[static_cast<std::size_t>(t)].flow;
    clock.after(flow.latency.seconds(), [&, t] {
      if (--held[static_cast<std::size_t>(t)] == 0) send(t);
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
