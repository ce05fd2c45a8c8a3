// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention: what it multiplies and keeps, what a cache costs, how heads are split, and the module
// that predicts a further token.
#include <algorithm>
#include <string>

#include "config/network.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;

namespace {

/// Hidden 1,024, 8 heads, per head 64 without and 32 with positions, 48 of values; latents of 256 and 192.
constexpr double k_tokens = 512, k_hidden = 1024, k_heads = 8, k_nope = 64, k_rope = 32, k_values = 48, k_query = 192,
                 k_latent = 256;
const std::string k_latents =
    ", heads: 8, kv_lora_rank: 256, q_lora_rank: 192, qk_nope_head_size: 64, qk_rope_head_size: 32, v_head_size: 48";

std::string network_of(const std::string& keys, const std::string& form = "llama") {
  return "schema: fabricast/network/1\nname: latent\nsource: test\ntransformer: {form: " + form +
         ", layers: 2, hidden: 1024, ffn: 2048, vocabulary: 1, sequence: 512" + keys + "}\n";
}

Network network(const std::string& keys) {
  Diagnostics faults;
  auto found = config::find_network(test::write_file("latent.yaml", network_of(keys)), "", config::Node{}, faults);
  for (const auto& fault : faults) FAIL_CHECK(fault.message);
  REQUIRE(found);
  return *found;
}

const NetworkLayer& layer_of(const Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.layers, name, &NetworkLayer::name);
  REQUIRE(found != network.layers.end());
  return *found;
}

/// One host of eight H200; `network` a shipped name, or the keys of an own one.
std::string scenario_of(const std::string& network, const std::string& workload) {
  const bool is_own = network.starts_with(",");
  if (is_own) test::write_file("latent.yaml", network_of(network));
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
         "{name: n, count: 1, type: hgx-h200-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\nworkload: "
         "{benchmark: training, network: " +
         (is_own ? std::string("latent.yaml") : network) + ", " + workload + "}\n";
}

Row row_of(const std::string& network, const std::string& workload) {
  return test::run(test::scenario(scenario_of(network, workload))).workloads[0].rows.front();
}

double us(const Row& row, const std::string& part) {
  double sum = 0;
  for (const auto& term : row.terms) sum += term.name.find(part) != std::string::npos ? term.time.us() : 0;
  return sum;
}

/// A collective of eight GPUs, of so many elements of bf16 per token, with the floor of the kernel behind it.
double alone_us(const std::string& operation, int tokens, int elements) {
  const auto one = test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: "
                                            "fabricast/topology/1\n  name: t\n  hosts:\n    - {name: n, count: 1, "
                                            "type: hgx-h200-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 "
                                            "m}}\nworkload: {benchmark: " +
                                            operation + "_perf, gpus: 8, sizes: [" +
                                            std::to_string(tokens * 2 * elements) + " B]}\n"))
                       .workloads[0]
                       .rows.front();
  double launching = 0;
  for (const auto& term : one.terms)
    launching += term.name.find("launching thread") != std::string::npos ? term.time.us() : 0;
  return one.time.us() - launching + 3.8;  // training.kernel_floor
}

/// Compute of one layer that decodes, per GPU.
double decode_us(const std::string& network, int cached, int gpus = 1, int tokens = 1, int batch = 64) {
  const auto row =
      row_of(network, "batch_per_gpu: " + std::to_string(batch) + ", part: layer, tokens: " + std::to_string(tokens) +
                          ", kv_length: " + std::to_string(cached) + ", gpus: " + std::to_string(gpus) +
                          ", parallel: {tensor: " + std::to_string(gpus) + "}");
  return us(row, "forward pass");
}

constexpr double k_bandwidth_MBps = 4.8e6 * 0.83;  // H200, training.memory_efficiency

}  // namespace

