// SPDX-License-Identifier: Apache-2.0
// What takes long says how much of it is done: shares that rise to 1.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fabricast/fault_sweep.hpp"
#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"

using namespace fabricast;

namespace {

const std::string k_inputs = std::string(FABRICAST_SOURCE_DIR) + "/tests/golden/inputs/";

void check_shares(const std::vector<double>& shares) {
  REQUIRE_FALSE(shares.empty());
  double before = 0;
  for (const double share : shares) {
    CHECK(share >= before);
    CHECK(share <= 1);
    before = share;
  }
  CHECK(shares.back() == 1);
}

Metric metric(const std::string& text) {
  std::string fault;
  const auto found = metric_from(text, fault);
  REQUIRE_MESSAGE(found, fault);
  return *found;
}

}  // namespace

TEST_CASE("faults of a scenario say how many of them are done") {
  SweepPlan plan;
  plan.scenario_file = k_inputs + "faults-nccl.yaml";
  FaultPlan faults;
  faults.metric = metric("busbw");
  std::string fault;
  faults.classes = fault_classes_from("leaf|host", fault);
  std::vector<double> shares;
  const auto note = [&](double share) { shares.push_back(share); };
  const auto report = sweep_faults(plan, {}, faults, {}, note);
  REQUIRE(report);
  CHECK(shares.size() == report->cases.size());
  check_shares(shares);
}

TEST_CASE("a simulation says how many of its sizes are done") {
  const auto loaded = load_scenario(k_inputs + "faults-nccl.yaml");
  REQUIRE(loaded);
  for (const auto fidelity : {Fidelity::fluid, Fidelity::packet}) {
    std::vector<double> shares;
    SimulateOptions options;
    options.fidelity = fidelity;
    options.progress = [&](double share) { shares.push_back(share); };
    auto scenario = loaded->scenario;
    scenario.workloads.front().sizes = {Bytes{1024}, Bytes{4096}, Bytes{65536}};
    REQUIRE(simulate(loaded->topology, scenario, loaded->parameters, options));
    check_shares(shares);
  }
}
