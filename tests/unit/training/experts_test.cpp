// SPDX-License-Identifier: Apache-2.0
// Mixture-of-experts models: which blocks have experts, what a GPU keeps and computes of them, and who exchanges what.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// A network of its own beside the scenario; `keys` of its transformer.
std::string network(const std::string& keys, int layers = 4) {
  return "schema: fabricast/network/1\nname: experts\nsource: test\ntransformer: {form: llama, layers: " +
         std::to_string(layers) + ", hidden: 2048, heads: 16, ffn: 4096, vocabulary: 32000, sequence: 2048" + keys +
         "}\n";
}

/// Eight H100 per host with an adapter each.
std::string scenario_of(int hosts, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
         "{name: n, count: " +
         std::to_string(hosts) +
         ", type: hgx-h100-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\n"
         "workload: {benchmark: training, batch_per_gpu: 2, " +
         workload + "}\n";
}

Row row_of(const std::string& transformer, const std::string& parallel, int gpus = 16, const std::string& more = "",
           const std::vector<Setting>& settings = {}) {
  test::write_file("experts.yaml", network(transformer));
  const auto text = scenario_of(
      std::max(1, gpus / 8), "network: experts.yaml, gpus: " + std::to_string(gpus) + ", parallel: " + parallel + more);
  CAPTURE(text);
  return test::run(test::scenario(text, settings)).workloads[0].rows.front();
}

double figure(const Row& row, const std::string& key) {
  return std::ranges::find(row.figures, key, &Figure::key)->value;
}

/// Time of all terms whose name has `part`.
double seconds(const Row& row, const std::string& part) {
  double sum = 0;
  for (const auto& term : row.terms) {
    if (term.name.find(part) != std::string::npos) sum += term.time.seconds();
  }
  return sum;
}

std::string fault_of(const std::string& transformer, const std::string& parallel) {
  test::write_file("experts.yaml", network(transformer));
  const auto loaded = load_scenario(
      test::write_file("s.yaml", scenario_of(2, "network: experts.yaml, gpus: 16, parallel: " + parallel)));
  if (!loaded) return test::shown(loaded.error());
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  return run ? "" : test::shown(run.error());
}

const std::string k_experts = ", experts: 8, experts_per_token: 2";
constexpr double k_hidden = 2048, k_ffn = 4096;

}  // namespace

TEST_CASE("each replica exchanges its dense gradients with all, those of experts with the other holders of the same") {
  // 3 h f per expert, 4 h^2 + router + norms of attention; embedding and head 2 V h; exchanged in fp32.
  const double expert = 4 * 8 * 3 * k_hidden * k_ffn;
  const double dense = 4 * (4 * k_hidden * k_hidden + 8 * k_hidden + 2 * k_hidden) + 2 * 32000 * k_hidden + k_hidden;
  const auto whole = row_of(k_experts, "{data: zero1}");
  const auto shared = row_of(k_experts, "{data: zero1, expert: 8}");
  CHECK(static_cast<double>(whole.size.value) == test::approx(4 * (dense + expert)));
  CHECK(static_cast<double>(shared.size.value) == test::approx(4 * (dense + expert / 8)));
  CHECK(seconds(shared, "experts' gradients") > 0);
  // All 16 GPUs hold experts of their own: no replica is left to agree with.
  const auto alone = row_of(", experts: 16, experts_per_token: 2", "{data: zero1, expert: 16}");
  CHECK(seconds(alone, "experts' gradients") == 0);
  CHECK(seconds(alone, "all-gather of experts") == 0);
  CHECK(seconds(alone, "exposed exchange of gradients") > 0);
}

TEST_CASE("however experts are shared, each GPU's optimiser updates its share of them") {
  // 16 experts on 16 GPUs: one each, or a sixteenth of all.
  const std::string experts = ", experts: 16, experts_per_token: 2";
  for (const std::string data : {"zero1", "fsdp"}) {
    const auto sharded = row_of(experts, "{data: " + data + "}");
    for (const auto* shared : {"2", "4", "16"}) {
      const auto own = row_of(experts, "{data: " + data + ", expert: " + shared + "}");
      CHECK(seconds(own, "optimiser") == test::approx(seconds(sharded, "optimiser")).epsilon(1e-6));
    }
  }
}

