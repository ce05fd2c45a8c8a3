// SPDX-License-Identifier: Apache-2.0
// A step on named GPUs is of them alone: as many as are named, wherever they lie, whatever else the cluster has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

/// Two machines of 2 GPUs, an adapter each, with or without VMs of one GPU.
std::string cluster(const std::string& virtualization = "", const std::string& gpu = "a100-pcie-40") {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {{name: n, count: 2, host: {{processor: xeon-icelake, devices: [{{name: gpu0, type: a100-pcie-40, below: "
      "socket0}}, {{name: gpu1, type: {1}, below: socket1}}, {{name: hca0, type: connectx-6-dx-100g, below: "
      "socket0}}]}}{0}}}\n  fabric: {{single_switch: {{switch: sn2700}}}}\n",
      virtualization, gpu);
}

std::string step(const std::string& more, const std::string& network = "resnet-50", int batch = 64) {
  return fmt::format("{{benchmark: training, network: {}, batch_per_gpu: {}, {}}}", network, batch, more);
}

WorkloadPrediction forecast(const std::string& topology, const std::string& workload) {
  return test::run(test::scenario(topology + "workload: " + workload + "\n")).workloads.front();
}

double figure(const Row& row, const std::string& key) {
  const auto it = std::ranges::find(row.figures, key, &Figure::key);
  if (it == row.figures.end()) FAIL("no figure " << key);
  return it->value;
}

std::string faults_of(const std::string& topology, const std::string& workload) {
  const auto loaded = test::scenario(topology + "workload: " + workload + "\n");
  const auto checked = check_scenario(loaded.topology, loaded.scenario, loaded.parameters);
  const auto run = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
  // What `run` refuses `check` has said.
  const auto is_error = [](const Diagnostic& one) { return one.severity == Severity::error; };
  CHECK(run.has_value() == std::ranges::none_of(checked, is_error));
  return run ? "" : run.error().front().message;
}

const std::vector<std::string> k_all{"n0.gpu0", "n0.gpu1", "n1.gpu0", "n1.gpu1"};

}  // namespace

TEST_CASE("a step on named GPUs counts them alone, and each computes its own batch") {
  for (std::uint64_t seed = 0; seed < test::draws(12); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    auto names = k_all;
    for (std::size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random.next(i)]);
    const auto count = 1 + random.next(names.size());
    names.resize(count);
    const int batch = random.pick<int>({1, 32, 64});
    const auto found =
        forecast(cluster(), step(fmt::format("devices: [{}]", fmt::join(names, ", ")), "resnet-50", batch));
    REQUIRE(found.rows.size() == 1);
    const auto& row = found.rows.front();
    CHECK(found.num_ranks == static_cast<int>(count));
    CHECK(found.devices == names);
    CHECK(figure(row, "gpus") == static_cast<double>(count));
    CHECK(row.label == fmt::format("{} GPU{}", count, count == 1 ? "" : "s"));
    CHECK(figure(row, "images_per_s") == test::approx(static_cast<double>(count) * batch / row.time.seconds()));
  }
}

TEST_CASE("the first GPUs by name are the first GPUs by number, and counts take the first of the named") {
  for (const auto* parallel : {"{data: ddp}", "{data: fsdp}", "{data: zero1}"}) {
    CAPTURE(parallel);
    const auto with = [&](const std::string& which) {
      return forecast(cluster(), step(fmt::format("{}, parallel: {}", which, parallel), "gpt-345m", 1)).rows;
    };
    const auto table = with(fmt::format("gpus: [1, 2, 4], devices: [{}]", fmt::join(k_all, ", ")));
    REQUIRE(table.size() == 3);
    for (std::size_t r = 0; r < table.size(); ++r) {
      const std::vector<std::string> first(k_all.begin(), k_all.begin() + (1 << r));
      const auto counted = with(fmt::format("gpus: {}", first.size()));
      const auto named = with(fmt::format("devices: [{}]", fmt::join(first, ", ")));
      CHECK(table[r].time == counted.front().time);
      CHECK(named.front().time == counted.front().time);
      CHECK(figure(table[r], "gpus") == static_cast<double>(first.size()));
    }
  }
}

TEST_CASE("a VM or host by name stands for the GPUs it holds") {
  const std::string vms =
      ", virtualization: {hypervisor: kvm}, vms: [{name: a, devices: {gpu0: passthrough, hca0: {vf: 1}}}, {name: b, "
      "devices: {gpu1: passthrough, hca0: {vf: 1}}}]";
  const auto by_vm = forecast(cluster(vms), step("devices: [n0/a, n1/a]"));
  const auto by_gpu = forecast(cluster(vms), step("devices: [n0/a.gpu0, n1/a.gpu0]"));
  CHECK(by_vm.rows.front().time == by_gpu.rows.front().time);
  CHECK(figure(by_vm.rows.front(), "gpus") == 2);
  CHECK(figure(forecast(cluster(), step("devices: [n0, n1.gpu1]")).rows.front(), "gpus") == 3);
}

TEST_CASE("jobs on GPUs of their own each report theirs") {
  const auto loaded = test::scenario(cluster() + "workloads: [" + step("name: a, devices: [n0.gpu0, n1.gpu0]") + ", " +
                                     step("name: b, devices: [n1.gpu1]") + "]\n");
  const auto found = test::run(loaded).workloads;
  CHECK(figure(found[0].rows.front(), "gpus") == 2);
  CHECK(figure(found[1].rows.front(), "gpus") == 1);
}

TEST_CASE("more GPUs than are named, one named twice and what is no GPU are refused, by check too") {
  CHECK(faults_of(cluster(), step("gpus: [2, 4], devices: [n0.gpu0, n1.gpu0]")) ==
        "4 GPUs asked for, 'devices' names 2");
  CHECK(faults_of(cluster(), step("devices: [n0, n0.gpu1]")) == "'n0.gpu1' is named twice, by itself and by its host");
  CHECK(faults_of(cluster(), step("devices: [n0.gpu0, n9.gpu0]")) == "'n9.gpu0' is not a GPU of topology 't'");
  CHECK(faults_of(cluster(), step("gpus: 2, devices: [n0.gpu1, n1.gpu1]")).empty());
}

TEST_CASE("named GPUs shard a model among themselves, and the smallest of them must hold its part") {
  // 1.3 billion parameters of 16 bytes each, 21 GB, and 20 x 128 tokens with 4.3 GB of activations: 40 GB hold all of
  // it, 12 GiB a quarter of the states and not a half.
  const auto with = [](const std::string& gpu, const std::string& more) {
    return faults_of(cluster("", gpu), step(more, "gpt-1.3b, tokens: 128", 20));
  };
  CHECK(with("p100-pcie-12", "devices: [n0.gpu0]").empty());
  CHECK(with("p100-pcie-12", "devices: [n0.gpu1]").find("a p100-pcie-12 has") != std::string::npos);
  // All four would hold a quarter of the states each; the two that are named keep halves.
  CHECK(with("p100-pcie-12", "parallel: {data: fsdp}").empty());
  CHECK(with("p100-pcie-12", "parallel: {data: fsdp}, devices: [n0.gpu1, n1.gpu1]").find("a p100-pcie-12 has") !=
        std::string::npos);
}
