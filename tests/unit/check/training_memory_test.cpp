// SPDX-License-Identifier: Apache-2.0
// Steps that cannot fit in a GPU's memory are refused; what is split or sharded counts once.
#include <algorithm>
#include <string>
#include <utility>

#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// What `check` says of memory for a step of 16 H100 of 80 GB.
std::string memory_fault(const std::string& network, const std::string& parallel) {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{name: "
      "n, count: 2, type: hgx-h100-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\nworkload: {benchmark: "
      "training, tokens: 512, network: " +
      network + (network.find("batch") == std::string::npos ? ", batch_per_gpu: 1" : "") +
      ", gpus: 16, parallel: " + parallel + "}\n");
  for (const auto& fault : check_scenario(loaded.topology, loaded.scenario, loaded.parameters)) {
    if (fault.message.find("keeps at least") != std::string::npos) return fault.message;
  }
  return "";
}

bool fits(const std::string& network, const std::string& parallel) { return memory_fault(network, parallel).empty(); }

}  // namespace

TEST_CASE("a model that is whole on every GPU needs 16 bytes per parameter") {
  // 8.03 billion parameters: 128 GB of weights, gradients and Adam's states; with zero1 4 + 12 / 16 bytes, 38 GB.
  CHECK(memory_fault("llama3-8b", "{data: ddp}").find("weights, gradients and optimiser") != std::string::npos);
  CHECK(fits("llama3-8b", "{data: zero1}"));
  CHECK(fits("llama3-8b", "{data: fsdp}"));
  CHECK(fits("llama3-8b", "{tensor: 8}"));
  CHECK(!fits("llama3-70b", "{data: zero1}"));
}

TEST_CASE("experts are kept by those that share them, and sharded over their own replicas") {
  // 46.7 billion parameters, 45.1 of experts: whole 4 bytes each are 187 GB, an eighth of the experts 29 GB with all
  // else.
  CHECK(!fits("mixtral-8x7b", "{data: zero1}"));
  CHECK(fits("mixtral-8x7b", "{data: zero1, expert: 8}"));
  // 30.5 billion: sharded wherever they lie, but two GPUs that share the experts still keep half of them.
  CHECK(fits("qwen3-30b-a3b", "{data: zero1, expert: 16}"));
  CHECK(!fits("qwen3-30b-a3b", "{data: zero1, expert: 2}"));
  // 5.6 billion of an eighth with 16 bytes each are 90 GB; when two GPUs share each expert it is half of that.
  CHECK(!fits("mixtral-8x7b", "{expert: 8}"));
  CHECK(fits("mixtral-8x7b", "{tensor: 2, expert: 8}"));
  CHECK(fits("mixtral-8x7b", "{data: fsdp, expert: 8}"));
  CHECK(!fits("mixtral-8x7b", "{data: zero1, tensor: 2, sequence: on, expert: 2, expert_tensor: 1}"));
}

TEST_CASE("a step of latent attention keeps what its heads are wide, and less with selective recomputation") {
  // 27 layers of 512 tokens of 64 sequences: 26 x 2,048 bytes of norms and feed-forward part, 2 x 576 of latents, 2 x
  // 16 x 128 of the output's input, and 2 x 16 x (192 + 192 + 128) of queries, keys and values: 66.2 GB, 51.8 without.
  const auto fault = [](const std::string& recompute) {
    return memory_fault("deepseek-v2-lite, batch_per_gpu: 64", "{expert: 2, recompute: " + recompute + "}");
  };
  INFO(fault("none"), fault("selective"), fault("full"));
  CHECK(fault("none").find("61.7 GiB of activations") != std::string::npos);
  CHECK(fault("selective").find("48.2 GiB of activations") != std::string::npos);
  CHECK(fault("full").find("3.38 GiB of activations") != std::string::npos);
}

