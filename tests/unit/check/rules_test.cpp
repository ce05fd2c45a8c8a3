// SPDX-License-Identifier: Apache-2.0
// Every rule of `check`, both ways: it speaks when it should and is silent otherwise.
#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

std::string host(const std::string& devices) {
  return "  - {name: n, count: 2, host: {processor: xeon-skylake, devices: [" + devices + "]}}\n";
}

std::string doubts(const std::string& hosts, const std::string& fabric) {
  const auto loaded =
      test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n" + hosts + "fabric:\n  " + fabric + "\n");
  const auto found = check_topology(loaded.topology, loaded.parameters);
  CHECK_FALSE(has_errors(found));
  return render(found);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

const std::string k_good =
    host("{name: gpu0, type: v100-pcie-16, below: socket0}, {name: hca0, type: connectx-5-edr, below: socket0}");
const std::string k_one_switch = "single_switch: {switch: sb7800}";

}  // namespace

TEST_CASE("a sound pair of hosts gives no warning") { CHECK(doubts(k_good, k_one_switch) == ""); }

TEST_CASE("an HCA faster than its slot is named with both rates") {
  const auto text = doubts(host("{name: hca0, type: connectx-6-hdr, below: socket0, pcie: gen3 x8}"),
                           "single_switch: {switch: qm8700}");
  CHECK(says(text, "HCA 'hca0' sends 25.0 GB/s but its PCIe link carries 7.05 GB/s"));
}

TEST_CASE("a card in a lesser slot and a link trained below its slot are told apart") {
  CHECK(says(doubts(host("{name: gpu0, type: a100-pcie-40, below: socket0, pcie: gen3 x16}, {name: hca0, type: "
                         "connectx-5-edr, below: socket0}"),
                    k_one_switch),
             "'gpu0' (a100-pcie-40) can do gen4 x16, its slot gives gen3 x16"));
  CHECK(says(doubts(host("{name: gpu0, type: v100-pcie-16, below: socket0, pcie: gen3 x16, trained: gen3 x4}, {name: "
                         "hca0, type: connectx-5-edr, below: socket0}"),
                    k_one_switch),
             "the link of 'gpu0' trained at gen3 x4, below its slot"));
}

TEST_CASE("a port faster than the switch, and a switch far faster than its ports") {
  CHECK(says(doubts(host("{name: hca0, type: connectx-6-hdr, below: socket0}"), k_one_switch),
             "ports of sb7800 carry 12.5 GB/s, HCA connectx-6-hdr sends 25.0 GB/s"));
  CHECK(says(doubts(host("{name: hca0, type: connectx-5-edr, below: socket0}"), "single_switch: {switch: qm9700}"),
             "more than twice as fast"));
}

TEST_CASE("an MTU larger than the HCA takes") {
  CHECK(says(doubts(k_good, "single_switch: {switch: sb7800, mtu: 9000 B}"),
             "HCA 'hca0' takes packets of 4096 B, the fabric is set to 9000 B"));
}

TEST_CASE("an HCA without a cable and a host without an HCA") {
  CHECK(says(doubts(k_good, "list: {switches: [{name: s, type: sb7800}], cables: [{from: n0.hca0, to: s}]}"),
             "HCA 'hca0' reaches no HCA of host"));
  CHECK(says(doubts(host("{name: gpu0, type: v100-pcie-16, below: socket0}"), k_one_switch),
             "hosts of group 'n' have no HCA in a topology of 2 hosts"));
}

TEST_CASE("a GPU whose nearest HCA is on the other socket") {
  CHECK(says(
      doubts(
          host("{name: gpu0, type: v100-pcie-16, below: socket1}, {name: hca0, type: connectx-5-edr, below: socket0}"),
          k_one_switch),
      "the nearest HCA of gpu0 is on the other socket (group 'n')"));
}

