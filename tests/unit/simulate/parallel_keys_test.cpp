// SPDX-License-Identifier: Apache-2.0
// No key of `parallel` is left out in silence, whatever the step: two values give two results, or one is refused. The
// table must name every key of the schema, so that a new one cannot be forgotten. The same of what a step is given
// beside `parallel`.
#include <string>
#include <vector>

#include "tests/support/effects.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

/// Steps of every program: plain exchanges, split models, sharded ones, a layer, with and without experts.
struct Step {
  std::string workload, parallel;
};

const std::vector<Step> k_steps{
    {"network: vgg-16, batch_per_gpu: 8", "data: ddp"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: ddp"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: horovod"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: fsdp"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: fsdp, tensor: 2"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: zero1, micro_batches: 2"},
    {"network: gpt-345m, batch_per_gpu: 2", "data: zero1, tensor: 2"},
    {"network: gpt-345m, batch_per_gpu: 2", "tensor: 2, sequence: on"},
    {"network: gpt-345m, batch_per_gpu: 2", "pipeline: 2, micro_batches: 4"},
    {"network: gpt-345m, batch_per_gpu: 2", "pipeline: 2, interleave: 2, micro_batches: 4"},
    {"network: gpt-345m, batch_per_gpu: 2", "context: 2, recompute: full"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 1", "data: zero1, expert: 4"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 1", "data: fsdp, expert: 2"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 1", "tensor: 2, sequence: on, expert: 2"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 1", "data: zero1, expert: 4, micro_batches: 4"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 1", "data: zero1"},
    {"network: gpt-345m, batch_per_gpu: 2, part: layer", "tensor: 2"},
    {"network: qwen3-30b-a3b, batch_per_gpu: 2, part: layer", "expert: 2"}};

const std::vector<TwoValues> k_parallel{{"data", "", "ddp", "zero1"},
                                        {"data", "", "fsdp", "zero1"},
                                        {"data", "", "horovod", "ddp"},
                                        {"bucket", "", "1 MiB", "100 MiB"},
                                        {"exchange", "", "fp32", "bf16"},
                                        {"fusion", "", "1 MiB", "64 MiB"},
                                        {"cycle", "", "1 ms", "20 ms"},
                                        {"hierarchical", "", "off", "on"},
                                        {"torus", "", "off", "on"},
                                        {"tensor", "", "1", "2"},
                                        {"sequence", "", "off", "on"},
                                        {"pipeline", "", "1", "2"},
                                        {"interleave", "", "1", "2"},
                                        {"context", "", "1", "2"},
                                        {"context_exchange", "", "ring", "all_to_all"},
                                        {"expert", "", "1", "4"},
                                        {"expert_tensor", "", "1", "2"},
                                        {"imbalance", "", "1", "1.5"},
                                        {"expert_overlap", "", "off", "on"},
                                        {"micro_batches", "", "2", "4"},
                                        {"recompute", "", "none", "full"},
                                        {"recompute", "", "none", "selective"}};

const std::vector<TwoValues> k_beside{{"precision", "", "bf16", "fp32"},
                                      {"batch_per_gpu", "", "2", "4"},
                                      {"tokens", "", "64", "512"},
                                      {"kv_length", "", "64", "4096"},
                                      {"gpus", "", "2", "4"},
                                      {"slow", "", "{n1.gpu0: 0.9}", "{n1.gpu0: 0.5}"},
                                      {"jitter", "", "0", "0.1"}};

bool has_key(const std::string& text, const std::string& key) {
  return text.starts_with(key + ":") || text.find(" " + key + ":") != std::string::npos;
}

void check_two(const std::string& one_workload, const std::string& other_workload) {
  CAPTURE(one_workload);
  CAPTURE(other_workload);
  const auto one = seen(scenario_of("", "benchmark: training, " + one_workload));
  const auto other = seen(scenario_of("", "benchmark: training, " + other_workload));
  if (!one.is_refused && !other.is_refused) CHECK(one.times != other.times);
}

}  // namespace

TEST_CASE("the table of parallelism names every key of the schema") {
  CHECK(keys_of(k_parallel) == keys_of_schema("workload.parallel"));
}

TEST_CASE("every key of `parallel` changes a step or is refused") {
  for (const auto& step : k_steps) {
    for (const auto& key : k_parallel) {
      if (has_key(step.parallel, key.key)) continue;
      const auto with = [&](const std::string& value) {
        return step.workload + ", parallel: {" + step.parallel + ", " + key.key + ": " + value + "}";
      };
      check_two(with(key.one), with(key.other));
    }
  }
}

TEST_CASE("every key beside `parallel` changes a step or is refused") {
  for (const auto& step : k_steps) {
    for (const auto& key : k_beside) {
      if (has_key(step.workload, key.key)) continue;
      const auto with = [&](const std::string& value) {
        return step.workload + ", parallel: {" + step.parallel + "}, " + key.key + ": " + value;
      };
      check_two(with(key.one), with(key.other));
    }
  }
}