TEST_CASE("a step that cannot fit is not forecast, in the words of check") {
  const std::string cluster =
      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
      "type: "
      "dgx-1-p100}]}\nworkload: {benchmark: training, network: ";
  const auto whole = test::scenario(cluster + "llama3-405b, batch_per_gpu: 1, precision: fp32, gpus: 1}\n");
  const auto forecast = simulate(whole.topology, whole.scenario, whole.parameters);
  REQUIRE_FALSE(forecast.has_value());
  const auto said = check_scenario(whole.topology, whole.scenario, whole.parameters);
  REQUIRE(said.size() == 1);
  CHECK(forecast.error().front().message == said.front().message);
  const auto small = test::scenario(cluster + "resnet-50, batch_per_gpu: 32, precision: fp32, gpus: 1}\n");
  CHECK(test::run(small).workloads[0].rows.size() == 1);
}

TEST_CASE("a step that was measured fits: selective recomputation of PyTorch keeps less than all") {
  const auto loaded = test::shipped("training/torchtitan-llama3-8b.yaml");
  CHECK(check_scenario(loaded.topology, loaded.scenario, loaded.parameters).empty());
  const auto all = test::shipped("training/torchtitan-llama3-8b.yaml", {{"workload.parallel.recompute", "none"}});
  CHECK_FALSE(check_scenario(all.topology, all.scenario, all.parameters).empty());
}

namespace {

/// What `check` says of memory for a step on one GPU of a host with eight.
std::string fault_in(const std::string& guest, const std::string& workload, const std::string& type = "hgx-h100-8") {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, type: " +
      type + "}]\n" + guest + "\nworkload: {benchmark: training, gpus: 1, " + workload + "}\n");
  for (const auto& fault : check_scenario(loaded.topology, loaded.scenario, loaded.parameters)) {
    if (fault.message.find("keeps at least") != std::string::npos) return fault.message;
  }
  return "";
}

}  // namespace

TEST_CASE("a step must fit into what the system has of a GPU, not into the card") {
  // Adam keeps 16 bytes of each of 1.3 billion parameters: 21 GiB and activations.
  struct Part {
    std::string guest;
    double gib;
    std::string what;
  };
  for (const auto& part :
       {Part{"", 80, "a h100-sxm has 80 GiB"}, Part{"virtualization: {mode: passthrough}", 80, "a h100-sxm has 80 GiB"},
        Part{"virtualization: {mode: vgpu}", 80, "a h100-sxm has 80 GiB"},
        Part{"virtualization: {mode: mig, profile: 1g.10gb}", 10, "MIG instance 1g.10gb of a h100-sxm has 10 GiB"},
        Part{"virtualization: {mode: mig, profile: 2g.20gb}", 20, "MIG instance 2g.20gb of a h100-sxm has 20 GiB"},
        Part{"virtualization: {mode: mig, profile: 3g.40gb}", 40, "MIG instance 3g.40gb of a h100-sxm has 40 GiB"},
        Part{"virtualization: {mode: vgpu, profile: h100xm-10c}", 10, "vGPU h100xm-10c of a h100-sxm has 10 GiB"},
        Part{"virtualization: {mode: vgpu, profile: h100xm-40c}", 40, "vGPU h100xm-40c of a h100-sxm has 40 GiB"},
        Part{"virtualization: {mode: remote-gpu, gpu_memory: 8 GiB}", 8, "client of a remote h100-sxm has 8 GiB"},
        Part{"virtualization: {mode: remote-gpu, gpu_share: 0.25}", 20, "client of a remote h100-sxm has 20 GiB"},
        Part{"virtualization: {mode: remote-gpu}", 80, "a h100-sxm has 80 GiB"}}) {
    CAPTURE(part.guest);
    const auto small = fault_in(part.guest, "network: gpt-1.3b, batch_per_gpu: 1");
    CHECK(small.empty() == (part.gib > 23));
    if (part.gib < 23) CHECK(small.find(part.what) != std::string::npos);
    CHECK(fault_in(part.guest, "network: llama3-8b, batch_per_gpu: 1").find(part.what) != std::string::npos);
    CHECK(fault_in(part.guest, "network: gpt-124m, batch_per_gpu: 1").empty());
  }
}

