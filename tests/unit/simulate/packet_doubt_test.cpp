// SPDX-License-Identifier: Apache-2.0
// When `--fidelity auto` doubts the fluid engine: flows of all workloads that are active at one time count.
#include <algorithm>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

constexpr const char* k_cluster =
    "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: n, "
    "count: 8, type: server-1v100-cx4-100g}]\n  fabric: {single_switch: {switch: sn2700, lossless: {pfc: [3]}}}\n";

bool is_in_doubt(const std::string& workloads) {
  SimulateOptions options;
  options.fidelity = Fidelity::automatic;
  const auto prediction = test::run(test::scenario(k_cluster + workloads), options);
  return std::ranges::none_of(prediction.workloads[0].assumptions,
                              [](const auto& one) { return one.starts_with("no link is oversubscribed"); });
}

/// One flow to n0 in each of `senders` workloads, each `later` us after the one before.
std::string apart(int senders, int later) {
  std::string out = "workloads:\n";
  for (int s = 1; s <= senders; ++s)
    out += "  - {name: w" + std::to_string(s) +
           ", benchmark: traffic, sizes: [16 MB], start: " + std::to_string((s - 1) * later) + " us, flows: [{from: n" +
           std::to_string(s) + ", to: n0}]}\n";
  return out;
}

/// The same as flows of one workload.
std::string together(int senders, int later) {
  std::string out = "workload: {benchmark: traffic, sizes: [16 MB], flows: [";
  for (int s = 1; s <= senders; ++s)
    out += "{from: n" + std::to_string(s) + ", to: n0, start: " + std::to_string((s - 1) * later) + " us}, ";
  return out + "]}\n";
}

}  // namespace

TEST_CASE("flows that meet are doubted whether one workload or several have them, and only while they meet") {
  // 16 MB take 1.3 ms alone.
  for (int senders = 1; senders <= 4; ++senders) {
    for (const int later : {0, 100, 1000, 1400, 100'000}) {
      CAPTURE(senders);
      CAPTURE(later);
      const bool meet = senders > 1 && later < 1400;
      CHECK(is_in_doubt(together(senders, later)) == meet);
      CHECK(is_in_doubt(apart(senders, later)) == meet);
    }
  }
}

TEST_CASE("jobs that take turns on a GPU are never on its links together, so that nothing is doubted of both") {
  const auto both = [](const std::string& workload) {
    const auto one = [&](const std::string& other) {
      return "  - {" + workload + ", sizes: [64 MiB], devices: [n0.gpu0, " + other + ".gpu0]}\n";
    };
    return "workloads:\n" + one("n1") + one("n2");
  };
  CHECK(is_in_doubt(both("benchmark: all_reduce_perf")));
  CHECK_FALSE(is_in_doubt(both("benchmark: gpu_step, compute: 1 ms")));
}
