// SPDX-License-Identifier: Apache-2.0
#include "engine/row_scatter.hpp"

#include <algorithm>
#include <set>

#include "fabricast/scatter.hpp"

namespace fabricast::engine {

double scatter(const models::Planner& planner, const models::OperationPlan& plan, const Row& row, Duration waited,
               Benchmark benchmark, int hosts, const ParameterSet& parameters) {
  std::set<std::string> names;
  if (benchmark != Benchmark::training) {
    for (const auto& term : row.terms) names.insert(term.parameter);
    return between_systems(benchmark, hosts, parameters, {names.begin(), names.end()}, !planner.stand_ins().empty());
  }
  const auto figures = planner.figures(row, waited);
  const auto exposed = std::ranges::find(figures, std::string_view("exposed_exchange_time_ps"), &Figure::key);
  if (exposed == figures.end() || row.time.ps <= 0) return 0;
  for (const auto& node : plan.program.nodes) {
    for (const auto& flow : node.flows) {
      for (const auto& term : flow.latency_terms) names.insert(term.parameter);
    }
  }
  return exposed->value / static_cast<double>(row.time.ps) *
         between_systems(benchmark, hosts, parameters, {names.begin(), names.end()}, !planner.stand_ins().empty());
}

}  // namespace fabricast::engine