TEST_CASE("latent attention multiplies by its projections, twice as much backward, and keeps the weights of each") {
  const auto found = network(k_latents);
  const double query = k_nope + k_rope;
  const std::pair<const char*, double> weights[] = {{"q down", k_hidden * k_query},
                                                    {"q up", k_query * k_heads * query},
                                                    {"kv down", k_hidden * (k_latent + k_rope)},
                                                    {"kv up", k_latent * k_heads * (k_nope + k_values)},
                                                    {"o", k_heads * k_values * k_hidden}};
  for (const auto& one : weights) {
    CAPTURE(one.first);
    const auto& layer = layer_of(found, one.first);
    REQUIRE(layer.tensors.size() == 1);
    CHECK(static_cast<double>(layer.tensors.front()) == one.second);
    CHECK(layer.forward_flop == 2 * k_tokens * one.second);
    CHECK(layer.backward_flop == 2 * layer.forward_flop);
  }
  CHECK(layer_of(found, "q norm").tensors == std::vector<std::int64_t>{192});
  CHECK(layer_of(found, "kv norm").tensors == std::vector<std::int64_t>{256});
  const auto& attention = layer_of(found, "attention");
  CHECK(attention.forward_flop == k_tokens * k_tokens * k_heads * (query + k_values));  // causal: half
  CHECK(attention.backward_flop == 2.5 * attention.forward_flop);
  CHECK(attention.forward_moved == 2 * k_tokens * k_heads * (query + k_values));
  // Without a latent of queries they come from the hidden vector.
  const auto plain =
      network(", heads: 8, kv_lora_rank: 256, qk_nope_head_size: 64, qk_rope_head_size: 32, v_head_size: 48");
  CHECK(layer_of(plain, "q").tensors == std::vector<std::int64_t>{1024 * 8 * 96});
  CHECK(std::ranges::find(plain.layers, "q norm", &NetworkLayer::name) == plain.layers.end());
}

TEST_CASE("a decode step reads the latent of each cached token once, whatever the heads and however they are split") {
  // DeepSeek-V2-Lite: 512 + 64 elements of bf16; 64 sequences.
  const auto name = "deepseek-v2-lite";
  const double longer = 64.0 * 16384 * 2 * 576 / k_bandwidth_MBps;
  CHECK(decode_us(name, 32768) - decode_us(name, 16384) == test::approx(longer).epsilon(1e-3));
  CHECK(decode_us(name, 32768, 8) - decode_us(name, 16384, 8) == test::approx(longer).epsilon(1e-3));
  // The same heads without a latent: 16 x (192 + 128) elements; as keys and values of 160.
  const std::string own = ", heads: 16, head_size: 160";
  const std::string latent =
      ", heads: 16, kv_lora_rank: 512, qk_nope_head_size: 128, qk_rope_head_size: 64, v_head_size: 128";
  const double with = decode_us(latent, 32768) - decode_us(latent, 16384);
  const double without = decode_us(own, 32768) - decode_us(own, 16384);
  CHECK(with == test::approx(longer).epsilon(1e-3));
  CHECK(without / with == test::approx(16.0 * 320 / 576).epsilon(1e-3));
}

TEST_CASE("128 heads over one latent are bound by arithmetic: decoding grows by their scores and contexts") {
  // 2 x 128 x (2 x 512 + 64) per cached token and sequence at 0.56 of 989.4 TFLOP/s; 242 FLOP per byte of the cache.
  const double longer = 64.0 * 16384 * 2 * 128 * 1088 / (989.4e6 * 0.56);
  CHECK(decode_us("deepseek-v3", 32768) - decode_us("deepseek-v3", 16384) == test::approx(longer).epsilon(5e-3));
}

TEST_CASE("one token multiplies into the latent, a long chunk projects the cache up again, and more is never faster") {
  const auto name = "deepseek-v3";
  double before = 0;
  for (const int tokens : {1, 2, 8, 64, 128, 170, 171, 256, 1024}) {
    CAPTURE(tokens);
    const double now = decode_us(name, 8192, 1, tokens, 4);
    CHECK(now >= before);
    before = now;
  }
  // Absorbed, 1,024 tokens would multiply 2 x 1024 x 8192 x 128 x 1088 for each sequence's scores and contexts.
  CHECK(before < 4 * 2.0 * 1024 * 8192 * 128 * 1088 / (989.4e6 * 0.56));
}

TEST_CASE("more heads are never faster: in a step, a prefill and decoding") {
  for (const auto* work : {"batch_per_gpu: 4, gpus: 1", "batch_per_gpu: 4, gpus: 1, part: layer",
                           "batch_per_gpu: 32, gpus: 1, part: layer, tokens: 1, kv_length: 4096",
                           "batch_per_gpu: 4, gpus: 8, parallel: {tensor: 4, sequence: on}"}) {
    CAPTURE(work);
    Duration before;
    for (const auto* heads : {"4", "8", "16", "32", "64", "128"}) {
      const auto row = row_of(", heads: " + std::string(heads) +
                                  ", kv_lora_rank: 256, q_lora_rank: 192, qk_nope_head_size: 64, qk_rope_head_size: "
                                  "32, v_head_size: 48",
                              work);
      CHECK(row.time >= before);
      before = row.time;
    }
  }
}

