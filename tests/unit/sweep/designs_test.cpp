// SPDX-License-Identifier: Apache-2.0
// Numbering of designs, figures by name, the Pareto front against brute force, probabilities, and kinds of reasons.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "fabricast/sweep.hpp"
#include "report/sweep.hpp"
#include "sweep/cost.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;

namespace {

Metric metric(const std::string& text) {
  std::string fault;
  const auto found = metric_from(text, fault);
  REQUIRE_MESSAGE(found.has_value(), fault);
  return *found;
}

SweepPlan plan_of_axes(const std::vector<int>& sizes) {
  SweepPlan plan;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    SweepAxis axis;
    axis.name = fmt::format("axis{}", a);
    for (int i = 0; i < sizes[a]; ++i) axis.choices.push_back({std::to_string(i), {{axis.name, std::to_string(i)}}});
    plan.axes.push_back(std::move(axis));
  }
  return plan;
}

SweepPlan cheap_and_fast() {
  SweepPlan plan;
  plan.objectives = {{metric("gpus"), false}, {metric("busbw"), true}};
  plan.constraints = {{metric("busbw"), 10.0, std::nullopt, {}}};
  return plan;
}

/// Whole numbers, so that ties are common.
std::vector<DesignResult> random_designs(std::mt19937& random, int count) {
  std::vector<DesignResult> out;
  std::uniform_int_distribution<int> some(1, 40);
  for (int i = 0; i < count; ++i) {
    DesignResult one;
    one.index = static_cast<std::size_t>(i);
    one.status = some(random) > 35 ? DesignStatus::infeasible : DesignStatus::feasible;
    const auto exactly = [&] {
      const double value = some(random);
      return Estimate{value, 0.9 * value, 1.1 * value};
    };
    if (one.status == DesignStatus::feasible) one.metrics = {{"gpus", exactly()}, {"busbw", exactly()}};
    if (one.status == DesignStatus::infeasible) one.reasons = {fmt::format("{} GPUs are too many", some(random))};
    out.push_back(std::move(one));
  }
  return out;
}

bool beats(const DesignResult& a, const DesignResult& b) {
  const double fewer = b.find("gpus")->value - a.find("gpus")->value;
  const double faster = a.find("busbw")->value - b.find("busbw")->value;
  return fewer >= 0 && faster >= 0 && fewer + faster > 0;
}

}  // namespace

TEST_CASE("every combination of choices is one design, the last axis fastest") {
  const auto plan = plan_of_axes({3, 1, 4});
  const DesignSpace space(plan);
  REQUIRE(space.size() == 12);
  std::set<std::string> names;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const auto design = space.design(i);
    CHECK(design.index == i);
    CHECK(design.values.at(0).second == std::to_string(i / 4));
    CHECK(design.values.at(2).second == std::to_string(i % 4));
    names.insert(design.name);
  }
  CHECK(names.size() == 12);
}

TEST_CASE("random designs are the same for a seed and others for another") {
  auto plan = plan_of_axes({50, 50});
  plan.samples = 30;
  const auto names = [&](std::uint64_t seed) {
    plan.seed = seed;
    std::vector<std::string> out;
    const DesignSpace space(plan);
    for (std::size_t i = 0; i < space.size(); ++i) out.push_back(space.design(i).name);
    return out;
  };
  CHECK(names(1).size() == 30);
  CHECK(names(1) == names(1));
  CHECK(names(1) != names(2));
}

TEST_CASE("figures have names, sizes and GPU counts") {
  CHECK(metric("busbw at 64 MiB").size->value == 64 * 1024 * 1024);
  CHECK(*metric("step_time at 64 GPUs").gpus == 64);
  CHECK(metric("step_time").is_less_better);
  CHECK(metric("cost").is_money);
  CHECK(metric("cost").is_of_hardware);
  std::string fault;
  for (const char* wrong : {"", "bussbw", "busbw at", "busbw at 64", "step_time at 64", "busbw at 64 MiB please"}) {
    CAPTURE(wrong);
    CHECK(!metric_from(wrong, fault));
    CHECK(!fault.empty());
  }
}

TEST_CASE("the front is what brute force finds, and no design is dropped") {
  std::mt19937 random(14);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const auto report = judge(cheap_and_fast(), random_designs(random, 60), 60);
    REQUIRE(report.designs.size() == 60);
    REQUIRE(report.standings.size() == 60);
    for (std::size_t i = 0; i < 60; ++i) {
      const auto& one = report.designs[i];
      const bool meets = one.status == DesignStatus::feasible && one.find("busbw")->value >= 10;
      CHECK(report.standings[i].meets_all == meets);
      if (!meets) continue;
      bool is_beaten = false;
      for (std::size_t k = 0; k < 60; ++k)
        is_beaten = is_beaten || (report.standings[k].meets_all && beats(report.designs[k], one));
      const auto& standing = report.standings[i];
      CHECK(standing.dominated_by.has_value() == is_beaten);
      CHECK((standing.is_on_front || standing.equals.has_value()) == !is_beaten);
    }
    std::size_t refused = 0;
    for (const auto& one : report::refusals_of(report)) refused += one.count;
    const auto infeasible = std::ranges::count(report.designs, DesignStatus::infeasible, &DesignResult::status);
    CHECK(refused == static_cast<std::size_t>(infeasible));
    CHECK(report::refusals_of(report).size() <= 1);
  }
}

