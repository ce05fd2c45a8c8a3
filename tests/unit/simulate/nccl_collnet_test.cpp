// SPDX-License-Identifier: Apache-2.0
// CollNet: the switches of the fabric reduce (SHARP). Where there is any, what it loads, where it is refused.
#include <algorithm>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;

namespace {

struct Cluster {
  std::string host = "dgx-a100";
  int hosts = 4;
  std::string fabric = "rail_optimized: {switch: qm8700}";
  std::string nccl = "collnet: on";
  std::string workload;
  std::string software;
};

std::string text_of(const Cluster& cluster) {
  return "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
         "  hosts: [{name: node, count: " +
         std::to_string(cluster.hosts) + ", type: " + cluster.host + "}]\n" +
         (cluster.fabric.empty() ? "" : "  fabric: {" + cluster.fabric + "}\n") + "software: {nccl: {" + cluster.nccl +
         "}" + cluster.software +
         "}\nworkload: {benchmark: all_reduce_perf, sizes: [64 KiB, 1 MiB, 64 MiB, 1 GiB, 8 GiB]" + cluster.workload +
         "}\n";
}

Prediction run(const Cluster& cluster) { return test::run(test::scenario(text_of(cluster))); }

double seconds(const Cluster& cluster, Bytes size) { return row_at(run(cluster), size).time.seconds(); }

std::string refusal(const Cluster& cluster) {
  const auto loaded = test::scenario(text_of(cluster));
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
  return prediction ? std::string() : test::shown(prediction.error());
}

}  // namespace

TEST_CASE("NCCL's CollNet is off by default, A100 take CollNetDirect, Hopper keeps NVLS over it") {
  CHECK(row_at(run({.nccl = ""}), 1_GiB).algorithm == "ring");
  CHECK(row_at(run({}), 1_GiB).algorithm == "collnet_direct");
  const std::string ndr = "leaf_spine: {switch: qm9700}";
  CHECK(row_at(run({.host = "hgx-h100-8", .fabric = ndr, .nccl = ""}), 1_GiB).algorithm == "nvls_tree");
  CHECK(row_at(run({.host = "hgx-h100-8", .fabric = ndr}), 1_GiB).algorithm == "nvls");
  CHECK(row_at(run({.host = "hgx-h100-8", .fabric = ndr, .workload = ", algorithm: nvls_tree"}), 1_GiB).algorithm ==
        "nvls_tree");
}

TEST_CASE("a reduction in the fabric takes as long with many hosts as with two, and no longer than rings or trees") {
  for (const auto& [host, fabric] : {std::pair{"dgx-a100", "rail_optimized: {switch: qm8700}"},
                                     std::pair{"hgx-h100-8", "leaf_spine: {switch: qm9700}"}}) {
    const std::string type = host;
    const auto two = run({.host = host, .hosts = 2, .fabric = fabric, .workload = ", gpus: 16"});
    for (const int hosts : {4, 8, 16}) {
      const auto many = run({.host = host, .hosts = hosts, .fabric = fabric});
      const auto without = run({.host = host, .hosts = hosts, .fabric = fabric, .nccl = ""});
      for (const auto size : {64_MiB, 1_GiB, 8_GiB}) {
        CAPTURE(type);
        CAPTURE(hosts);
        CAPTURE(size.value);
        // Switches on the way are all that grows.
        CHECK(row_at(many, size).time.seconds() == test::approx(row_at(two, size).time.seconds()).epsilon(0.01));
        CHECK(row_at(many, size).time < row_at(without, size).time);
        CHECK(row_at(many, size).time >= row_at(many, size).physical_bound);
      }
    }
  }
}

TEST_CASE("every adapter sends its share once: where adapters bind, half of what a ring sends") {
  const std::string slow = "rail_optimized: {switch: qm8700, rate: 50 Gb/s}";
  for (const auto* host : {"dgx-a100", "hgx-h100-8"}) {
    const Cluster reducing{.host = host, .hosts = 8, .fabric = slow};
    const Cluster ring{
        .host = host, .hosts = 8, .fabric = slow, .nccl = "", .workload = ", algorithm: ring, protocol: simple"};
    const double n = 64;
    const double share = static_cast<double>((8_GiB).value) / 8;
    CHECK(seconds(ring, 8_GiB) / seconds(reducing, 8_GiB) == test::approx(2 * (n - 1) / n).epsilon(0.05));
    // An eighth of the buffer goes through each of eight adapters.
    CHECK(seconds(reducing, 8_GiB) >= share / 6.25e9);
    CHECK(seconds(reducing, 8_GiB) < 1.1 * share / 6.25e9);
  }
}

TEST_CASE("of what hosts below one leaf send, one stream goes up: an oversubscribed spine costs nothing") {
  const Cluster full{.hosts = 10, .fabric = "leaf_spine: {switch: qm8700}"};
  const Cluster narrow{.hosts = 10, .fabric = "leaf_spine: {switch: qm8700, oversubscription: 4}"};
  CHECK(seconds(narrow, 8_GiB) == test::approx(seconds(full, 8_GiB)).epsilon(0.02));
}

TEST_CASE("CollNet is refused, with the reason, where fabric, hosts, release or the choice have none") {
  struct Case {
    Cluster cluster;
    std::string reason;
  };
  for (const auto& row : std::vector<Case>{
           {{.host = "server-1a100-cx6dx", .fabric = "single_switch: {switch: sn3700}"}, "not InfiniBand"},
           {{.host = "azure-nc24rs-v3", .fabric = "single_switch: {switch: qm8700}"}, "through NVSwitches"},
           {{.fabric = "leaf_spine: {switch: sb7800, rate: 100 Gb/s}"}, "(sb7800) does not reduce streams"},
           {{.nccl = "collnet: on, version: \"2.5\""}, "came with 2.6"},
           {{.nccl = "collnet: on, p2p: off"}, "through NVSwitches"},
           {{.software = ", transport: tcp"}, "talk over TCP"},
           {{.nccl = "", .workload = ", algorithm: collnet_direct"}, "off by default"},
           {{.hosts = 1, .fabric = "", .workload = ", algorithm: collnet_direct"}, "all GPUs are in one"},
           {{.workload = ", algorithm: collnet_direct, protocol: ll"}, "CollNet has no protocol 'll'"}}) {
    CAPTURE(row.reason);
    CAPTURE(text_of(row.cluster));
    CHECK(refusal(row.cluster).find(row.reason) != std::string::npos);
  }
}
