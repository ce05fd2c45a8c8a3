// SPDX-License-Identifier: Apache-2.0
// Shipped networks against published totals and against the tensors of measured profiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "config/network.hpp"
#include "tests/support/approx.hpp"
#include "training/buckets.hpp"
#include "training/work.hpp"

namespace fabricast {
namespace {

const std::string k_own = std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-4gpu-nvswitch-passthrough-vm/";

Network network(const std::string& name) {
  Diagnostics faults;
  auto found = config::find_network(name, "", config::Node{}, faults);
  for (const auto& fault : faults) FAIL_CHECK(fault.message);
  REQUIRE(found);
  return *found;
}

std::vector<TrainingProfile> profiles() {
  std::ifstream in(k_own + "training-profile.tsv");
  std::stringstream text;
  text << in.rdbuf();
  const auto read = parse_training_profiles("training-profile.tsv", text.str());
  REQUIRE(read);
  return *read;
}

TEST_CASE("networks have the parameters, tensors and multiply-adds that are published") {
  struct Published {
    const char* name;
    double parameters;
    int tensors;
    double gmac;
  };
  // torchvision's tables of parameters and GMAC at 224 x 224; Inception-v3 at 299 x 299 without the auxiliary head.
  for (const auto& one :
       {Published{"vgg-16", 138'357'544, 32, 15.470}, Published{"resnet-50", 25'557'032, 161, 4.089},
        Published{"resnet-101", 44'549'160, 314, 7.801}, Published{"densenet-121", 7'978'856, 364, 2.834},
        Published{"inception-v3", 23'834'568, 284, 5.713}}) {
    CAPTURE(one.name);
    const auto found = network(one.name);
    CHECK(found.parameters() == static_cast<std::int64_t>(one.parameters));
    CHECK(found.num_tensors() == one.tensors);
    CHECK(found.forward_flop() / 2e9 == fabricast::test::approx(one.gmac).epsilon(0.001));
  }
}

TEST_CASE("large models have as many parameters as their reports say") {
  const std::pair<const char*, double> published[] = {
      {"llama3-8b", 8.030e9},  {"llama3-70b", 70.554e9},    {"llama3-405b", 405.85e9},    {"gpt3-175b", 174.6e9},
      {"llama2-70b", 68.98e9}, {"mixtral-8x7b", 46.70e9},   {"qwen3-30b-a3b", 30.53e9},   {"qwen3-235b-a22b", 235.09e9},
      {"mpt-7b", 6.649e9},     {"bert-large", 335'174'458}, {"gpt-1.3b", 1'418'842'112},  {"llama4-maverick", 400e9},
      {"deepseek-v3", 671e9},  {"deepseek-v2", 236e9},      {"deepseek-v2-lite", 15.7e9},
  };
  for (const auto& row : published) {
    const auto& [name, parameters] = row;
    CAPTURE(row.first);
    CHECK(static_cast<double>(network(name).parameters()) == fabricast::test::approx(parameters).epsilon(0.003));
  }
}

TEST_CASE("of a mixture of experts a token meets as many parameters as its report says") {
  struct Published {
    const char* name;
    double total, activated, rounding;
  };
  // Exact totals of the released weights; DeepSeek-V3's has 256 more per block with experts, the router's offsets,
  // which are no gradients'. Activated: 36.6 (README_WEIGHTS of DeepSeek-V3), 21 and 2.4 billion, without the
  // embedding.
  for (const auto& one :
       {Published{"deepseek-v3", 671'026'419'200 - 58 * 256, 36.6, 0.05},
        Published{"deepseek-v2", 235'741'434'880, 21, 0.5}, Published{"deepseek-v2-lite", 15'706'484'224, 2.4, 0.06}}) {
    CAPTURE(one.name);
    const auto found = network(one.name);
    CHECK(static_cast<double>(found.parameters()) == one.total);
    CHECK(std::abs(found.activated_parameters() * 1e-9 - one.activated) <= one.rounding);
  }
  // NVIDIA's table counts 338 TFLOP/s at 1,297 tokens/s of DeepSeek-V3 with its second token: 3 forward passes each.
  CHECK(3 * network("deepseek-v3-mtp").forward_flop() / 4096 == test::approx(338e12 / 1297).epsilon(0.5 / 338));
  CHECK(network("qwen3-30b-a3b").activated_parameters() == test::approx(3.0e9).epsilon(0.02));
  CHECK(network("mixtral-8x7b").activated_parameters() == test::approx(12.7e9).epsilon(0.02));
}

TEST_CASE("a token's training costs 6 N of a dense transformer, and its attention") {
  // 6 N + 6 L h s per token when causal, N without the input embedding; twice the forward pass is the backward pass.
  const auto llama = network("llama3-8b");
  double matrices = 0;
  for (const auto& layer : llama.layers) {
    if (layer.kind != LayerKind::gemm) continue;
    CHECK(layer.backward_flop == fabricast::test::approx(2 * layer.forward_flop));
    for (const auto elements : layer.tensors) matrices += static_cast<double>(elements);
  }
  const double attention = 2.0 * 32 * 4096 * 8192;
  CHECK(llama.forward_flop() / 8192 == fabricast::test::approx(2 * matrices + attention).epsilon(1e-9));
}

TEST_CASE("every network has the tensors of its measured profile") {
  const std::pair<const char*, const char*> pairs[] = {{"resnet50", "resnet-50"},   {"resnet101", "resnet-101"},
                                                       {"vgg16", "vgg-16"},         {"densenet121", "densenet-121"},
                                                       {"bert-s128", "bert-large"}, {"gpt-124m", "gpt-124m"},
                                                       {"gpt-345m", "gpt-345m"},    {"gpt-1.3b", "gpt-1.3b"}};
  for (const auto& profile : profiles()) {
    const auto* pair = std::ranges::find(pairs, profile.model, [](const auto& one) { return std::string(one.first); });
    if (pair == std::end(pairs)) continue;
    CAPTURE(profile.model);
    std::vector<std::int64_t> measured;
    for (const auto& tensor : profile.tensors) measured.push_back(tensor.bytes.value);
    std::vector<std::int64_t> described;
    const auto same = network(pair->second);
    for (const auto& layer : same.layers) {
      for (const auto elements : layer.tensors) described.push_back(4 * elements);
    }
    std::ranges::sort(measured);
    std::ranges::sort(described);
    CHECK(measured == described);
  }
}

TEST_CASE("batch norms are found in a profile, layer norms are not taken for them") {
  for (const auto& profile : profiles()) {
    const int norms = models::training::batch_norms(profile.tensors);
    CAPTURE(profile.model);
    CHECK(norms == (profile.model == "resnet50"      ? 53
                    : profile.model == "resnet101"   ? 104
                    : profile.model == "densenet121" ? 121
                                                     : 0));
  }
}

}  // namespace
}  // namespace fabricast