TEST_CASE("a layer's weights and cache must fit, too, in 16 bits of each cached element and a byte of fp8 weights") {
  struct Layer {
    std::string network, tensor, batch, cached, precision;
    double weights_gib, cache_gib;
  };
  // llama3-405b: 2 x 8 x 128 elements per token, 3.2e9 weights per layer; deepseek-v3: 576, whatever the tensor group.
  for (const auto& one : {Layer{"llama3-405b", "1", "256", "131071", "bf16", 5.94, 128},
                          Layer{"llama3-405b", "1", "256", "131071", "fp8", 2.97, 128},
                          Layer{"llama3-405b", "1", "256", "65535", "bf16", 5.94, 64},
                          Layer{"llama3-405b", "2", "256", "131071", "bf16", 2.97, 64},
                          Layer{"llama3-405b", "8", "2048", "131071", "bf16", 0.74, 128},
                          Layer{"deepseek-v3", "1", "512", "131071", "fp8", 10.7, 72},
                          Layer{"deepseek-v3", "8", "512", "131071", "fp8", 1.4, 72},
                          Layer{"deepseek-v3", "8", "1024", "131071", "fp8", 1.4, 144}}) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{name: n, type: hgx-h100-8}]\nworkload: {benchmark: training, part: layer, tokens: 1, gpus: " +
        one.tensor + ", network: " + one.network + ", batch_per_gpu: " + one.batch + ", kv_length: " + one.cached +
        ", precision: " + one.precision + ", parallel: {tensor: " + one.tensor + "}}\n");
    CAPTURE(one.network);
    CAPTURE(one.tensor);
    CAPTURE(one.cached);
    CAPTURE(one.precision);
    const auto said = check_scenario(loaded.topology, loaded.scenario, loaded.parameters);
    const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    const bool is_fitting = one.weights_gib + one.cache_gib <= 80;
    REQUIRE(said.empty() == is_fitting);
    CHECK(forecast.has_value() == is_fitting);
    if (!is_fitting) {
      CAPTURE(said.front().message);
      CHECK(said.front().message.find("one layer of " + one.network) != std::string::npos);
      const auto cache = std::to_string(static_cast<int>(one.cache_gib)) + " GiB of keys and values";
      CHECK(said.front().message.find(cache) != std::string::npos);
      CHECK(forecast.error().front().message == said.front().message);
      continue;
    }
    const auto& lines = forecast->workloads[0].assumptions;
    CHECK(std::ranges::any_of(lines, [](const auto& line) { return line.find("1 of ") == 0; }));
  }
}

TEST_CASE("the GPUs that a step names decide, not the first of the topology") {
  const auto fits_on = [](const std::string& device) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "a, type: hgx-h200-8}, {name: b, type: dgx-1-v100}]\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\n"
        "workload: {benchmark: training, precision: fp16, network: gpt-1.3b, batch_per_gpu: 1, gpus: 1, devices: [" +
        device + "]}\n");
    return check_scenario(loaded.topology, loaded.scenario, loaded.parameters).empty();
  };
  CHECK(fits_on("a.gpu0"));
  CHECK_FALSE(fits_on("b.gpu0"));
}

TEST_CASE("buffers of a benchmark must fit into what the system has of a GPU") {
  for (const bool is_part : {true, false}) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "n, type: hgx-h100-8}]\nvirtualization: {mode: vgpu" +
        std::string(is_part ? ", profile: h100xm-10c" : "") +
        "}\nworkload: {benchmark: all_reduce_perf, gpus: 2, sizes: [8 GiB]}\n");
    bool is_said = false;
    for (const auto& fault : check_scenario(loaded.topology, loaded.scenario, loaded.parameters))
      is_said = is_said || fault.message.find("vGPU h100xm-10c of a h100-sxm") != std::string::npos;
    CHECK(is_said == is_part);
  }
}

