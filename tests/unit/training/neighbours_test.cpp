// SPDX-License-Identifier: Apache-2.0
// Jobs on one fabric: what a step exchanges, inside its layers too, is in the way of others, and theirs in its way.
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// A link between two leaves of two hosts each: hosts 0 and 2 talk over it, hosts 1 and 3, too.
const std::string k_narrow = "{leaf_spine: {switch: qm9700, leaf_ports: 17, spines: 1, oversubscription: 16}}";
const std::string k_wide = "{single_switch: {switch: qm9700}}";
const std::string k_idle = "  - {benchmark: all_reduce_perf, sizes: [8 B], devices: [n7.gpu0, n7.gpu1]}\n";

std::string on_hosts(const std::string& what, const std::vector<std::string>& hosts) {
  std::string gpus;
  for (const auto& host : hosts)
    for (int g = 0; g < 8; ++g) gpus += (gpus.empty() ? "" : ", ") + host + ".gpu" + std::to_string(g);
  return "  - {benchmark: training, batch_per_gpu: 1, precision: bf16, " + what + ", devices: [" + gpus + "]}\n";
}

std::string first(const std::string& what) { return on_hosts(what, {"n0", "n2"}); }
std::string second(const std::string& what) { return on_hosts(what, {"n1", "n3"}); }

/// Times of workloads that run together, in s.
std::vector<double> step_times(const std::string& workloads, const std::string& fabric) {
  std::vector<double> out;
  const auto prediction = test::run(test::with_memory(
      test::scenario("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                     "  hosts: [{name: n, count: 8, type: hgx-h100-8}]\n  fabric: " +
                     fabric + "\nworkloads:\n" + workloads)));
  for (const auto& one : prediction.workloads) out.push_back(one.rows.front().time.seconds());
  return out;
}

/// Steps by what crosses the link: mostly, or nothing but, exchanges inside layers.
const std::vector<std::string> k_steps{
    "network: gpt-1.3b, parallel: {data: ddp}",
    "network: gpt-1.3b, parallel: {data: zero1, tensor: 16}",
    "network: gpt-1.3b, parallel: {data: zero1, tensor: 16, sequence: on, recompute: full}",
    "network: gpt-1.3b, parallel: {data: zero1, context: 16}",
    "network: gpt-1.3b, parallel: {data: zero1, context: 16, context_exchange: all_to_all}",
    "network: gpt-1.3b, parallel: {data: fsdp, tensor: 16}",
    "network: gpt-1.3b, part: layer, parallel: {tensor: 16}",
    "network: qwen3-30b-a3b, parallel: {data: zero1, expert: 16}",
    "network: deepseek-v2-lite, parallel: {data: zero1, tensor: 16, sequence: on}",
};

}  // namespace

TEST_CASE("two jobs over one link are in each other's way, whatever of their steps crosses it") {
  for (const auto& step : k_steps) {
    CAPTURE(step);
    const double one = step_times(first(step) + k_idle, k_narrow)[0];
    const auto both = step_times(first(step) + second(step), k_narrow);
    CHECK(both[0] > 1.3 * one);
    CHECK(both[0] < 2.01 * one);
    CHECK(both[1] == test::approx(both[0]).epsilon(1e-6));
    if (step.find("part: layer") != std::string::npos) continue;  // ends before the other job exchanges anything
    const auto beside_data = step_times(first(step) + second(k_steps[0]), k_narrow);
    CHECK(beside_data[0] > 1.01 * one);
    CHECK(beside_data[1] > 1.005 * step_times(first(k_steps[0]), k_narrow)[0]);
  }
}

TEST_CASE("a job that shares no link with others takes as long as beside an idle one") {
  for (const auto& step : k_steps) {
    CAPTURE(step);
    const double one = step_times(first(step) + k_idle, k_wide)[0];
    CHECK(step_times(first(step) + second(step), k_wide)[0] == test::approx(one).epsilon(1e-6));
    // Beside others, what a step exchanges itself meets, too.
    const double alone = step_times(first(step), k_wide)[0];
    CHECK(one > (1 - 1e-6) * alone);
    CHECK(one < 1.15 * alone);
  }
}

TEST_CASE("each stage of a pipeline meets others where its own hosts are") {
  // Leaves of four hosts; tensor groups of the second stage alone cross the link.
  const std::string four = "{leaf_spine: {switch: qm9700, leaf_ports: 33, spines: 1, oversubscription: 32}}";
  const auto step = on_hosts("network: gpt-1.3b, parallel: {data: zero1, tensor: 16, pipeline: 2, micro_batches: 8}",
                             {"n0", "n1", "n2", "n4"});
  const auto data = on_hosts(k_steps[0], {"n3", "n5"});
  const auto both = step_times(step + data, four);
  CHECK(both[0] > 1.2 * step_times(step + k_idle, four)[0]);
  CHECK(both[1] > 1.2 * step_times(data, four)[0]);
}

TEST_CASE("exchanges that compute hides are on the wire all the same") {
  const auto carried = [](const std::string& parallel) {
    const auto loaded = test::with_memory(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
        "  hosts: [{name: n, count: 8, type: hgx-h100-8}]\n  fabric: " +
        k_wide +
        "\nworkload: {benchmark: training, network: qwen3-30b-a3b, batch_per_gpu: 1, precision: bf16, parallel: {" +
        parallel + "}}\n"));
    models::Resources resources(loaded.topology);
    models::PlanContext context{loaded.topology, loaded.scenario.software, loaded.parameters, resources, 1, false};
    models::set_payload_shares(resources, loaded.parameters);
    const auto planner = models::make_planner(context, loaded.scenario.workloads.front());
    REQUIRE(planner);
    double bytes = 0;
    for (const auto& node : (*planner)->plan(Bytes{0}).program.nodes)
      for (const auto& flow : node.flows)
        for (const auto& crossing : flow.crossings)
          bytes += static_cast<double>(node.repeat) * flow.bytes * crossing.times;
    return bytes;
  };
  const std::string experts = "data: zero1, pipeline: 2, interleave: 2, expert: 16, micro_batches: 8, expert_overlap: ";
  CHECK(carried(experts + "on") == test::approx(carried(experts + "off")).epsilon(1e-9));
}
