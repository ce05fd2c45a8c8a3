// SPDX-License-Identifier: Apache-2.0
#include "fabricast/link_use.hpp"

#include <algorithm>
#include <map>

#include "fabricast/models/planner.hpp"
#include "fabricast/training.hpp"

namespace fabricast {

namespace {

/// The number of the last row with a time; -1 without one.
std::ptrdiff_t last_finished(const WorkloadPrediction& workload) {
  for (auto i = static_cast<std::ptrdiff_t>(workload.rows.size()) - 1; i >= 0; --i) {
    const auto& row = workload.rows[static_cast<std::size_t>(i)];
    if (!row.bottleneck.starts_with("not finished") && row.time.ps > 0) return i;
  }
  return -1;
}

/// What a row was planned for: of training steps the number of GPUs.
Bytes planned_size(const Workload& workload, std::size_t i, const Row& row) {
  if (!workload.training || !workload.sizes.empty()) return row.size;
  const auto& counts = workload.training->gpu_counts;
  return counts.empty() ? Bytes{0} : Bytes{counts[i]};
}

}  // namespace

std::vector<LinkUse> link_uses(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                               const Prediction& prediction, std::uint64_t seed) {
  models::Resources resources(topology);
  // Not alone: plans keep every resource, also those that cannot bind.
  const models::PlanContext context{topology, scenario.software,        parameters, resources,          seed, false,
                                    false,    scenario.host_neighbours, false,      &scenario.workloads};
  models::set_payload_shares(resources, parameters);
  std::map<int, double> rates;
  for (std::size_t w = 0; w < prediction.workloads.size(); ++w) {
    const auto i = last_finished(prediction.workloads[w]);
    if (i < 0) continue;
    const auto& row = prediction.workloads[w].rows[static_cast<std::size_t>(i)];
    const auto planner = models::make_planner(context, scenario.workloads[w]);
    if (!planner) continue;
    const auto plan = (*planner)->plan(planned_size(scenario.workloads[w], static_cast<std::size_t>(i), row));
    const double seconds = row.time.seconds() * static_cast<double>(plan.operations) / plan.printed_share;
    for (const auto& node : plan.program.nodes) {
      for (const auto& flow : node.flows) {
        for (const auto& crossing : flow.crossings) {
          if (resources.is_link(crossing.resource))
            rates[crossing.resource] += flow.bytes * static_cast<double>(node.repeat) * crossing.times / seconds;
        }
      }
    }
  }
  std::vector<LinkUse> out;
  for (const auto& [link, rate] : rates) {
    const double capacity = resources.capacity(link);
    // Workloads that last differently long may have means that together exceed what the link carries.
    if (rate > 0) out.push_back({LinkId{link}, std::min(rate, capacity), std::min(1.0, rate / capacity)});
  }
  std::ranges::stable_sort(out, std::greater{}, &LinkUse::share);
  return out;
}

}  // namespace fabricast
