// SPDX-License-Identifier: Apache-2.0
#include "engine/row_scatter.hpp"

#include <algorithm>
#include <set>

#include "fabricast/scatter.hpp"
#include "fabricast/training.hpp"

namespace fabricast::engine {

SystemScatter scatter(const models::Planner& planner, const models::OperationPlan& plan, const Row& row,
                      Duration waited, const Workload& workload, int hosts, const ParameterSet& parameters) {
  std::set<std::string> names;
  const auto of_exchanges = [&] {
    return between_systems(workload.benchmark, hosts, parameters, {names.begin(), names.end()},
                           !planner.stand_ins().empty());
  };
  if (workload.benchmark != Benchmark::training) {
    for (const auto& term : row.terms) names.insert(term.parameter);
    return {.exchange = of_exchanges()};
  }
  const auto figures = planner.figures(row, waited);
  const auto exposed = std::ranges::find(figures, std::string_view("exposed_exchange_time_ps"), &Figure::key);
  if (exposed == figures.end() || row.time.ps <= 0) return {};
  for (const auto& node : plan.program.nodes) {
    for (const auto& flow : node.flows) {
      for (const auto& term : flow.latency_terms) names.insert(term.parameter);
    }
  }
  const double share = exposed->value / static_cast<double>(row.time.ps);
  const auto& network = workload.training->network;
  const double of_compute = network ? compute_between_systems(network->transformer.has_value(), parameters) : 0;
  return {.exchange = share * of_exchanges(), .compute = (1 - share) * of_compute};
}

}  // namespace fabricast::engine
