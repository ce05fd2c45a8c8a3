// SPDX-License-Identifier: Apache-2.0
// What the power limit of a GPU leaves of its arithmetic: against our own H200, over limits, kinds of work and hosts.
#include "training/power.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/parameter_name.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "training/terms.hpp"

using namespace fabricast;
using models::training::PowerBudget;
using models::training::PowerLoad;

namespace {

std::string scenario_of(const std::string& hosts, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [" +
         hosts + "]\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\nworkload: {benchmark: " + workload +
         "}\n";
}

std::string host(const std::string& type, const std::string& limit, const std::string& name = "n") {
  return "{name: " + name + ", type: " + type + (limit.empty() ? "" : ", gpu_power_limit: " + limit) + "}";
}

Prediction step(const std::string& hosts, const std::string& workload) {
  return test::run(test::scenario(scenario_of(hosts, "training, " + workload)));
}

double seconds(const Prediction& prediction) { return prediction.workloads[0].rows.front().time.seconds(); }

const std::string k_fused = "network: llama3-8b, batch_per_gpu: 1, gpus: 8, precision: bf16, launch: graph";
const std::string k_eager = "network: llama3-8b, batch_per_gpu: 1, gpus: 8, precision: bf16";
const std::string k_decode =
    "network: llama3-8b, part: layer, batch_per_gpu: 64, tokens: 1, kv_length: 8192, gpus: 8, launch: graph";

/// Sharded, so that it fits.
std::string sharded(const std::string& workload) { return workload + ", parallel: {data: fsdp, recompute: full}"; }

std::string limit_line(const Prediction& prediction) {
  for (const auto& line : prediction.workloads[0].settings)
    if (line.setting.starts_with("power limit of")) return line.given + " -> " + line.used;
  return "";
}

}  // namespace

TEST_CASE("products beside pauses run at the rate that an H200 was measured at") {
  const auto& parameters = test::shipped("training-qwen3-30b-16.yaml").parameters;
  const double sms = 132, peak = 990 / sms, board = 700;
  const double exponent = parameters["gpu.power_exponent"_key];
  const PowerBudget budget{
      .left = board * (1 - parameters["gpu.idle_power"_key]),
      .arithmetic = std::pow(peak, exponent) * sms * parameters.find("gpu.product_power.hopper")->value,
      .exponent = exponent};
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-power-limit/power.tsv");
  REQUIRE(in);
  const double full_ms = 5.634;  // where nothing holds it back: half of the time and less
  int compared = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    std::vector<std::string> cell;
    for (std::string one; std::getline(cells, one, '\t');) cell.push_back(one);
    if (cell.size() < 8 || cell[0] != "bf16 random, 4 in a row") continue;
    const double measured_ms = std::stod(cell[3]);
    const double pause_ms = measured_ms * (1 / std::stod(cell[4]) - 1);
    const double share = budget.share({.arithmetic = full_ms, .exposed = pause_ms});
    CHECK_MESSAGE(full_ms / share == test::approx(measured_ms).epsilon(0.02), "at ", cell[4], " of the time");
    ++compared;
  }
  CHECK(compared == 14);
}

TEST_CASE("a share keeps to the budget whatever is computed") {
  for (const double left : {100.0, 300.0, 600.0}) {
    for (const double memory : {0.0, 1.0, 10.0}) {
      for (const double exposed : {0.0, 1.0, 10.0}) {
        const PowerBudget budget{.left = left, .arithmetic = 840, .memory = std::min(left, 450.0), .exponent = 2.35};
        const double share = budget.share({1, memory, exposed});
        const double drawn = 840 * std::pow(share, 1.35) + budget.memory * memory;
        const double allowed = left * (1 / share + memory + exposed);
        CHECK(share > 0);
        CHECK(drawn <= allowed * (1 + 1e-9));
        if (share < 1) CHECK(drawn == test::approx(allowed).epsilon(1e-6));
      }
    }
  }
  CHECK(PowerBudget{.left = 1, .arithmetic = 840, .exponent = 2.35}.share({.memory = 1}) == 1);
}

TEST_CASE("what grows at a lower rate is told from what does not") {
  const PowerBudget budget{.left = 400, .arithmetic = 840, .memory = 300, .exponent = 2.35};
  for (const double memory : {0.0, 0.5, 1.5}) {
    const auto made = models::training::within_power(
        std::optional(budget), [](double share) { return share; },
        [&](double share) { return PowerLoad{.arithmetic = 1 / share + memory, .exposed = 0.25}; });
    CHECK(made == test::approx(budget.share({1, memory, 0.25})).epsilon(1e-9));
    CHECK(made < 1);
  }
}

TEST_CASE("passes and what they wait for count, the optimiser and exchanges beside compute do not") {
  const auto loaded = test::scenario(scenario_of(host("hgx-h100-8", ""), "training, " + sharded(k_fused)));
  const models::Resources resources(loaded.topology);
  models::Program program;
  program.streams = {{"compute", 0}, {"NCCL", -1}};
  program.num_devices = 1;
  const auto add = [&](models::NodeKind kind, int stream, const std::string& work, double seconds, double waits) {
    models::Node node;
    node.kind = kind;
    node.stream = stream;
    node.work_name = work;
    node.work = from_seconds(seconds);
    node.repeat = 2;
    node.fixed.push_back({"wait", from_seconds(waits), "", ""});
    program.nodes.push_back(std::move(node));
  };
  add(models::NodeKind::compute, 0, models::training::k_forward, 3, 1);
  add(models::NodeKind::compute, 0, models::training::k_optimizer, 5, 7);
  add(models::NodeKind::delay, 0, "", 0, 0.5);
  add(models::NodeKind::delay, 1, "", 0, 9);
  const auto load = models::training::load_of_program(resources, program);
  CHECK(load.arithmetic == 6);
  CHECK(load.memory == 0);
  CHECK(load.exposed == 3);
}