TEST_CASE("blocks without experts dispatch nothing") {
  const auto all = row_of(k_experts, "{expert: 8}");
  const auto half = row_of(k_experts + ", expert_every: 2", "{expert: 8}");
  const auto last = row_of(k_experts + ", dense_blocks: 3", "{expert: 8}");
  const auto name = "exchange between experts";
  CHECK(seconds(half, name) == test::approx(seconds(all, name) / 2).epsilon(1e-6));
  CHECK(seconds(last, name) == test::approx(seconds(all, name) / 4).epsilon(1e-6));
  CHECK(half.size < all.size);
  CHECK(last.size < half.size);
  // A block without experts is as wide as said.
  CHECK(row_of(k_experts + ", dense_blocks: 3, dense_ffn: 16384", "{expert: 8}").time > last.time);
}

TEST_CASE("a pipeline gives each stage the blocks that it has: the stage with the experts is the slow one") {
  // Terms are the first stage's, which exchanges nothing here and waits for the second.
  const auto equal = row_of(k_experts, "{pipeline: 2, micro_batches: 8, expert: 8}");
  const auto late = row_of(k_experts + ", dense_blocks: 2", "{pipeline: 2, micro_batches: 8, expert: 8}");
  CHECK(seconds(equal, "exchange between experts") > 0);
  CHECK(seconds(late, "exchange between experts") == 0);
  CHECK(figure(late, "bubble_time_ps") > 1.5 * figure(equal, "bubble_time_ps"));
}

TEST_CASE("a busier GPU exchanges and computes more, and no load is less than even") {
  const auto even = row_of(k_experts, "{expert: 8}");
  const auto busy = row_of(k_experts, "{expert: 8, imbalance: 1.5}");
  CHECK(seconds(busy, "exchange between experts") > 1.3 * seconds(even, "exchange between experts"));
  CHECK(figure(busy, "compute_time_ps") > 1.1 * figure(even, "compute_time_ps"));
  CHECK(fault_of(k_experts, "{expert: 8, imbalance: 0.5}").find("imbalance") != std::string::npos);
}

TEST_CASE("a shared expert costs every token its width, and no dispatch") {
  const auto without = row_of(k_experts, "{expert: 8}");
  const auto with = row_of(k_experts + ", shared_ffn: 4096", "{expert: 8}");
  CHECK(figure(with, "compute_time_ps") > figure(without, "compute_time_ps"));
  CHECK(seconds(with, "exchange between experts") == test::approx(seconds(without, "exchange between experts")));
}

TEST_CASE("experts of one host exchange over NVLink, those of two over the network") {
  // Data parallel 16: groups of 8 neighbours lie in one host, one of 16 in two.
  const std::string experts = ", experts: 16, experts_per_token: 2";
  const auto one = row_of(experts, "{expert: 8}");
  const auto two = row_of(experts, "{expert: 16}");
  CHECK(seconds(two, "exchange between experts") > 2 * seconds(one, "exchange between experts"));
}

TEST_CASE("experts that are not split gather no tokens, split ones gather what was dispatched") {
  const std::string tensor = "{data: zero1, tensor: 4, sequence: on, expert: 4";
  const auto split = row_of(k_experts, tensor + "}");
  const auto whole = row_of(k_experts, tensor + ", expert_tensor: 1}");
  const auto name = "exchange of tensor parallelism";
  // Split: k = 2 times the tokens are gathered and scattered around the experts. Whole: attention's exchange alone.
  // Gathers and scatters of whole activations: 1 + k forward, 1.5 + k backward against 1 and 1.5, the start of each
  // apart.
  CHECK(seconds(split, name) / seconds(whole, name) == test::approx(6.5 / 2.5).epsilon(0.15));
  CHECK(seconds(whole, name) > 0);
  CHECK(figure(split, "compute_time_ps") == test::approx(figure(whole, "compute_time_ps")).epsilon(0.1));
  CHECK(fault_of(k_experts, "{tensor: 4, expert_tensor: 1}").find("add `sequence: on`") != std::string::npos);
  CHECK(fault_of(k_experts, "{tensor: 4, sequence: on, expert_tensor: 3}").find("no multiple") != std::string::npos);
}

