// SPDX-License-Identifier: Apache-2.0
// Fewer heads of keys than GPUs that share them: every GPU has one, with its projections and its cache.
#include "training/key_heads.hpp"

#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using models::training::held_key_heads;
using models::training::with_key_head_copies;

namespace {

Network network_of(const std::string& name) {
  const auto all = load_shipped_networks();
  REQUIRE(all.has_value());
  return *std::ranges::find(*all, name, &Network::name);
}

double elements(const Network& network, const std::string& layer) {
  double sum = 0;
  for (const auto& one : network.layers) {
    if (one.name != layer) continue;
    for (const auto tensor : one.tensors) sum += static_cast<double>(tensor);
  }
  return sum;
}

std::string cluster_of(int gpus) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: "
         "n, count: " +
         std::to_string((gpus + 7) / 8) +
         ", type: hgx-h200-8}]\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\n";
}

double compute_us(const std::string& workload, int gpus) {
  const auto loaded = test::with_memory(test::scenario(
      cluster_of(gpus) + "workload: {benchmark: training, gpus: " + std::to_string(gpus) + ", " + workload + "}\n"));
  const auto row = test::run(loaded).workloads[0].rows.front();
  return std::ranges::find(row.figures, std::string("compute_time_ps"), &Figure::key)->value * 1e-6;
}

}  // namespace

TEST_CASE("a GPU has at least one head of keys, and no head is cut") {
  for (const std::int64_t heads : {1, 2, 4, 8, 12, 64}) {
    for (const int tensor : {1, 2, 3, 4, 8, 16, 64}) {
      const auto held = held_key_heads(heads, tensor);
      CHECK(held % tensor == 0);
      CHECK(held / tensor >= 1);
      CHECK(held >= heads);
      CHECK(held - heads < tensor);
    }
  }
}

TEST_CASE("copies of key heads change what belongs to key heads, and nothing where every head has one place") {
  for (const auto* name : {"llama3-70b", "llama3-405b", "qwen3-235b-a22b", "llama3-8b"}) {
    const auto network = network_of(name);
    for (const int tensor : {1, 2, 4, 8, 16, 32}) {
      CAPTURE(tensor);
      const auto held = with_key_head_copies(network, tensor);
      const auto heads = static_cast<double>(network.transformer->kv_heads);
      const double copies = static_cast<double>(held.transformer->kv_heads) / heads;
      CHECK(copies == std::max(1.0, tensor / heads));
      for (const auto* layer : {"k", "v"})
        CHECK(elements(held, layer) == test::approx(copies * elements(network, layer)).epsilon(1e-12));
      for (const auto* layer : {"q", "o", "up", "down", "word embedding", "head"})
        CHECK(elements(held, layer) == elements(network, layer));
      double flop = 0;
      for (const auto& layer : network.layers)
        flop += layer.name == "k" || layer.name == "v" ? (copies - 1) * layer.forward_flop : 0;
      CHECK(held.forward_flop() == test::approx(network.forward_flop() + flop).epsilon(1e-12));
    }
  }
  const auto latent = network_of("deepseek-v3");
  CHECK(with_key_head_copies(latent, 64).parameters() == latent.parameters());
}

TEST_CASE("a GPU that decodes reads the cache of at least one head of keys") {
  // Of 64 sequences: 131,072 tokens x 128 elements of 2 B, keys and values, at 4.8 TB/s.
  const std::string decode = "part: layer, tokens: 1, kv_length: 131072, batch_per_gpu: 64, launch: graph, network: ";
  const double one_head = 64.0 * 131072 * 128 * 2 * 2 / 4.8e12 * 1e6;
  struct Model {
    std::string name;
    int heads;
  };
  for (const auto& model : {Model{"qwen3-235b-a22b", 4}, Model{"llama3-70b", 8}, Model{"llama3-405b", 8}}) {
    double before = 1e18;
    for (const int tensor : {1, 2, 4, 8, 16}) {
      CAPTURE(model.name);
      CAPTURE(tensor);
      const double time =
          compute_us(decode + model.name + ", parallel: {tensor: " + std::to_string(tensor) + "}", tensor);
      CHECK(time > one_head * std::max(1.0, static_cast<double>(model.heads) / tensor));
      CHECK(time < before);
      // Beyond one head each nothing of the cache is saved.
      if (tensor > model.heads) CHECK(before - time < one_head / 2);
      before = time;
    }
  }
}