TEST_CASE("a lower limit never makes a step faster, and the board's own changes nothing") {
  for (const auto* type : {"hgx-h100-8", "hgx-h200-8", "dgx-a100", "dgx-b200", "dgx-1-v100"}) {
    for (const auto& work : {sharded(k_fused), sharded(k_eager), k_decode}) {
      if (std::string(type) == "dgx-1-v100" && work.find("bf16") != std::string::npos) continue;
      CAPTURE(type);
      CAPTURE(work);
      const auto loaded = test::with_memory(test::scenario(scenario_of(host(type, ""), "training, " + work)));
      const double board = loaded.parameters.value_or(
          loaded.topology.device(loaded.topology.devices(DeviceKind::gpu).front()).type, "tdp_watts", 0);
      double last = 0;
      for (const double share : {1.0, 0.9, 0.75, 0.6, 0.45, 0.3, 0.2}) {
        const auto limited = test::with_memory(
            test::scenario(scenario_of(host(type, std::to_string(board * share)), "training, " + work)));
        const double time = seconds(test::run(limited));
        if (share == 1.0) CHECK(time == seconds(test::run(loaded)));
        CHECK(time >= last);
        last = time;
      }
      CHECK(last > 1.05 * seconds(test::run(loaded)));
    }
  }
}

TEST_CASE("kernels that read memory keep their pace under limits that hold products back") {
  const auto bare = host("hgx-h100-8", "");
  const auto at_450 = host("hgx-h100-8", "450");
  CHECK(seconds(step(at_450, k_decode)) < 1.02 * seconds(step(bare, k_decode)));
  CHECK(seconds(step(at_450, sharded(k_fused))) > 1.15 * seconds(step(bare, sharded(k_fused))));
}

TEST_CASE("the limit is said with what it leaves") {
  // Efficiencies of convolutions were taken from steps at the limit.
  const std::string images = "network: vgg-16, batch_per_gpu: 32, gpus: 8, precision: bf16";
  CHECK(limit_line(step(host("hgx-h100-8", ""), images)).empty());
  CHECK(seconds(step(host("hgx-h100-8", "500"), images)) > seconds(step(host("hgx-h100-8", ""), images)));
  CHECK(limit_line(step(host("dgx-a100", ""), sharded(k_fused))).empty());
  const auto own = limit_line(step(host("hgx-h100-8", ""), sharded(k_fused)));
  CHECK(own == "default -> 700 W, arithmetic that never waits at 85 % of its full rate");
  CHECK(limit_line(step(host("hgx-h100-8", ""), sharded(k_eager))) == own);
  CHECK(limit_line(step(host("hgx-h100-8", "500"), sharded(k_fused)))
            .starts_with("500 W -> 500 W, arithmetic that never waits at 71 %"));
  CHECK(limit_line(step(host("hgx-h100-8", "200"), k_decode)).find(", memory at 2") != std::string::npos);
}

TEST_CASE("all wait for the hosts that are limited most") {
  const auto mixed = host("hgx-h100-8", "", "a") + ", " + host("hgx-h100-8", "400", "b");
  const auto all = host("hgx-h100-8", "400", "a") + ", " + host("hgx-h100-8", "400", "b");
  const std::string work =
      "network: llama3-8b, batch_per_gpu: 1, gpus: 16, precision: bf16, launch: graph, "
      "parallel: {data: fsdp, recompute: full}";
  const auto prediction = step(mixed, work);
  CHECK(seconds(prediction) == test::approx(seconds(step(all, work))).epsilon(1e-6));
  const auto& lines = prediction.workloads[0].assumptions;
  CHECK(std::ranges::find(lines, "the others wait for GPUs limited to 400 W") != lines.end());
}

TEST_CASE("limits that a board does not take are refused at their place") {
  const auto faults = [](const std::string& hosts) {
    const auto loaded = load_scenario(test::write_file("s.yaml", scenario_of(hosts, "training, " + sharded(k_fused))));
    return loaded ? std::string() : test::shown(loaded.error());
  };
  CHECK(faults(host("hgx-h100-8", "701"))
            .find("'gpu_power_limit' is 701 W, a h100-sxm draws 126 W idle and takes at "
                  "most 700 W") != std::string::npos);
  CHECK(faults(host("hgx-h100-8", "126")).find("draws 126 W idle") != std::string::npos);
  CHECK(faults(host("hgx-h100-8", "127")).empty());
  CHECK(faults("{name: n, host: {processor: epyc-genoa}, gpu_power_limit: 300}").find("hosts without GPUs") !=
        std::string::npos);
}

TEST_CASE("a limit that changes no time of a benchmark is said so") {
  const auto notes = [](const std::string& workload) {
    std::string out;
    const auto prediction = test::run(test::scenario(scenario_of(host("hgx-h100-8", "400"), workload)));
    for (const auto& line : prediction.workloads[0].assumptions) out += line + "\n";
    return out;
  };
  CHECK(notes("all_reduce_perf, gpus: 8").find("gpu_power_limit changes no time of all_reduce_perf") !=
        std::string::npos);
  CHECK(notes("training, " + sharded(k_fused)).find("gpu_power_limit") == std::string::npos);
}
