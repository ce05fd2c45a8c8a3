// SPDX-License-Identifier: Apache-2.0
// simulate(): for every size, plan each workload's operation, run the operations together, and turn timings into rows
// whose terms add up to the time.
#include "fabricast/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "engine/fluid.hpp"
#include "engine/interval.hpp"
#include "fabricast/models/planner.hpp"

namespace fabricast {

namespace {

using models::Flow;
using models::OperationPlan;
using models::Planner;
using models::Resources;

std::vector<Bytes> sizes_of(const Workload& workload) {
  return workload.sizes.empty() ? default_sizes(workload.benchmark) : workload.sizes;
}

/// Bytes over the narrowest link plus link latencies: what no protocol can beat. Only links count, no fitted limits.
Duration physical_bound(const Resources& resources, const OperationPlan& plan) {
  double seconds = 0;
  for (const auto& round : plan.rounds) {
    double slowest = 0;
    for (const auto& flow : round.flows) {
      for (const auto& crossing : flow.crossings) {
        if (!resources.is_link(crossing.resource)) continue;
        slowest = std::max(slowest, (flow.payload < 0 ? flow.bytes : flow.payload) * crossing.times /
                                        resources.capacity(crossing.resource));
      }
    }
    seconds += slowest * static_cast<double>(round.repeat);
  }
  return from_seconds(seconds / static_cast<double>(plan.operations));
}

struct Bottleneck {
  std::string name;
  std::string parameter;
};

Bottleneck bottleneck_of(const Resources& resources, const Flow& flow) {
  const int binding = engine::binding_crossing(resources, flow);
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

/// The flow with the longest transfer names the row's bottleneck.
struct RowBuilder {
  const Resources& resources;
  const OperationPlan& plan;
  const engine::OperationTiming& timing;
  const ParameterSet& parameters;

  [[nodiscard]] std::vector<Term> total_terms() const {
    std::vector<Term> terms;
    for (const auto& term : plan.before) add_term(terms, term, 1);
    for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
      const auto& round = plan.rounds[r];
      const auto& one = timing.rounds[r];
      for (const auto& term : round.fixed) add_term(terms, term, one.repeat);
      if (round.flows.empty()) continue;
      const auto& flow = round.flows[one.critical_flow];
      for (const auto& term : flow.latency_terms) add_term(terms, term, one.repeat);
      if (one.transfer.ps <= 0) continue;
      const auto limit = bottleneck_of(resources, flow);
      const auto alone = flow.bytes <= 0 ? Duration{} : alone_time(flow);
      const auto* parameter = parameters.find(limit.parameter);
      const std::string source = parameter == nullptr ? "topology" : parameter->source;
      // Up to two picoseconds apart is rounding, not sharing.
      const bool is_shared = one.transfer.ps > alone.ps + 2;
      add_term(terms,
               {fmt::format("transfer over {}", limit.name), is_shared ? alone : one.transfer, limit.parameter, source},
               one.repeat);
      if (is_shared) {
        add_term(terms, {"sharing with concurrent flows", one.transfer - alone, "max-min fair share", "fluid engine"},
                 one.repeat);
      }
    }
    return terms;
  }

  [[nodiscard]] Duration alone_time(const Flow& flow) const {
    double rate = flow.rate_cap;
    for (const auto& crossing : flow.crossings)
      rate = std::min(rate, resources.capacity(crossing.resource) / crossing.times);
    return from_seconds(flow.bytes / rate);
  }

  [[nodiscard]] std::string bottleneck() const {
    Duration longest{-1};
    std::string name;
    for (std::size_t r = 0; r < plan.rounds.size(); ++r) {
      if (plan.rounds[r].flows.empty()) continue;
      const auto spent = timing.rounds[r].repeat * timing.rounds[r].transfer;
      if (spent > longest) {
        longest = spent;
        name = bottleneck_of(resources, plan.rounds[r].flows[timing.rounds[r].critical_flow]).name;
      }
    }
    return name;
  }

  [[nodiscard]] Duration not_below_floor(Duration time) const {
    const double t = time.seconds();
    const double floor = plan.floor.seconds();
    const double scatter = 2 * plan.floor_jitter * floor;
    if (scatter <= 0) return std::max(time, plan.floor);
    return from_seconds((t + floor + std::hypot(t - floor, scatter)) / 2);
  }

  /// Divides the terms by the number of operations; the largest takes what rounding leaves, so that they add up.
  void set_time(Row& row) const {
    auto terms = total_terms();
    Duration total = timing.total;
    if (plan.operations > 1) {
      total.ps = (total.ps + plan.operations - 1) / plan.operations;
      for (auto& term : terms) term.time.ps /= plan.operations;
    }
    if (const auto least = not_below_floor(total); least > total) {
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
  }
};

Row make_row(const Resources& resources, const Planner& planner, const OperationPlan& plan,
             const engine::OperationTiming& timing, const ParameterSet& parameters, const Workload& workload) {
  Row row;
  row.size = plan.size;
  const RowBuilder builder{resources, plan, timing, parameters};
  builder.set_time(row);
  for (auto& wait : planner.waits(row.time)) {
    row.time += wait.time;
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
  row.bottleneck = builder.bottleneck();
  row.physical_bound = physical_bound(resources, plan);
  const auto outside = engine::extrapolation(row, planner.num_ranks(), planner.num_hosts(), parameters);
  const auto band = engine::interval(row, parameters, outside);
  row.is_extrapolated = outside.is_outside;
  row.low_time = std::max(band.low, std::min(row.physical_bound, row.time));
  row.high_time = band.high;
  if (plan.high.ps > 0) {
    row.low_time = plan.low;
    row.high_time = plan.high;
  }
  return row;
}

/// Names the unpublished figures of virtualization that a result rests on, with their range.
void note_assumed(WorkloadPrediction& workload, const ParameterSet& parameters, bool keep_terms) {
  std::set<std::string> names;
  for (auto& row : workload.rows) {
    for (const auto& term : row.terms) {
      if (term.parameter.rfind("virtualization.", 0) == 0) names.insert(term.parameter);
    }
    if (!keep_terms) row.terms.clear();
  }
  for (const auto& name : names) {
    const auto* parameter = parameters.find(name);
    if (parameter == nullptr || parameter->confidence != Confidence::assumed) continue;
    workload.assumptions.push_back(
        fmt::format("assumed, nobody has published it: {} = {:.3g}, between {:.3g} and {:.3g} ({})", name,
                    parameter->value, parameter->low, parameter->high, parameter->source));
  }
  std::sort(workload.assumptions.begin(), workload.assumptions.end());
}

}  // namespace

Result<Prediction> simulate(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                            const SimulateOptions& options) try {
  Resources resources(topology);
  const models::PlanContext context{topology,
                                    scenario.software,
                                    parameters,
                                    resources,
                                    options.seed,
                                    scenario.workloads.size() == 1,
                                    options.full_expansion,
                                    scenario.host_neighbours};
  std::vector<std::unique_ptr<Planner>> planners;
  Diagnostics faults;
  Prediction prediction;
  prediction.scenario = scenario.name;
  prediction.topology = topology.name();
  std::size_t num_rows = 0;
  for (const auto& workload : scenario.workloads) {
    auto planner = models::make_planner(context, workload);
    if (!planner) {
      faults.insert(faults.end(), planner.error().begin(), planner.error().end());
      continue;
    }
    WorkloadPrediction out;
    out.name = workload.name.empty() ? std::string(to_string(workload.benchmark)) : workload.name;
    out.benchmark = workload.benchmark;
    out.num_ranks = (*planner)->num_ranks();
    out.num_hosts = (*planner)->num_hosts();
    out.devices = (*planner)->devices();
    out.settings = (*planner)->settings();
    out.assumptions = (*planner)->assumptions();
    prediction.workloads.push_back(std::move(out));
    planners.push_back(std::move(*planner));
    num_rows = std::max(num_rows, sizes_of(workload).size());
  }
  if (!faults.empty()) return tl::unexpected(faults);

  // Row i of every workload runs together; a workload with fewer sizes repeats its last one as background, unprinted.
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (options.progress) options.progress(static_cast<double>(i) / static_cast<double>(num_rows));
    std::vector<OperationPlan> plans;
    for (std::size_t w = 0; w < planners.size(); ++w) {
      const auto sizes = sizes_of(scenario.workloads[w]);
      plans.push_back(planners[w]->plan(sizes[std::min(i, sizes.size() - 1)]));
    }
    std::vector<engine::Job> jobs;
    for (std::size_t w = 0; w < plans.size(); ++w) jobs.push_back({&plans[w], scenario.workloads[w].start});
    const auto timings = engine::run(resources, jobs, {.full_expansion = options.full_expansion});
    for (std::size_t w = 0; w < plans.size(); ++w) {
      if (i >= sizes_of(scenario.workloads[w]).size()) continue;
      auto row = make_row(resources, *planners[w], plans[w], timings[w], parameters, scenario.workloads[w]);
      prediction.workloads[w].rows.push_back(std::move(row));
    }
  }
  for (auto& workload : prediction.workloads) note_assumed(workload, parameters, options.with_terms);
  if (options.progress) options.progress(1);
  return prediction;
} catch (const models::NoRoute& fault) {
  auto diagnostic =
      make_error(fault.what(), "connect all HCAs that take part by switches, or cable only those of one network");
  if (!scenario.workloads.empty()) diagnostic.location = scenario.workloads.front().location;
  return tl::unexpected(Diagnostics{std::move(diagnostic)});
}

}  // namespace fabricast