TEST_CASE("the probability of a target falls as it rises, and is one tenth at the end of the band") {
  const Estimate speed{100, 80, 130};
  CHECK(probability_within(speed, 80.0, std::nullopt) == test::approx(0.9).epsilon(1e-9));
  CHECK(probability_within(speed, 130.0, std::nullopt) == test::approx(0.1).epsilon(1e-9));
  CHECK(probability_within(speed, 100.0, std::nullopt) == test::approx(0.5).epsilon(1e-9));
  CHECK(probability_within(speed, 80.0, 130.0) == test::approx(0.8).epsilon(1e-9));
  CHECK(probability_within({5, 5, 5}, 5.0, std::nullopt) == 1);
  CHECK(probability_within({5, 5, 5}, 5.1, std::nullopt) == 0);
  double before = 1;
  for (double target = 20; target < 500; target *= 1.1) {
    const double now = probability_within(speed, target, std::nullopt);
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("a rank within the first one's band is said to be open, and every bound and limit has a line") {
  auto plan = cheap_and_fast();
  plan.constraints[0].at_most = 100.0;
  const auto design = [](std::size_t index, double gpus, double busbw) {
    DesignResult one;
    one.index = index;
    one.status = DesignStatus::feasible;
    one.metrics = {{"gpus", {gpus, 0.9 * gpus, 1.1 * gpus}}, {"busbw", {busbw, 0.9 * busbw, 1.1 * busbw}}};
    one.bottleneck = "a link";
    one.doubts = {"a doubt"};
    return one;
  };
  const auto report = judge(plan, {design(0, 100, 20), design(1, 105, 30), design(2, 130, 40)}, 3);
  REQUIRE(report.top.size() == 3);
  const auto lines = [&](std::size_t place, const std::string& part) {
    return std::ranges::count_if(report.top[place].reasons,
                                 [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  CHECK(lines(1, "5.0 % more than the first, each within the other's 80 % band") == 1);
  CHECK(lines(2, "30.0 % more than the first") == 1);
  CHECK(lines(2, "within the other's") == 0);
  CHECK(lines(0, "against at least 10") == 1);
  CHECK(lines(0, "against at most 100") == 1);
  CHECK(lines(0, "limited by a link") == 1);
  CHECK(lines(0, "a doubt") == 1);
}

TEST_CASE("reasons of one kind differ in numbers only") {
  using report::without_numbers;
  CHECK(without_numbers("1,024 GPUs need 1.5e+09 B, 80.5 GiB are there") == "N GPUs need N B, N GiB are there");
  CHECK(without_numbers("node3.hca0 of 4") == without_numbers("node12.hca7 of 16"));
  CHECK(without_numbers("ends in 7") == "ends in N");
  CHECK(without_numbers("ends in 7.") == "ends in N.");
  CHECK(without_numbers("2e") == "Ne");
  CHECK(without_numbers("").empty());
  CHECK(without_numbers("no host") != without_numbers("no switch"));
}

TEST_CASE("a power limit takes from what GPUs are said to draw what is above it, and no more") {
  ParameterSet parameters;
  parameters.set({.name = "card.tdp_watts", .value = 700, .low = 700, .high = 700, .source = "test"});
  const auto watts = [&](std::optional<double> limit, const CostModel* model) {
    sweep::Parts parts;
    parts.hosts.push_back(
        {.type = "server", .count = 2, .sockets = 2, .gpus = {{"card", 8}}, .gpu_power_limit = limit});
    return sweep::bill_of(parts, model, parameters).watts;
  };
  CostModel own;
  own.prices["gpu"]["card"] = {.price = 1, .watts = 600};
  CostModel board;
  board.prices["gpu"]["card"] = {.price = 1};
  CostModel whole;
  whole.prices["host"]["server"] = {.price = 1, .watts = 9000, .includes = {"gpu"}};
  for (const auto* model : {static_cast<const CostModel*>(nullptr), static_cast<const CostModel*>(&board)}) {
    CHECK(watts(std::nullopt, model) == 16 * 700);
    CHECK(watts(500, model) == 16 * 500);
  }
  CHECK(watts(std::nullopt, &own) == 16 * 600);
  CHECK(watts(650, &own) == 16 * 600);
  CHECK(watts(500, &own) == 16 * 500);
  CHECK(watts(std::nullopt, &whole) == 2 * 9000);
  CHECK(watts(500, &whole) == 2 * 9000 - 16 * 200);
}
