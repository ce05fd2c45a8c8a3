// SPDX-License-Identifier: Apache-2.0
// Kernels that are launched one by one, with and without autocast, and fused ones: against our own H200, and as laws.
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

struct Passes {
  double forward_ms = 0, backward_ms = 0;
};

/// Of one bare H200. `mode`: "autocast", "eager" (weights of 16 bits) or "compiled".
Passes passes_of(const std::string& network, int batch, const std::string& mode,
                 const std::string& precision = "bf16") {
  const auto prediction = test::run(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{{name: "
      "n, type: hgx-h200-8}}]\nworkload: {{benchmark: training, network: {}, batch_per_gpu: {}, gpus: 1, precision: "
      "{}, "
      "parallel: {{data: {}}}{}}}\n",
      network, batch, precision, mode == "eager" ? "fsdp" : "ddp", mode == "compiled" ? ", launch: graph" : "")));
  Passes out;
  for (const auto& term : prediction.workloads[0].rows.front().terms) {
    if (term.name == "forward pass") out.forward_ms = 1e3 * term.time.seconds();
    if (term.name == "backward pass") out.backward_ms = 1e3 * term.time.seconds();
  }
  return out;
}

/// The file of a network of these dimensions, beside the scenario.
std::string transformer(const std::string& dimensions) {
  test::write_file("eager.yaml",
                   "schema: fabricast/network/1\nname: eager\nsource: test\ntransformer: {" + dimensions + "}\n");
  return "eager.yaml";
}

}  // namespace

TEST_CASE("passes launched one by one, under autocast and compiled are forecast as an H200 was measured") {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-eager-kernels/steps.tsv");
  REQUIRE(in);
  int compared = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    std::string network, weights, mode;
    int batch = 0, length = 0;
    double forward_ms = 0, backward_ms = 0;
    if (!(cells >> network >> weights >> mode >> batch >> length >> forward_ms >> backward_ms)) continue;
    const auto name = network == "llama3-8b-8" ? transformer(
                                                     "layers: 8, hidden: 4096, heads: 32, kv_heads: 8, ffn: "
                                                     "14336, vocabulary: 128256, sequence: 8192, form: llama")
                                               : network;
    const auto passes = passes_of(name, batch, weights == "fp32" ? "autocast" : mode);
    CHECK_MESSAGE(passes.forward_ms == test::approx(forward_ms).epsilon(0.06), line);
    CHECK_MESSAGE(passes.backward_ms == test::approx(backward_ms).epsilon(0.08), line);
    ++compared;
  }
  CHECK(compared == 9);
}

TEST_CASE("fused kernels take less than kernels one by one, and those less than autocast in 16 bits") {
  test::Random random(41);
  for (std::uint64_t round = 0; round < test::draws(12); ++round) {
    const std::string form = round % 2 == 0 ? "gpt" : "llama";
    const auto heads = 16 + random.next(17);
    const auto milliseconds = [&](const char* mode, const char* precision, const char* biases) {
      const auto network = transformer(fmt::format(
          "layers: 4, hidden: {}, heads: {}, ffn: {}, vocabulary: 32000, sequence: 2048, form: {}, biases: {}",
          64 * heads, heads, 256 * heads, form, biases));
      const auto passes = passes_of(network, 8, mode, precision);
      return passes.forward_ms + passes.backward_ms;
    };
    CAPTURE(form);
    CAPTURE(heads);
    const double eager = milliseconds("eager", "bf16", "off");
    CHECK(milliseconds("compiled", "bf16", "off") < eager);
    CHECK(milliseconds("autocast", "bf16", "off") > eager);
    CHECK(milliseconds("eager", "bf16", "on") > eager);
    // Nothing is cast in fp32: autocast has nothing to do.
    CHECK(milliseconds("autocast", "fp32", "off") == test::approx(milliseconds("eager", "fp32", "off")).epsilon(0.001));
  }
}