namespace {

/// Two workloads on a host of eight GPUs, and what `check` says of both together.
Diagnostics of_two(const std::string& first, const std::string& second, bool expects_forecast = true) {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, type: hgx-h100-8}]\nworkloads:\n  - {name: a, " +
      first + "}\n  - {name: b, " + second + "}\n");
  const auto said = check_scenario(loaded.topology, loaded.scenario, loaded.parameters);
  const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  CHECK(forecast.has_value() == expects_forecast);
  if (!forecast) return said;
  const bool is_warned = std::ranges::any_of(
      said, [](const auto& one) { return one.message.find("processes of a GPU take turns") != std::string::npos; });
  for (const auto& workload : forecast->workloads) {
    const bool is_said = std::ranges::any_of(workload.assumptions, [](const auto& line) {
      return line.find("processes of a GPU take turns") != std::string::npos;
    });
    CHECK(is_said == is_warned);
  }
  return said;
}

}  // namespace

TEST_CASE("two jobs that compute on the same GPUs are warned of, with the GPUs and both names") {
  const std::string step = "benchmark: gpu_step, compute: 10 ms, sizes: [0 B]";
  const std::string train = "benchmark: training, network: vgg-16, batch_per_gpu: 16";
  const std::string reduce = "benchmark: all_reduce_perf, sizes: [1 MiB]";
  for (const auto& both :
       {std::pair{step, step}, std::pair{train, train}, std::pair{train, step}, std::pair{reduce, train}}) {
    const auto &first = both.first, &second = both.second;
    CAPTURE(first);
    CAPTURE(second);
    const auto said = of_two(first, second);
    REQUIRE(said.size() == 1);
    CHECK(said.front().severity == Severity::warning);
    CHECK(said.front().message.find("'a' and 'b' compute on the same 8 GPUs (n.gpu0 to n.gpu7)") != std::string::npos);
    CHECK(of_two(first + ", gpus: 2, devices: [n.gpu0, n.gpu1]", second + ", gpus: 2, devices: [n.gpu2, n.gpu3]")
              .empty());
  }
  const auto one =
      of_two(train + ", gpus: 2, devices: [n.gpu0, n.gpu1]", train + ", gpus: 2, devices: [n.gpu1, n.gpu2]");
  REQUIRE(one.size() == 1);
  CHECK(one.front().message.find("the same n.gpu1:") != std::string::npos);
  CHECK(of_two(reduce, reduce).empty());
}

TEST_CASE("what jobs keep in a GPU that they share adds up") {
  // 21 GiB and activations each for Adam's states of 1.3 billion parameters: three fit beside each other, not four.
  const std::string train = "benchmark: training, network: gpt-1.3b, gpus: 1, batch_per_gpu: 1, devices: [n.gpu";
  const auto together = [&](int jobs, bool is_same) {
    std::string all;
    for (int job = 0; job < jobs; ++job) all += "  - {" + train + std::to_string(is_same ? 0 : job) + "]}\n";
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{name: n, type: hgx-h100-8}]\nworkloads:\n" +
        all);
    const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    int refused = 0;
    for (const auto& one : check_scenario(loaded.topology, loaded.scenario, loaded.parameters)) {
      refused += one.severity == Severity::error ? 1 : 0;
      if (one.severity == Severity::error)
        CHECK(one.message.find("together in a GPU that they share") != std::string::npos);
    }
    CHECK(forecast.has_value() == (refused == 0));
    return refused;
  };
  CHECK(together(3, true) == 0);
  CHECK(together(4, true) == 1);
  CHECK(together(5, true) == 2);
  CHECK(together(5, false) == 0);
}