TEST_CASE("few tokens read the weights of the experts that they meet, no others") {
  // Decoding one token: 2 of 64 experts; 512 sequences meet nearly all.
  const std::string experts = ", experts: 64, experts_per_token: 2";
  const auto layer = [&](int batch) {
    test::write_file("experts.yaml", network(experts));
    const auto text = scenario_of(1, "network: experts.yaml, gpus: 1, part: layer, tokens: 1, kv_length: 1024");
    return figure(
        test::run(test::scenario(text, {{"workload.batch_per_gpu", std::to_string(batch)}})).workloads[0].rows.front(),
        "compute_time_ps");
  };
  const double bytes = 2 * 3 * k_hidden * k_ffn * 2;  // of two experts in bf16
  CHECK(layer(1) * 1e-12 < 4 * bytes / 3.35e12 + 100e-6);
  CHECK(layer(512) * 1e-12 > 0.9 * 32 * bytes / 3.35e12);
}

TEST_CASE("a layer with experts dispatches and combines") {
  const auto one = [&](const std::string& parallel) {
    return row_of(k_experts, parallel, 8, ", part: layer, tokens: 1, kv_length: 1024");
  };
  const auto apart = one("{expert: 8}");
  CHECK(seconds(apart, "dispatch to experts") > 0);
  CHECK(seconds(apart, "combination of experts") > 0);
  CHECK(seconds(one("{tensor: 8}"), "dispatch to experts") == 0);
}

TEST_CASE("FSDP shards experts over the GPUs that hold the same ones") {
  const auto all = row_of(k_experts, "{data: fsdp}");
  const auto shared = row_of(k_experts, "{data: fsdp, expert: 8}");
  CHECK(seconds(shared, "between experts") > 0);
  CHECK(seconds(all, "between experts") == 0);
  CHECK(shared.size < all.size);
}

TEST_CASE("a step names what takes most of it: exchanges inside layers too, and each part by its own parameter") {
  // Over TCP dispatch takes longer than all else.
  const std::string experts = ", experts: 16, experts_per_token: 8";
  const auto row =
      row_of(experts, "{data: zero1, expert: 16, micro_batches: 8}", 16, "", {{"software.transport", "tcp"}});
  CHECK(row.bottleneck == "exposed exchange between experts");
  for (const auto* parallel : {"{data: zero1}", "{data: fsdp}", "{data: ddp}"}) {
    const auto step = row_of("", parallel);
    const auto optimiser = std::ranges::find(step.terms, "optimiser", &Term::name);
    REQUIRE(optimiser != step.terms.end());
    CHECK(optimiser->parameter == "training.optimizer_efficiency");
  }
}

TEST_CASE("experts that exchange beside another micro-batch expose less, all but the first and the last pass") {
  const std::string parallel = "{data: zero1, expert: 16, micro_batches: ";
  const std::string experts = ", experts: 16, experts_per_token: 2";
  const auto name = "exposed exchange between experts";
  const auto off = row_of(experts, parallel + "8}");
  const auto on = row_of(experts, parallel + "8, expert_overlap: on}");
  CHECK(on.time < off.time);
  CHECK(seconds(on, name) < seconds(off, name));
  // One forward and one backward pass have nobody beside them: what two micro-batches expose is no less than one's.
  CHECK(seconds(row_of(experts, parallel + "2, expert_overlap: on}"), name) >=
        seconds(row_of(experts, parallel + "1}"), name));
  CHECK(seconds(on, "compute beside exchanges of experts") > 0);
  CHECK(fault_of(experts, "{expert: 8, expert_overlap: on}").find("nothing reads 'expert_overlap'") !=
        std::string::npos);
  CHECK(
      fault_of(experts, "{expert: 8, pipeline: 2, micro_batches: 4, expert_overlap: on}").find("needs `interleave`") !=
      std::string::npos);
}

TEST_CASE("keys of experts are refused where there are none") {
  CHECK(fault_of("", "{imbalance: 1.5}").find("which has no experts") != std::string::npos);
  CHECK(fault_of("", "{expert_tensor: 1}").find("which has no experts") != std::string::npos);
  CHECK(fault_of(", shared_ffn: 64", "{data: ddp}").find("'shared_ffn' of a network without experts") !=
        std::string::npos);
  CHECK(fault_of(", expert_every: 2", "{data: ddp}").find("'expert_every' of a network") != std::string::npos);
  CHECK(fault_of(k_experts + ", dense_blocks: 4", "{data: ddp}").find("no block has experts") != std::string::npos);
  CHECK(fault_of(k_experts + ", dense_ffn: 64", "{data: ddp}").find("'dense_ffn'") != std::string::npos);
}
