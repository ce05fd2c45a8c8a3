// SPDX-License-Identifier: Apache-2.0
// GPUs that compute at different paces: what the slowest costs, where it is waited for, what is refused.
#include "training/stragglers.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/parameter_name.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using models::training::slowest_factor;

namespace {

/// Hosts of eight H100 with an adapter each, all of one pace.
std::string scenario_of(const std::string& workload, int hosts = 2) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  parameters: {gpu.compute_spread: {value: 0, source: "
         "test}}\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - {name: n, count: " +
         std::to_string(hosts) +
         ", type: hgx-h100-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\nworkload: {benchmark: "
         "training, " +
         workload + "}\n";
}

Row row_of(const std::string& workload, int hosts = 2) {
  return test::run(test::scenario(scenario_of(workload, hosts))).workloads[0].rows.front();
}

double figure(const Row& row, const std::string& key) {
  return std::ranges::find(row.figures, key, &Figure::key)->value;
}

using test::us;

const std::string k_waiting = "waiting for the slowest GPU";

}  // namespace

TEST_CASE("without jitter all take as long as the slowest") {
  CHECK(slowest_factor({{1.0, 64}}, 0) == 1);
  CHECK(slowest_factor({{0.8, 1}, {0.9, 3}, {1.0, 60}}, 0) == 1.25);
}

TEST_CASE("with jitter all take the expected maximum of normal draws") {
  // Expected maxima of n standard normal draws: 1 / sqrt(pi), 1.5 / sqrt(pi), then from tables of order statistics.
  const double pi = 3.14159265358979;
  CHECK(slowest_factor({{1.0, 1}}, 0.05) == 1);
  CHECK(slowest_factor({{1.0, 2}}, 0.05) == test::approx(1 + 0.05 / std::sqrt(pi)).epsilon(1e-7));
  CHECK(slowest_factor({{1.0, 3}}, 0.05) == test::approx(1 + 0.075 / std::sqrt(pi)).epsilon(1e-7));
  CHECK(slowest_factor({{1.0, 10}}, 0.05) == test::approx(1 + 0.05 * 1.53875).epsilon(1e-6));
  CHECK(slowest_factor({{1.0, 100}}, 0.5) == test::approx(1 + 0.5 * 2.50759).epsilon(1e-5));
  // One GPU far behind the others waits for nobody; one that is hardly slower shares the maximum with them.
  CHECK(slowest_factor({{0.5, 1}, {1.0, 63}}, 0.01) == test::approx(2).epsilon(1e-9));
  const double near = slowest_factor({{0.99, 1}, {1.0, 63}}, 0.02);
  CHECK(near > slowest_factor({{1.0, 64}}, 0.02));
  CHECK(near < slowest_factor({{0.99, 64}}, 0.02));
}

TEST_CASE("more GPUs, more jitter or a slower GPU never help") {
  for (const double jitter : {0.001, 0.02, 0.5}) {
    double before = 1;
    for (const int count : {1, 2, 16, 1024, 100'000}) {
      const double factor = slowest_factor({{1.0, count}}, jitter);
      CHECK(factor >= before);
      before = factor;
      CHECK(slowest_factor({{1.0, count}}, jitter * 1.1) >= factor);
      CHECK(slowest_factor({{0.9, 1}, {1.0, count}}, jitter) >= factor);
      CHECK(slowest_factor({{0.9, 1}, {1.0, count}}, jitter) >= 1 / 0.9);
    }
  }
}

TEST_CASE("one slow GPU costs what all slow ones cost, and its wait is the compute it adds") {
  const std::string bert = "network: bert-large, batch_per_gpu: 16, gpus: 16, launch: graph";
  for (const auto* parallel : {"{data: ddp}", "{data: horovod}", "{data: fsdp}", "{data: zero1}",
                               "{data: zero1, tensor: 2}", "{context: 2}"}) {
    const auto with = bert + ", parallel: " + std::string(parallel);
    CAPTURE(with);
    const auto even = row_of(with);
    const auto one = row_of(with + ", slow: {n1.gpu3: 0.8}");
    std::string all;
    for (int g = 0; g < 16; ++g)
      all += (g > 0 ? ", n" : "n") + std::to_string(g / 8) + ".gpu" + std::to_string(g % 8) + ": 0.8";
    CHECK(one.time == row_of(with + ", slow: {" + all + "}").time);
    CHECK(figure(one, "compute_time_ps") == test::approx(figure(even, "compute_time_ps")).epsilon(1e-6));
    CHECK(us(one, k_waiting) == test::approx(0.25e-6 * figure(even, "compute_time_ps")).epsilon(1e-6));
    CHECK(figure(one, "wait_time_ps") == test::approx(1e6 * us(one, k_waiting)).epsilon(1e-6));
    CHECK(one.time > even.time);
    CHECK(one.time.seconds() <= 1.25 * even.time.seconds());
    CHECK(figure(one, "scaling_efficiency_share") < figure(even, "scaling_efficiency_share"));
  }
}

TEST_CASE("a measured profile is slowed, too") {
  const std::string h200 = "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                           "/topologies/h200-4gpu-vm.yaml\nworkload: {benchmark: training, model: vgg16, precision: "
                           "bf16, gpus: [1, 4], profile: " +
                           std::string(FABRICAST_SOURCE_DIR) +
                           "/calibration/data/h200-4gpu-nvswitch-passthrough-vm/training-profile.tsv";
  const auto even = test::run(test::scenario(h200 + "}\n")).workloads[0];
  const auto gpu = even.devices[2];
  const auto slow = test::run(test::scenario(h200 + ", slow: {" + gpu + ": 0.5}}\n")).workloads[0];
  CHECK(slow.rows[0].time == even.rows[0].time);  // it takes no part
  CHECK(us(slow.rows[1], k_waiting) == test::approx(1e-6 * figure(even.rows[1], "compute_time_ps")).epsilon(1e-6));
}

TEST_CASE("a launching thread that is waited for hides a GPU that is a little slower") {
  const std::string small = "network: densenet-121, batch_per_gpu: 1, gpus: 1";
  const auto even = row_of(small);
  const double launch = figure(even, "launch_time_ps");
  REQUIRE(launch > 0.3 * figure(even, "compute_time_ps"));
  const auto slow = row_of(small + ", slow: {n0.gpu0: 0.9}");
  CHECK(figure(slow, "launch_time_ps") < launch);
  // The optimiser is no pass that operators launch.
  CHECK(slow.time.seconds() < even.time.seconds() * 1.02);
}

TEST_CASE("a slow GPU of a pipeline slows its stage") {
  const std::string gpt = "network: gpt-1.3b, batch_per_gpu: 1, gpus: 16, parallel: {pipeline: 4, micro_batches: 8}";
  const auto even = row_of(gpt);
  const auto slow = row_of(gpt + ", slow: {n1.gpu6: 0.5}");  // stage 3
  CHECK(slow.time.seconds() > 1.5 * even.time.seconds());
  CHECK(slow.time.seconds() < 2 * even.time.seconds());
  // Stage 0 computes as it did and waits for the stage, by name.
  CHECK(figure(slow, "compute_time_ps") == test::approx(figure(even, "compute_time_ps")).epsilon(1e-6));
  CHECK(us(slow, k_waiting) > 0);
  // A second one in the same stage costs nothing more.
  CHECK(row_of(gpt + ", slow: {n1.gpu6: 0.5, n1.gpu4: 0.7}").time == slow.time);
  CHECK(row_of(gpt + ", slow: {n1.gpu6: 0.5, n0.gpu0: 0.7}").time > slow.time);
}

TEST_CASE("by default GPUs of one type lie apart, and all wait for the slowest of those that exchange") {
  const double apart = test::shipped("training-horovod-16p100.yaml").parameters["gpu.compute_spread"_key];
  REQUIRE(apart > 0);
  const auto spread = [](const std::string& workload) {
    auto loaded = test::scenario(scenario_of(workload));
    loaded.parameters.set(test::shipped("training-horovod-16p100.yaml").parameters.at("gpu.compute_spread"));
    return test::run(loaded).workloads[0].rows.front();
  };
  const auto passes = [](const Row& row) { return us(row, "forward pass") + us(row, "backward pass"); };
  const std::string bert = "network: bert-large, batch_per_gpu: 16, launch: graph, gpus: ";
  CHECK(spread(bert + "1").time == row_of(bert + "1").time);
  // Expected maxima of 2, 10 and 16 standard normal draws. The optimiser is bound by memory, which keeps its clock.
  for (const auto& [gpus, draws] : std::map<int, double>{{2, 0.56419}, {10, 1.53875}, {16, 1.76599}}) {
    const auto row = spread(bert + std::to_string(gpus));
    CAPTURE(row.label);
    CHECK(us(row, k_waiting) == test::approx(draws * apart * passes(row)).epsilon(1e-4));
    CHECK(std::ranges::find(row.terms, k_waiting, &Term::name)->parameter == "gpu.compute_spread");
  }
  // Steps of a GPU scatter by themselves: the variances add up, and the scenario's own setting is named.
  const auto both = spread(bert + "16, jitter: 0.03");
  CHECK(us(both, k_waiting) > 1.76599 * std::hypot(apart, 0.03) * passes(both) * 0.999);
  CHECK(std::ranges::find(both.terms, k_waiting, &Term::name)->parameter == "workload.jitter");
  // A layer that reads its cache waits for memory.
  const std::string layer =
      "part: layer, network: gpt-1.3b, tokens: 1, batch_per_gpu: 8, gpus: 8, parallel: {tensor: 8}";
  CHECK(us(spread(layer + ", kv_length: 4096"), k_waiting) == 0);
  CHECK(us(spread(layer), k_waiting) > 0);
}

TEST_CASE("jitter costs more with more GPUs") {
  double before = 1;
  for (const int gpus : {1, 8, 16}) {
    const std::string bert = "network: bert-large, batch_per_gpu: 16, launch: graph, gpus: " + std::to_string(gpus);
    const double factor = row_of(bert + ", jitter: 0.05").time.seconds() / row_of(bert).time.seconds();
    CHECK(factor >= before);
    before = factor;
  }
  CHECK(before > 1.05);
  CHECK(before < 1.09);  // at most 1 + 0.05 x 1.766 of 16 draws
}

TEST_CASE("a slow GPU that takes no part changes no time, and the result says so") {
  const std::string vgg = "network: vgg-16, batch_per_gpu: 8, gpus: 8";
  const auto even = test::run(test::scenario(scenario_of(vgg))).workloads[0];
  const auto slow = test::run(test::scenario(scenario_of(vgg + ", slow: {n1.gpu0: 0.5}"))).workloads[0];
  CHECK(slow.rows.front().time == even.rows.front().time);
  CHECK(std::ranges::any_of(slow.assumptions, [](const auto& line) {
    return line == "workload.slow of 'n1.gpu0' changes no time: it takes no part";
  }));
}

TEST_CASE("slow GPUs that are none are refused") {
  const auto fault = [](const std::string& workload) {
    const auto loaded = load_scenario(test::write_file("s.yaml", scenario_of(workload)));
    if (!loaded) return test::shown(loaded.error());
    const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
    return prediction ? std::string() : test::shown(prediction.error());
  };
  const auto has = [&](const std::string& keys, const std::string& part) {
    const auto text = fault("network: vgg-16, batch_per_gpu: 8, " + keys);
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("s.yaml:10:") != std::string::npos);
  };
  has("slow: {n7.gpu0: 0.9}", "'n7.gpu0' is not a GPU of topology 't'");
  has("slow: {n0.hca0: 0.9}", "'n0.hca0' is not a GPU");
  has("slow: {n0.gpu0: 0}", "0.01");
  has("slow: {n0.gpu0: 1.5}", "1.5");
  has("jitter: 0.7", "0.7");
  CHECK(fault("network: vgg-16, batch_per_gpu: 8, slow: {n0.gpu0: 1}, gpus: 2") == "");
}