TEST_CASE("oversubscription is stated with the ratio of capacities, where a leaf has it") {
  const auto hosts = [](int count, const std::string& hca) {
    return "  - {name: n, count: " + std::to_string(count) +
           ", host: {processor: xeon-skylake, devices: [{name: hca0, type: " + hca + ", below: socket0}]}}\n";
  };
  const auto ndr = hosts(100, "connectx-7-ndr");
  CHECK(says(doubts(ndr, "fat_tree: {switch: qm9700, oversubscription: 3}"),
             "the fabric is oversubscribed 3 : 1 at leaf0"));
  // 42 HCAs of 200 Gb/s down, 21 ports of 400 Gb/s up.
  const auto slow = hosts(100, "connectx-7-ndr200");
  CHECK_FALSE(says(doubts(slow, "fat_tree: {switch: qm9700}"), "oversubscribed"));
  CHECK_FALSE(says(doubts(k_good, "fat_tree: {switch: sb7800, oversubscription: 3}"), "oversubscribed"));  // one leaf
  const std::string two = "{name: a, type: sb7800}, {name: b, type: sb7800}";
  const auto list = [&](const std::string& trunk) {
    return "list: {switches: [" + two +
           "], cables: [{from: n0.hca0, to: a}, {from: n1.hca0, to: a}, {from: n2.hca0, "
           "to: b}, {from: a, to: b" +
           trunk + "}]}";
  };
  const auto three = hosts(3, "connectx-5-edr");
  CHECK(says(doubts(three, list("")), "oversubscribed 2 : 1 at a"));
  CHECK_FALSE(says(doubts(three, list(", count: 2")), "oversubscribed"));
}

TEST_CASE("a processor without limits of peer traffic or vendor is named once") {
  test::write_file(
      "cpu.yaml",
      "schema: fabricast/device/1\nname: my-cpu\nkind: processor\nvalues:\n  memory_bandwidth: {value: 100 "
      "GB/s, source: own}\n  pcie_generation: {value: 4, source: own}\n  root_complex_bandwidth: {value: 40 "
      "GB/s, source: own}\n  root_complex_latency: {value: 100 ns, source: own}\n  max_payload: {value: 256, "
      "source: own}\n");
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\ndevices: [cpu.yaml]\nhosts:\n  - {name: a, host: {processor: my-cpu, "
      "sockets: 1}}\n  - {name: b, host: {processor: my-cpu, sockets: 1}}\nfabric:\n  single_switch: {switch: "
      "sb7800}\n");
  const auto text = render(check_topology(loaded.topology, loaded.parameters));
  for (const std::string words : {"processor 'my-cpu' does not say how fast peer traffic passes it",
                                  "processor 'my-cpu' does not say its vendor"}) {
    REQUIRE(says(text, words));
    CHECK(text.find(words, text.find(words) + 1) == std::string::npos);
  }
}

TEST_CASE("a link without bandwidth") {
  const auto loaded = load_topology(test::write_file(
      "zero.yaml", "schema: fabricast/topology/1\nname: t\nhosts:\n" + k_good + "fabric:\n  " + k_one_switch +
                       "\nparameters:\n  xeon-skylake.root_complex_bandwidth: {value: 0 GB/s, source: test}\n"));
  REQUIRE_FALSE(loaded);
  const auto text = test::shown(loaded.error());
  CAPTURE(text);
  CHECK(says(text, ": error: 'value' of 'xeon-skylake.root_complex_bandwidth' is 0 GB/s, outside its range"));
  CHECK(says(text, "zero.yaml:"));
  CHECK(says(text, "give a rate above 0: 1 kB/s to 1000 TB/s"));
}

TEST_CASE(
    "a scenario that asks for more GPUs than there are, or for more memory, or for GPUDirect without its module") {
  const auto faults = [](const std::vector<Setting>& settings) {
    const auto loaded = test::shipped("allreduce-dgx-a100-pair.yaml", settings);
    return render(check_scenario(loaded.topology, loaded.scenario, loaded.parameters));
  };
  CHECK(faults({}) == "");
  CHECK(says(faults({{"workload.gpus", "17"}}), "error: 17 GPUs asked for, topology 'dgx-a100-pair' has 16"));
  CHECK(says(faults({{"workload.sizes", "[32 GiB]"}}),
             "two buffers of 32 GiB do not fit into the 40 GiB of a a100-sxm4-40"));
  CHECK(says(faults({{"software.nv_peer_mem", "not loaded"}}), "nv_peer_mem is not loaded"));
}

TEST_CASE("buffers must fit into the least memory of the GPUs that take part, wherever they are listed") {
  const auto faults = [](const std::string& hosts, const std::string& gpus) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [" + hosts +
        "], fabric: {single_switch: {switch: qm8700}}}\nworkload: {benchmark: all_reduce_perf, sizes: [32 GiB]" + gpus +
        "}\n");
    return render(check_scenario(loaded.topology, loaded.scenario, loaded.parameters));
  };
  const std::string large = "{name: a, type: dgx-a100-80}";
  const std::string small = "{name: b, type: dgx-a100}";
  const auto* words = "two buffers of 32 GiB do not fit into the 40 GiB of a a100-sxm4-40";
  CHECK(says(faults(small + ", " + large, ""), words));
  CHECK(says(faults(large + ", " + small, ""), words));
  CHECK_FALSE(says(faults(large + ", " + small, ", gpus: 8"), "two buffers"));
}
