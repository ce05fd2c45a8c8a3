// SPDX-License-Identifier: Apache-2.0
// simulate(): for every size, plan each workload's operation, run the operations together on the engine asked for, and
// turn timings into rows.
#include "fabricast/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "engine/bounds.hpp"
#include "engine/fluid.hpp"
#include "engine/packet_doubt.hpp"
#include "engine/packet_report.hpp"
#include "engine/packet_run.hpp"
#include "engine/route_draws.hpp"
#include "engine/row.hpp"
#include "fabricast/lossless.hpp"
#include "fabricast/models/payload.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/models/shared_gpus.hpp"
#include "fabricast/training.hpp"

namespace fabricast {

namespace {

using models::OperationPlan;
using models::Planner;
using models::Resources;

/// What rows are asked for by: message sizes; numbers of GPUs of training steps, 0 = all of the topology.
std::vector<Bytes> sizes_of(const Workload& workload) {
  if (workload.training && workload.sizes.empty()) {
    std::vector<Bytes> counts;
    for (const int gpus : workload.training->gpu_counts) counts.push_back(Bytes{gpus});
    return counts.empty() ? std::vector{Bytes{0}} : counts;
  }
  return workload.sizes.empty() ? default_sizes(workload.benchmark) : workload.sizes;
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

bool carries_tcp(const OperationPlan& plan) {
  return std::ranges::any_of(plan.program.nodes, [](const auto& round) {
    return std::ranges::any_of(round.flows, [](const auto& flow) {
      return std::ranges::any_of(flow.legs, [](const auto& leg) { return leg.is_tcp; });
    });
  });
}

/// One scenario on its way through planners, an engine and rows.
class Simulator {
 public:
  Simulator(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
            const SimulateOptions& options)
      : topology_(topology),
        scenario_(scenario),
        parameters_(parameters),
        options_(options),
        resources_(topology),
        context_{topology,
                 scenario.software,
                 parameters,
                 resources_,
                 options.seed,
                 scenario.workloads.size() == 1,
                 options.full_expansion,
                 scenario.host_neighbours,
                 options.fidelity != Fidelity::fluid,
                 &scenario.workloads} {
    models::set_payload_shares(resources_, parameters);
    prediction_.scenario = scenario.name;
    prediction_.topology = topology.name();
  }

  Result<Prediction> run() {
    make_planners();
    make_draws();
    // Row i of every workload runs together; a workload with fewer sizes repeats its last one as background, unprinted.
    for (std::size_t i = 0; faults_.empty() && i < num_rows_ && !is_stopped(); ++i) {
      if (options_.progress) options_.progress(static_cast<double>(i) / static_cast<double>(num_rows_));
      run_row(i);
    }
    if (!faults_.empty()) return tl::unexpected(faults_);
    prediction_.is_interrupted = is_stopped();
    add_assumptions();
    if (options_.progress) options_.progress(1);
    return std::move(prediction_);
  }

  Diagnostics plan_only() {
    make_planners();
    for (std::size_t w = 0; faults_.empty() && w < planners_.size(); ++w) {
      const auto sizes = sizes_of(scenario_.workloads[w]);
      if (sizes.empty()) continue;
      std::ignore = planners_[w]->plan(sizes.front());
      if (sizes.size() > 1) std::ignore = planners_[w]->plan(sizes.back());
    }
    return std::move(faults_);
  }

 private:
  [[nodiscard]] bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void make_planners() {
    for (const auto& workload : scenario_.workloads) {
      auto planner = models::make_planner(context_, workload);
      if (!planner) {
        faults_.insert(faults_.end(), planner.error().begin(), planner.error().end());
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
      out.stand_ins = (*planner)->stand_ins();
      for (auto& line : models::settings_without_effect(context_, workload, **planner))
        out.assumptions.push_back(std::move(line));
      for (const auto& one : models::shared_gpus(topology_, scenario_.workloads, planners_.size()))
        out.assumptions.push_back(fmt::format(
            "{} computes on {}, too: processes of a GPU take turns (no MPS), each busy all the time, by slice and "
            "switch of one H200; while one is on, exchanges of the other stand still",
            models::name_of(scenario_.workloads, one.other), models::words_of(topology_, one.gpus)));
      prediction_.workloads.push_back(std::move(out));
      planners_.push_back(std::move(*planner));
      num_rows_ = std::max(num_rows_, sizes_of(workload).size());
    }
  }

  /// By workload, of row `i`: steps of fewer GPUs may share none.
  [[nodiscard]] std::vector<std::vector<models::SharedGpus>> shared_in(std::size_t i) const {
    std::vector<std::vector<models::SharedGpus>> shared(scenario_.workloads.size());
    if (shared.size() < 2) return shared;
    auto asked = scenario_.workloads;
    for (auto& workload : asked) {
      const auto sizes = sizes_of(workload);
      if (workload.training && sizes.size() > 1) workload.sizes = {sizes[std::min(i, sizes.size() - 1)]};
    }
    for (std::size_t w = 0; w < asked.size(); ++w) shared[w] = models::shared_gpus(topology_, asked, w);
    return shared;
  }

  void run_row(std::size_t i) {
    row_ = i;
    shared_ = shared_in(i);
    std::vector<OperationPlan> plans;
    std::vector<std::vector<Duration>> drawn;  // by other draws, which plan apart: before the plan, which may be large
    for (std::size_t w = 0; w < planners_.size(); ++w) {
      const auto sizes = sizes_of(scenario_.workloads[w]);
      drawn.push_back(i < sizes.size() && takes_drawn_routes(w) ? draws_->bounds(w, sizes[i])
                                                                : std::vector<Duration>{});
      plans.push_back(planners_[w]->plan(sizes[std::min(i, sizes.size() - 1)]));
    }
    std::vector<engine::Job> jobs;
    for (std::size_t w = 0; w < plans.size(); ++w) jobs.push_back({&plans[w], scenario_.workloads[w].start});
    std::vector<std::shared_ptr<const FabricReport>> reports(jobs.size());
    const auto timings = run_in_turns(jobs, reports);
    if (!faults_.empty()) return;
    for (std::size_t w = 0; w < plans.size(); ++w) {
      const auto& report = reports[w];
      if (report && (report->stop == "past range" || report->stop == "time limit")) return refuse(0, plans[0]);
      if (i >= sizes_of(scenario_.workloads[w]).size()) continue;
      const auto waits = [&, others = met_in_turns(w, jobs, timings)](Duration time) {
        return models::waits_in_turns(context_, *planners_[w], scenario_.workloads[w], others, time);
      };
      auto row =
          engine::make_row(resources_, *planners_[w], plans[w], timings[w], waits, parameters_, scenario_.workloads[w],
                           options_.fidelity == Fidelity::packet, drawn[w], outside_in_[w]);
      if (!drawn[w].empty() && !is_spread_) {
        is_spread_ = std::ranges::count(drawn[w], engine::bound_of(resources_, plans[w])) < std::ssize(drawn[w]);
      }
      if (engine::is_past_range(row)) {
        refuse(w, plans[w], row.bottleneck);
        continue;
      }
      has_tcp_ = has_tcp_ || (report && carries_tcp(plans[w]));
      row.fabric = report;
      if (report && !report->is_finished()) row.bottleneck = fmt::format("not finished: {}", report->stop);
      prediction_.workloads[w].rows.push_back(std::move(row));
    }
  }

  /// Other draws are planned only where some workload would read them.
  void make_draws() {
    bool is_read = false;
    for (std::size_t w = 0; faults_.empty() && w < planners_.size(); ++w) is_read = is_read || takes_drawn_routes(w);
    if (is_read) draws_.emplace(context_, scenario_.workloads);
  }

  /// Packets of workload `w` follow the routes of its plan, and these meet others on the fabric.
  [[nodiscard]] bool takes_drawn_routes(std::size_t w) const {
    const bool is_by_route =
        options_.fidelity != Fidelity::packet ||
        packet_routing(topology_.spec().fabric, scenario_.workloads[w].transport.routing) == "ecmp";
    return is_by_route && prediction_.workloads[w].num_hosts > 1;
  }

  /// A time that does not fit: no result, and what to look at.
  void refuse(std::size_t w, const OperationPlan& plan, const std::string& bottleneck = {}) {
    const bool is_packet = options_.fidelity == Fidelity::packet;
    const auto what = plan.label.empty() ? to_string(plan.size) : fmt::format("'{}'", plan.label);
    const auto together = plan.operations > 1 ? fmt::format(", {} of them in a row", plan.operations) : std::string();
    faults_.push_back(make_error_at(
        scenario_.workloads[w].location,
        fmt::format("{} of {}{} takes too long to count: {}", prediction_.workloads[w].name, what, together,
                    is_packet ? "the packet engine counts up to 53 days and 2^31 packets of one queue pair"
                              : "times are counted up to 106 days (9.2e6 s)"),
        bottleneck.empty()
            ? "check sizes, counts and start times, and rates that are too low"
            : fmt::format("check sizes, counts and start times, and the rate of what limits it: {}", bottleneck)));
  }

  /// Each job beside those that take no turns with it on a GPU: while one of these is on, it is off.
  std::vector<engine::OperationTiming> run_in_turns(const std::vector<engine::Job>& jobs,
                                                    std::vector<std::shared_ptr<const FabricReport>>& reports) {
    std::map<std::vector<std::size_t>, std::vector<std::size_t>> runs;  // jobs that run together -> whose times count
    for (std::size_t w = 0; w < jobs.size(); ++w) {
      std::vector<std::size_t> together;
      for (std::size_t other = 0; other < jobs.size(); ++other) {
        if (std::ranges::find(shared_[w], other, &models::SharedGpus::other) == shared_[w].end())
          together.push_back(other);
      }
      runs[together].push_back(w);
    }
    std::vector<engine::OperationTiming> timings(jobs.size());
    for (const auto& [together, counted] : runs) {
      std::vector<engine::Job> chosen;
      std::vector<const Workload*> workloads;
      for (const auto job : together) {
        chosen.push_back(jobs[job]);
        workloads.push_back(&scenario_.workloads[job]);
      }
      std::shared_ptr<const FabricReport> report;
      const auto ran = run_jobs(chosen, workloads, report);
      if (!faults_.empty()) return {};
      if (options_.fidelity == Fidelity::automatic) note_doubt(chosen, ran);
      for (const auto w : counted) {
        timings[w] = ran[static_cast<std::size_t>(std::ranges::find(together, w) - together.begin())];
        reports[w] = report;
      }
    }
    return timings;
  }

  /// Of those that take turns with `w`, the ones that are there at some moment of its operation.
  [[nodiscard]] std::vector<models::SharedGpus> met_in_turns(
      std::size_t w, const std::vector<engine::Job>& jobs, const std::vector<engine::OperationTiming>& timings) const {
    auto met = shared_[w];
    std::erase_if(met, [&](const auto& one) {
      const auto ends_before = [&](std::size_t a, std::size_t b) {
        return jobs[a].start + timings[a].total <= jobs[b].start;
      };
      return ends_before(w, one.other) || ends_before(one.other, w);
    });
    return met;
  }

  std::vector<engine::OperationTiming> run_jobs(const std::vector<engine::Job>& jobs,
                                                const std::vector<const Workload*>& workloads,
                                                std::shared_ptr<const FabricReport>& report) {
    if (options_.fidelity != Fidelity::packet)
      return engine::run(resources_, jobs, {.full_expansion = options_.full_expansion});
    engine::PacketOptions packet;
    packet.seed = options_.seed;
    packet.full_expansion = options_.full_expansion;
    packet.shortcuts = options_.packet_shortcuts;
    packet.sample_interval = options_.sample_interval;
    packet.record_pauses = options_.record_pauses;
    packet.stop = options_.stop;
    if (options_.progress) {
      packet.progress = [&](double share) {
        options_.progress((static_cast<double>(row_) + share) / static_cast<double>(num_rows_));
      };
    }
    auto outcome = engine::run_packets(parameters_, resources_, jobs, workloads, packet);
    if (!outcome) {
      faults_.insert(faults_.end(), outcome.error().begin(), outcome.error().end());
      return {};
    }
    report = std::make_shared<FabricReport>(std::move(outcome->report));
    return std::move(outcome->timings);
  }

  /// Keeps the first size at which packets matter.
  void note_doubt(const std::vector<engine::Job>& jobs, const std::vector<engine::OperationTiming>& timings) {
    if (!doubt_.empty()) return;
    const auto doubt = engine::packet_doubt(parameters_, resources_, jobs, timings);
    if (!doubt) return;
    doubt_ = fmt::format(
        "packet detail would change this from {} on: {}{}; --fidelity packet shows it",
        to_string(jobs.front().plan->size), doubt->text(),
        is_lossless(topology_) ? "" : " (shipped defaults: the topology does not say how its switches are configured)");
  }

  /// On a fabric whose switches choose the way of each packet. `asked`: of the transport.
  [[nodiscard]] std::string ways_assumed(const std::string& asked) const {
    const auto& fabric = topology_.spec().fabric;
    const bool is_dragonfly = fabric.kind == FabricKind::dragonfly;
    if (options_.fidelity == Fidelity::packet) {
      const auto routing = packet_routing(fabric, asked);
      if (routing == "adaptive") return "switches choose the way of each packet by their queues";
      if (routing == "spray") return "packets take all shortest ways in turn, whatever switches would choose";
      return is_dragonfly
                 ? "packets take shortest ways, also where routers of a dragonfly would choose others"
                 : "packets of a connection take one way, as their transport asks; switches would choose others";
    }
    if (is_dragonfly)
      return "routers of the dragonfly choose the way of each packet: traffic between routers, and between groups, "
             "takes all links there are";
    return "switches choose the way of each packet: traffic up from a leaf or a pod, and down to it, takes all links "
           "there are";
  }

  void add_assumptions() {
    for (std::size_t w = 0; w < prediction_.workloads.size(); ++w) {
      note_assumed(prediction_.workloads[w], parameters_, options_.with_terms);
      auto& out = prediction_.workloads[w].assumptions;
      out.insert(out.end(), outside_in_[w].begin(), outside_in_[w].end());
      if (!doubt_.empty()) out.push_back(doubt_);
      if (options_.fidelity == Fidelity::automatic && doubt_.empty())
        out.emplace_back("no link is oversubscribed long enough for packet detail to matter");
      if (prediction_.workloads[w].num_hosts > 1)
        for (auto& line : models::packet_assumptions(topology_, parameters_)) out.push_back(std::move(line));
      const auto drawn = takes_drawn_routes(w) ? draws_->assumption(options_.seed, is_spread_) : std::string();
      if (!drawn.empty()) out.push_back(drawn);
      if (!drawn.empty() && options_.fidelity == Fidelity::fluid && lossless_settings(topology_, parameters_).is_ecn_on)
        out.emplace_back("senders that meet share a link at once: --fidelity auto says where queues and DCQCN count");
      if (is_adaptive(topology_.spec().fabric) && prediction_.workloads[w].num_hosts > 1)
        out.push_back(ways_assumed(scenario_.workloads[w].transport.routing));
      if (options_.fidelity == Fidelity::packet)
        for (auto& line : engine::assumptions_of_packets(topology_, prediction_.workloads[w], has_tcp_))
          out.push_back(std::move(line));
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
    }
  }

  const Topology& topology_;
  const Scenario& scenario_;
  const ParameterSet& parameters_;
  const SimulateOptions& options_;
  Resources resources_;
  models::PlanContext context_;
  std::vector<std::unique_ptr<Planner>> planners_;
  std::vector<std::vector<models::SharedGpus>> shared_;  ///< [workload], in the row under way
  std::size_t num_rows_ = 0;
  std::size_t row_ = 0;  ///< under way
  Prediction prediction_;
  Diagnostics faults_;
  std::optional<engine::RouteDraws> draws_;  ///< absent where no workload takes drawn routes
  bool is_spread_ = false;                   ///< other draws of the routes give other times
  std::string doubt_;
  std::map<std::size_t, std::set<std::string>> outside_in_;  ///< by workload: reasons beyond the logs of a fit
  bool has_tcp_ = false;                                     ///< in a packet run
};

Diagnostic no_route(const models::NoRoute& fault, const Scenario& scenario) {
  auto out = make_error(fault.what(), fault.fix());
  if (!scenario.workloads.empty()) out.location = scenario.workloads.front().location;
  return out;
}

}  // namespace

Result<Prediction> simulate(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                            const SimulateOptions& options) try {
  return Simulator(topology, scenario, parameters, options).run();
} catch (const models::NoRoute& fault) { return tl::unexpected(Diagnostics{no_route(fault, scenario)}); }

Diagnostics planning_faults(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters) try {
  return Simulator(topology, scenario, parameters, {}).plan_only();
} catch (const models::NoRoute& fault) { return {no_route(fault, scenario)}; }

}  // namespace fabricast
