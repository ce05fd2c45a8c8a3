// SPDX-License-Identifier: Apache-2.0
// What a user gets who names hosts and nothing else: the algorithm and protocol of every size, as the tables of NCCL's
// default release give them. The sizes were computed apart from the program.
#include <string>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

Prediction all_reduce(const std::string& type, const char* switch_type, int hosts) {
  return test::run(test::scenario(
      "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
      "[{name: "
      "node, count: " +
      std::to_string(hosts) + ", type: " + type + "}]\n" +
      (hosts > 1 ? std::string("  fabric: {fat_tree: {switch: ") + switch_type + ", tiers: 2, oversubscription: 1}}\n"
                 : std::string()) +
      "workload: {benchmark: all_reduce_perf, sizes: {from: 1 KiB, to: 8 GiB}}\n"));
}

struct Change {
  Bytes from;  ///< first size of the choice
  std::string choice;
};

}  // namespace

TEST_CASE("by default H100 and A100 hosts get the algorithms and protocols of NCCL's tables at every size") {
  struct Cluster {
    std::string type;
    const char* switch_type;
    int hosts;
    std::vector<Change> changes;
  };
  for (const auto& cluster : std::vector<Cluster>{
           {"hgx-h100-8", "qm9700", 1, {{1_KiB, "ring ll"}, {2_MiB, "nvls simple"}}},
           {"hgx-h100-8", "qm9700", 2, {{1_KiB, "tree ll"}, {256_KiB, "tree ll128"}, {4_MiB, "nvls_tree simple"}}},
           {"hgx-h100-8", "qm9700", 16, {{1_KiB, "tree ll"}, {256_KiB, "tree ll128"}, {32_MiB, "nvls_tree simple"}}},
           {"dgx-a100",
            "qm8700",
            2,
            {{1_KiB, "tree ll"}, {256_KiB, "tree ll128"}, {16_MiB, "ring ll128"}, {128_MiB, "ring simple"}}},
           {"dgx-a100",
            "qm8700",
            16,
            {{1_KiB, "tree ll"}, {256_KiB, "tree ll128"}, {256_MiB, "ring ll128"}, {1_GiB, "ring simple"}}}}) {
    CAPTURE(cluster.type);
    CAPTURE(cluster.hosts);
    std::vector<Change> found;
    const auto prediction = all_reduce(cluster.type, cluster.switch_type, cluster.hosts);
    for (const auto& row : prediction.workloads[0].rows) {
      const auto choice = row.algorithm + " " + row.protocol;
      if (found.empty() || found.back().choice != choice) found.push_back({row.size, choice});
    }
    REQUIRE(found.size() == cluster.changes.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].choice == cluster.changes[i].choice);
      CHECK(found[i].from.value == cluster.changes[i].from.value);
    }
  }
}

TEST_CASE("by default large all-reduces of A100 and H100 hosts come near what their adapters and NVSwitches carry") {
  struct Cluster {
    std::string type;
    const char* switch_type;
    int hosts;
    Bytes size;
    double least, most;  // GB/s of bus bandwidth
  };
  // Eight HDR adapters carry 200 GB/s, an NVSwitch port of H100 376 GB/s, of which g + 1 parts of g are payload.
  for (const auto& cluster : std::vector<Cluster>{{"dgx-a100", "qm8700", 2, 8_GiB, 170, 200},
                                                  {"dgx-a100", "qm8700", 16, 512_MiB, 140, 200},
                                                  {"dgx-a100", "qm8700", 16, 8_GiB, 170, 200},
                                                  {"hgx-h100-8", "qm9700", 1, 8_GiB, 430, 586},
                                                  {"hgx-h100-8", "qm9700", 2, 8_GiB, 430, 627},
                                                  {"hgx-h100-8", "qm9700", 16, 8_GiB, 340, 400}}) {
    CAPTURE(cluster.type);
    CAPTURE(cluster.hosts);
    const auto prediction = all_reduce(cluster.type, cluster.switch_type, cluster.hosts);
    const auto busbw = test::row_at(prediction, cluster.size).busbw.bytes_per_s * 1e-9;
    CHECK(busbw > cluster.least);
    CHECK(busbw < cluster.most);
  }
}
