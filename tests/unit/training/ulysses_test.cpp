// SPDX-License-Identifier: Apache-2.0
// Context parallelism by all-to-alls: what they move and take, and which heads cannot be dealt out.
#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;

namespace {

std::string scenario_of(const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
         "{name: n, count: 2, type: hgx-h100-8}\n  fabric: {single_switch: {switch: qm9700, cable: 3 m}}\nworkload: {" +
         workload + "}\n";
}

/// Four layers of 32 heads, 8 of keys and values, 128 wide, with `heads` to change them.
std::string step_of(const std::string& parallel, const std::string& heads = "heads: 32, kv_heads: 8",
                    const std::string& more = "") {
  test::write_file("shape.yaml",
                   "schema: fabricast/network/1\nname: shape\nsource: test\ntransformer: {form: llama, layers: 4, "
                   "hidden: 4096, head_size: 128, ffn: 8192, vocabulary: 32000, sequence: 8192, " +
                       heads + "}\n");
  return scenario_of("benchmark: training, network: shape.yaml, batch_per_gpu: 1, gpus: 8, parallel: {" + parallel +
                     "}" + more);
}

Row row_of(const std::string& text) { return test::run(test::scenario(text)).workloads[0].rows.front(); }

using test::us;

const std::string k_exchange = "exposed exchange of context parallelism";

}  // namespace

TEST_CASE("a block exchanges queries, keys, values and output by all-to-alls, forward and backward") {
  const auto row = row_of(step_of("context: 8, context_exchange: all_to_all"));
  // 8,192 / 8 tokens x 32 (8) heads x 128 x 2 B: 8 MiB of queries and of output, 2 MiB of keys and of values.
  const auto alone = [](const std::string& size) {
    const auto one = row_of(scenario_of("benchmark: alltoall_perf, gpus: 8, sizes: [" + size + "]"));
    double launching = 0;
    for (const auto& term : one.terms)
      launching += term.name.find("launching thread") != std::string::npos ? term.time.us() : 0;
    return one.time.us() - launching;
  };
  const double floor = 3.8;  // training.kernel_floor behind each
  const double block = 2 * (alone("8 MiB") + floor) + 2 * (alone("2 MiB") + floor);
  CHECK(us(row, k_exchange) == test::approx(4 * 2 * block).epsilon(0.001));
}

TEST_CASE("tensor parallelism leaves fewer heads to exchange, a longer sequence more tokens") {
  const auto half = us(row_of(step_of("context: 4, tensor: 2, context_exchange: all_to_all")), k_exchange);
  const auto whole = us(row_of(step_of("context: 4, context_exchange: all_to_all")), k_exchange);
  CHECK(half < whole);
  const auto longer =
      us(row_of(step_of("context: 4, context_exchange: all_to_all", "heads: 32, kv_heads: 8", ", tokens: 32768")),
         k_exchange);
  CHECK(longer > 2 * whole);
  const auto again = us(row_of(step_of("context: 4, context_exchange: all_to_all, recompute: full")), k_exchange);
  CHECK(again == test::approx(1.5 * whole).epsilon(1e-6));
}

TEST_CASE("the ring is the default and hides behind attention, all-to-alls do not") {
  CHECK(row_of(step_of("context: 4")).time == row_of(step_of("context: 4, context_exchange: ring")).time);
  CHECK(us(row_of(step_of("context: 4")), k_exchange) <
        us(row_of(step_of("context: 4, context_exchange: all_to_all")), k_exchange));
}

TEST_CASE("heads that cannot be dealt out are refused, as is a way that nothing reads") {
  const auto has = [](const std::string& fault, const std::string& part) {
    INFO(fault);
    CHECK(fault.find(part) != std::string::npos);
    CHECK(fault.find("s.yaml:") != std::string::npos);
  };
  has(test::refusal_of(step_of("context: 8, context_exchange: all_to_all", "heads: 4, kv_heads: 4")),
      "4 heads cannot be dealt out to tensor 1 x context 8 GPUs");
  has(test::refusal_of(step_of("context: 4, tensor: 2, context_exchange: all_to_all", "heads: 12, kv_heads: 12")),
      "12 heads cannot be dealt out to tensor 2 x context 4 GPUs");
  has(test::refusal_of(step_of("context: 8, context_exchange: all_to_all", "heads: 32, kv_heads: 4")),
      "4 heads of keys cannot be dealt out");
  has(test::refusal_of(step_of("context_exchange: all_to_all")), "nothing reads 'context_exchange' here");
  CHECK(test::refusal_of(step_of("context: 8, context_exchange: ring", "heads: 4, kv_heads: 4")).empty());
}