TEST_CASE("tensor parallelism splits heads, and the projections down to the latents are in every GPU") {
  // Gradients of a GPU in fp32: t of them have all weights, and t times the replicated ones.
  const auto bytes = [](int tensor) {
    return static_cast<double>(
        row_of(k_latents, "batch_per_gpu: 1, gpus: 8, parallel: {data: zero1, tensor: " + std::to_string(tensor) + "}")
            .size.value);
  };
  const double whole = 4 * 2 * k_hidden * (k_query + k_latent + k_rope);
  CHECK(bytes(1) == test::approx(4.0 * static_cast<double>(network(k_latents).parameters())).epsilon(1e-6));
  for (const int t : {2, 4, 8}) CHECK(t * bytes(t) - bytes(1) == test::approx((t - 1) * whole).epsilon(1e-6));
  const auto refusal = test::refusal_of(scenario_of(k_latents, "batch_per_gpu: 1, gpus: 6, parallel: {tensor: 3}"));
  CHECK(refusal.find("8 heads cannot be split over 3 GPUs") != std::string::npos);
}

TEST_CASE(
    "a GPU of a tensor group computes whole latents, of its own tokens with `sequence`, and updates all their "
    "weights") {
  // 32,768 tokens through 1,024 more elements of the queries' latent: 2 h of them down and whole, 2 a (n + r) / 8 up,
  // at 0.8 of 989.4 TFLOP/s; their norm reads and writes 2 bytes each.
  const auto compute = [](const std::string& rank, const std::string& work) {
    return us(row_of(", heads: 8, kv_lora_rank: 256, qk_nope_head_size: 64, qk_rope_head_size: 32, v_head_size: 48, "
                     "q_lora_rank: " +
                         rank,
                     "gpus: 8, batch_per_gpu: " + work),
              "forward pass");
  };
  const auto more = [](double shared_by) {
    return 32768.0 * 1024 *
           ((2 * k_hidden / shared_by + 2 * k_heads * (k_nope + k_rope) / 8) / (989.4e6 * 0.8) +
            4 / shared_by / k_bandwidth_MBps);
  };
  for (const auto& [work, shared_by] : {std::pair{"64, part: layer, parallel: {tensor: 8}", 1.0},
                                        std::pair{"64, parallel: {data: zero1, tensor: 8, sequence: on}", 8.0}}) {
    const std::string asked = work;
    CAPTURE(asked);
    const double blocks = shared_by > 1 ? 2 : 1;
    CHECK(compute("3072", work) - compute("2048", work) == test::approx(blocks * more(shared_by)).epsilon(1e-3));
  }
  // A token each: of 1,024 more all weights down and an eighth of those up are read in both blocks; vectors are a
  // 100th.
  const auto one = "1, tokens: 8, parallel: {data: zero1, tensor: 8, sequence: on}";
  CHECK(compute("3072", one) - compute("2048", one) ==
        test::approx(2 * 2 * 1024 * (k_hidden + k_nope + k_rope) / k_bandwidth_MBps).epsilon(0.015));
  // Two blocks: two norms of h and those of the latents; 32 bytes per parameter at 0.77 of the bandwidth, 0.5 us per
  // tensor of blocks.
  const auto found = network(k_latents);
  const double whole = 2 * (k_hidden * (k_query + k_latent + k_rope) + 2 * k_hidden + k_query + k_latent);
  const double own = (static_cast<double>(found.parameters()) - whole) / 8 + whole;
  const auto row = row_of(k_latents, "batch_per_gpu: 1, gpus: 8, parallel: {data: zero1, tensor: 8}");
  CHECK(us(row, "optimiser") ==
        test::approx(own * 32 / (4.8e6 * 0.77) + (found.num_tensors() - 1) * 0.5).epsilon(1e-3));
}

TEST_CASE("a tensor group gathers latents before attention, not hidden vectors") {
  const auto alone = [](const std::string& operation, int elements) { return alone_us(operation, 4096, elements); };
  const auto exchange = [](const std::string& more) {
    return us(row_of(k_latents, "batch_per_gpu: 8, gpus: 8, parallel: {tensor: 8" + more + "}"),
              "exchange of tensor parallelism");
  };
  const auto gather = [&](int elements) { return alone("all_gather", elements); };
  const auto scatter = [&](int elements) { return alone("reduce_scatter", elements); };
  const auto reduce = [&](int elements) { return alone("all_reduce", elements); };
  const double forward = gather(192) + gather(288) + scatter(1024);
  const double backward = gather(1024) + gather(192) + gather(288) + scatter(192) + scatter(288);
  const double feed_forward = 3 * gather(1024) + 2 * scatter(1024);
  CHECK(exchange(", sequence: on") == test::approx(2 * (forward + backward + feed_forward)).epsilon(0.001));
  CHECK(exchange("") == test::approx(2 * (3 * reduce(1024) + reduce(192) + reduce(288))).epsilon(0.001));
}

