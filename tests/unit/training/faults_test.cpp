// SPDX-License-Identifier: Apache-2.0
// What a training workload refuses, each with its place and a fix.
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

const std::string k_topology = std::string(FABRICAST_SOURCE_DIR) + "/topologies/h200-4gpu-vm.yaml";
const std::string k_profile =
    std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-4gpu-nvswitch-passthrough-vm/training-profile.tsv";

/// Faults of a workload, of its reader or of its planner.
std::string faults_of(const std::string& workload) {
  const auto path = test::write_file("scenario.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + k_topology +
                                                          "\nworkload: {benchmark: training, " + workload + "}\n");
  const auto loaded = load_scenario(path, {}, {});
  if (!loaded) return test::shown(loaded.error());
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters, {});
  return run ? "" : test::shown(run.error());
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  CHECK(text.find("scenario.yaml:") != std::string::npos);
  return true;
}

}  // namespace

TEST_CASE("a workload without work, or with two, is refused") {
  has(faults_of("gpus: 2"), "training needs a network or a measured profile");
  has(faults_of("network: vgg-16, batch_per_gpu: 8, profile: " + k_profile), "a network and a measured profile");
  has(faults_of("network: vgg-16"), "a network needs `batch_per_gpu`");
  has(faults_of("network: vgg-61, batch_per_gpu: 8"), "did you mean 'vgg-16'?");
  has(faults_of("network: mine.yaml, batch_per_gpu: 8"), "mine.yaml");
  has(faults_of("profile: " + k_profile), "the profile holds several models");
  has(faults_of("profile: " + k_profile + ", model: alexnet"), "no model 'alexnet'");
  has(faults_of("profile: " + k_profile + ", model: resnet101, precision: bf16"), "no model 'resnet101' in bf16");
}

TEST_CASE("a setting that nothing reads is refused") {
  const std::string vgg = "network: vgg-16, batch_per_gpu: 8, ";
  has(faults_of(vgg + "tokens: 128"), "whose samples are images");
  has(faults_of(vgg + "kv_length: 128"), "'kv_length' belongs to `part: layer`");
  has(faults_of(vgg + "sizes: [1 MiB]"), "'sizes' of a training step");
  has(faults_of(vgg + "parallel: {tensor: 2}"), "'tensor: 2' of 'vgg-16'");
  has(faults_of(vgg + "parallel: {fusion: 1 MiB}"), "nothing reads 'fusion' here");
  has(faults_of(vgg + "parallel: {data: horovod, bucket: 1 MiB}"), "nothing reads 'bucket' here");
  has(faults_of(vgg + "parallel: {data: fsdp}"), "need a network given by the dimensions of a transformer");
  has(faults_of("network: gpt-345m, batch_per_gpu: 8, parallel: {interleave: 2}"), "nothing reads 'interleave' here");
  has(faults_of("network: gpt-345m, batch_per_gpu: 8, parallel: {tensor: 2, bucket: 1 MiB}"),
      "`bucket` of a split model");
}

TEST_CASE("a split that does not come out even is refused") {
  const std::string gpt = "network: gpt-345m, batch_per_gpu: 8, gpus: 4, parallel: ";
  has(faults_of(gpt + "{tensor: 3}"), "4 GPUs are no multiple of 3");
  has(faults_of(gpt + "{tensor: 8}"), "4 GPUs are no multiple of 8");
  has(faults_of(gpt + "{expert: 2}"), "0 experts cannot be shared by 2 GPUs");
  has(faults_of(gpt + "{pipeline: 4, interleave: 8, micro_batches: 4}"), "24 layers cannot be split into 32 stages");
  has(faults_of(gpt + "{pipeline: 4, interleave: 2, micro_batches: 6}"), "6 micro-batches are no multiple of 4 stages");
  has(faults_of(gpt + "{data: fsdp, pipeline: 2}"), "`data: fsdp` beside pipeline stages");
  has(faults_of("network: vgg-16, batch_per_gpu: 8, gpus: [2, 64]"), "64 GPUs asked for");
}

TEST_CASE("keys of training belong to training") {
  const auto path = test::write_file("scenario.yaml",
                                     "schema: fabricast/scenario/1\nname: s\ntopology: " + k_topology +
                                         "\nworkload: {benchmark: all_reduce_perf, precision: bf16, gpus: [1, 2]}\n");
  const auto loaded = load_scenario(path, {}, {});
  REQUIRE(!loaded);
  has(test::shown(loaded.error()), "'precision' belongs to the benchmark `training`");
  has(test::shown(loaded.error()), "'gpus' is a list");
}

TEST_CASE("faults of a network file name the layer") {
  const auto fault = [](const std::string& body) {
    test::write_file("net.yaml", "schema: fabricast/network/1\nname: n\nsource: test\n" + body);
    return faults_of("batch_per_gpu: 1, network: net.yaml");
  };
  CHECK(fault("image: [3, 8, 8]\nlayers: [conv 4 k3, linear 10]\n").empty());
  CHECK(
      fault("image: [3, 8, 8]\nlayers: [convolution 4]\n").find("net.yaml:5:10: error: unknown layer 'convolution'") !=
      std::string::npos);
  CHECK(fault("image: [3, 8, 8]\nlayers: [conv 4 q3]\n").find("'q3' is no part of a layer") != std::string::npos);
  CHECK(fault("image: [3, 8, 8]\nlayers: [conv 4 k9]\n").find("the kernel is larger than the image") !=
        std::string::npos);
  CHECK(fault("image: [3, 8, 8]\nlayers: [{residual: [conv 4 k3]}]\n").find("is added to") != std::string::npos);
  CHECK(fault("layers: [conv 4 k3]\n").find("layers without the size of an image") != std::string::npos);
  CHECK(fault("image: [3, 8]\nlayers: [conv 4 k3]\n").find("'image' has 2 numbers") != std::string::npos);
  CHECK(fault("transformer: {form: gpt, layers: 1, hidden: 10, heads: 3, ffn: 4, vocabulary: 1, sequence: 8}\n")
            .find("hidden 10 is no multiple of 3 heads") != std::string::npos);
}
