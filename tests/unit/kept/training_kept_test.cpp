// SPDX-License-Identifier: Apache-2.0
// Training steps over networks, ways to split them and settings: figures, what was chosen, what is assumed.
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

TEST_CASE("training steps take what they took, and say what they said") {
  const std::string cluster =
      "hosts: [{name: n, count: 4, type: dgx-a100}]\nfabric: {rail_optimized: {switch: qm8700, rails: 8}}\n";
  std::string out;
  for (const auto* network : {"vgg-16", "resnet-50", "bert-large", "llama3-8b", "mixtral-8x7b", "deepseek-v2-lite"}) {
    for (const auto* parallel :
         {"{data: ddp}", "{data: ddp, bucket: 4 MiB, exchange: bf16}", "{data: horovod}",
          "{data: horovod, cycle: 5 ms}", "{data: horovod, hierarchical: on}", "{data: horovod, torus: on}",
          "{data: fsdp}", "{data: zero1}", "{tensor: 2}", "{tensor: 8, sequence: on}",
          "{pipeline: 4, micro_batches: 8}", "{pipeline: 4, micro_batches: 8, interleave: 2}", "{context: 2}",
          "{context: 2, context_exchange: all_to_all}", "{tensor: 2, pipeline: 2, context: 2}", "{expert: 8}",
          "{expert: 4, tensor: 2, sequence: on}", "{expert: 8, imbalance: 1.3, recompute: full}"}) {
      for (const auto* more : {"", ", slow: {n1.gpu3: 0.8}", ", jitter: 0.03"}) {
        const auto path = test::write_file("topology.yaml", "schema: fabricast/topology/1\nname: kept\n" + cluster);
        const auto loaded = load_scenario_text(
            "s.yaml",
            fmt::format("schema: fabricast/scenario/1\nname: kept\ntopology: \"{}\"\nworkload: {{benchmark: training, "
                        "network: {}, precision: bf16, batch_per_gpu: 8, gpus: [8, 32], parallel: {}{}}}\n",
                        path, network, parallel, more),
            {}, {});
        out += fmt::format("{} {}{}\n", network, parallel, more);
        if (!loaded) {
          out += "  " + loaded.error().front().message + "\n";
          continue;
        }
        const auto whole = test::with_memory(*loaded);
        const auto forecast = simulate(whole.topology, whole.scenario, whole.parameters);
        if (!forecast) {
          out += "  " + forecast.error().front().message + "\n";
          continue;
        }
        const auto& one = forecast->workloads.front();
        for (const auto& row : one.rows) {
          out += " " + test::row_text(row);
          for (const auto& figure : row.figures) out += fmt::format(" {} {:.6g}", figure.key, figure.value);
          out += "; " + row.bottleneck + "\n";
        }
        if (*more != '\0') continue;
        for (const auto& setting : one.settings)
          out += fmt::format("  setting {}: {} -> {} ({})\n", setting.setting, setting.given, setting.used,
                             setting.reason);
        for (const auto& assumption : one.assumptions) out += "  assumed: " + assumption + "\n";
      }
    }
  }
  test::check_kept("training", out);
}