TEST_CASE("context parallelism exchanges expanded heads: queries and keys of one width, values and output of another") {
  const auto exchange = [](const std::string& keys, const std::string& way) {
    return us(row_of(keys, "batch_per_gpu: 8, gpus: 8, parallel: {context: 8, context_exchange: " + way + "}"),
              "exchange of context parallelism");
  };
  const auto heads = [](int size) { return alone_us("alltoall", 4096 / 8, 8 * size); };
  CHECK(exchange(k_latents, "all_to_all") == test::approx(2 * 2 * 2 * (heads(96) + heads(48))).epsilon(0.001));
  // The ring passes keys and values: wider values take longer.
  const std::string wide =
      ", heads: 8, kv_lora_rank: 256, q_lora_rank: 192, qk_nope_head_size: 64, qk_rope_head_size: 32, v_head_size: 480";
  CHECK(exchange(k_latents, "ring") > 0);
  CHECK(exchange(wide, "ring") > exchange(k_latents, "ring"));
}

TEST_CASE("selective recomputation makes queries, keys and values again, at the price of their projections") {
  const auto compute = [](const std::string& recompute) {
    const auto row =
        row_of(k_latents, "batch_per_gpu: 8, gpus: 1, parallel: {data: zero1, recompute: " + recompute + "}");
    return us(row, "backward");
  };
  CHECK(compute("none") < compute("selective"));
  CHECK(compute("selective") < compute("full"));
  // Two products per block: at least their floors, at most all of the forward pass.
  CHECK(compute("selective") - compute("none") >= 2 * 2 * 3.8 * (1 - 1e-6));
}

TEST_CASE("a module that predicts a second token is a block of its own, a projection and the head once more") {
  Diagnostics faults;
  const auto v3 = config::find_network("deepseek-v3", "", config::Node{}, faults);
  const auto trained = config::find_network("deepseek-v3-mtp", "", config::Node{}, faults);
  REQUIRE(v3);
  REQUIRE(trained);
  // 11.5 billion of its own are published, embedding and head shared.
  CHECK(static_cast<double>(trained->parameters() - v3->parameters()) == test::approx(11.5e9).epsilon(0.01));
  // One block of the 58 with experts, 2 h^2, the head; and four norms.
  const double block = v3->activated_parameters() - 129280.0 * 7168;
  CHECK(trained->activated_parameters() - v3->activated_parameters() ==
        test::approx(block / 61 + 2 * 7168.0 * 7168 + 129280.0 * 7168).epsilon(0.02));
  CHECK(trained->transformer->layers == 62);
  // Every seed of a pipeline of two stages: the second has the module.
  const std::string experts = k_latents + ", experts: 8, experts_per_token: 2";
  const auto step = "batch_per_gpu: 2, gpus: 8, parallel: {pipeline: 2, expert: 4, micro_batches: 4}";
  const auto without = row_of(experts, step);
  const auto with = row_of(experts + ", mtp_modules: 1", step);
  CHECK(with.time > without.time);
  CHECK(with.size > without.size);
}

TEST_CASE("keys of latent attention that do not fit together are refused") {
  const auto has = [](const std::string& keys, const std::string& part, const std::string& form = "llama") {
    test::write_file("latent.yaml", network_of(keys, form));
    const auto loaded = load_scenario(
        test::write_file("s.yaml",
                         "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n "
                         " name: t\n  hosts:\n    - {name: n, count: 1, type: hgx-h200-8}\n  fabric: "
                         "{single_switch: {switch: qm9700, cable: 3 m}}\nworkload: {benchmark: training, "
                         "network: latent.yaml, batch_per_gpu: 1}\n"));
    const auto text = loaded ? std::string() : test::shown(loaded.error());
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find("latent.yaml:4:") != std::string::npos);
  };
  has(", heads: 8, kv_lora_rank: 256", "'kv_lora_rank' without 'qk_nope_head_size'");
  has(", heads: 8, kv_lora_rank: 256, qk_nope_head_size: 64, qk_rope_head_size: 32",
      "'kv_lora_rank' without 'v_head_size'");
  has(", heads: 8, q_lora_rank: 192", "'q_lora_rank' without 'kv_lora_rank'");
  has(", heads: 8, v_head_size: 48", "'v_head_size' without 'kv_lora_rank'");
  has(k_latents + ", kv_heads: 2", "'kv_heads' beside 'kv_lora_rank'");
  has(k_latents + ", head_size: 128", "'head_size' beside 'kv_lora_rank'");
  has(k_latents + ", shared_kv: on", "'shared_kv' beside 'kv_lora_rank'");
  has(k_latents + ", qk_norm: on", "'qk_norm' beside 'kv_lora_rank'");
  has(k_latents + ", mtp_modules: 1", "'mtp_modules' of a network that predicts no next token", "bert");
}
