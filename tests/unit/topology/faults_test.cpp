// SPDX-License-Identifier: Apache-2.0
// Descriptions that cannot be built: every fault at once, at its place, with the fix.
#include <algorithm>

#include "specs.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

bool has(const std::vector<std::string>& texts, const std::string& wanted) {
  return std::ranges::any_of(texts, [&](const auto& text) { return text.find(wanted) != std::string::npos; });
}

/// The only fault of a fabric over `count` hosts with one HCA each.
std::string fault_of(int count, const FabricSpec& fabric, int num_hcas = 1) {
  const auto faults = faults_of(cluster(count, hca_host(num_hcas), fabric));
  REQUIRE(faults.size() == 1);
  return faults.front();
}

ParameterSet without(const std::string& name) {
  ParameterSet values;
  const auto all = round_values();
  for (const auto& [key, parameter] : all.all()) {
    if (key != name) values.set(parameter);
  }
  return values;
}

}  // namespace

TEST_CASE("all faults of a host are reported at once, each at its own line and none twice") {
  const auto faults = faults_of(cluster(
      1,
      host({device("gpu0", DeviceKind::gpu, "socket5", 10), device("gpu1", DeviceKind::gpu, "gpu0", 11),
            device("sw0", DeviceKind::pcie_switch, "sw1", 12), device("sw1", DeviceKind::pcie_switch, "sw0", 13),
            device("gpu2", DeviceKind::gpu, "swich0", 14), device("gpu2", DeviceKind::gpu, "socket0", 15),
            device("memory1", DeviceKind::gpu, "socket0", 16), device("gpu3", DeviceKind::gpu, "", 17),
            device("gpu4", DeviceKind::gpu, "memory0", 18), device("rc-hca0", DeviceKind::root_complex, "socket0", 19),
            device("hca0", DeviceKind::hca, "socket0", 20), device("nvs0", DeviceKind::nvswitch, "socket0", 21),
            device("rc1", DeviceKind::root_complex, "rc-hca0", 22),
            device("sw9", DeviceKind::pcie_switch, "socket0", 23)})));
  CHECK(has(faults,
            "10: device 'gpu0' is below 'socket5', which the host does not have (the host has 2 sockets, socket0 "
            "to socket1)"));
  CHECK(has(faults, "11: device 'gpu1' is below 'gpu0', a GPU"));
  CHECK(has(faults, "13: device 'sw1' is below 'sw0', which is below 'sw1' itself"));
  CHECK(has(faults, "14: device 'gpu2' is below 'swich0', which the host does not have"));
  CHECK(has(faults, "15: two devices are called 'gpu2'"));
  CHECK(has(faults, "16: the name 'memory1' is taken"));
  CHECK(has(faults, "17: device 'gpu3' does not say what it is below"));
  CHECK(has(faults, "18: device 'gpu4' is below 'memory0', a memory"));
  CHECK(has(faults, "20: the root complex of 'hca0' is called 'rc-hca0'"));
  CHECK(has(faults, "21: NVSwitch 'nvs0' is below 'socket0'"));
  CHECK(has(faults, "22: root complex 'rc1' is below 'rc-hca0'"));
  CHECK(faults.size() == 11);
}

TEST_CASE("a misspelt parent, NVLink end or cable end gets the nearest name") {
  const auto parent = faults_of(cluster(
      1, host({device("switch0", DeviceKind::pcie_switch, "socket0"), device("gpu0", DeviceKind::gpu, "swich0")})));
  REQUIRE(parent.size() == 1);
  CHECK(has(parent, "did you mean 'switch0'?"));
  const auto end = faults_of(
      cluster(1, host({device("gpu0", DeviceKind::gpu, "socket0"), device("gpu1", DeviceKind::gpu, "socket0")},
                      {nvlink("gpu0", "gpus1", 2, 7)})));
  REQUIRE(end.size() == 1);
  CHECK(has(end, "7: NVLink ends at 'gpus1', which is no GPU or NVSwitch of the host (did you mean 'gpu1'?)"));
  auto list = fabric(FabricKind::list);
  list.switches = {{"leaf", "sw8", at_line(3)}};
  list.cables = {{"n0.hca0", "leav", 1, {}, {}, at_line(4)}};
  CHECK(fault_of(2, list) == "4: cable ends at 'leav', which is no HCA or switch (did you mean 'leaf'?)");
}

TEST_CASE("NVLinks need two ends, at least one link and a type that has them") {
  const auto two_gpus = [](NvlinkSpec link) {
    return cluster(1, host({device("gpu0", DeviceKind::gpu, "socket0"), device("gpu1", DeviceKind::gpu, "socket1")},
                           {std::move(link)}));
  };
  CHECK(has(faults_of(two_gpus(nvlink("gpu0", "gpu0", 2))), "NVLink from 'gpu0' to itself"));
  CHECK(faults_of(two_gpus(nvlink("gpu0", "gpu1", 2))).empty());
  CHECK(has(faults_of(two_gpus(nvlink("gpu0", "gpu1", 0))), "0 NVLinks between 'gpu0' and 'gpu1'"));
  CHECK(has(faults_of(two_gpus(nvlink("gpus", "gpus", 1)), without("gpu.nvlink_link_bandwidth")),
            "'gpu0' is a gpu, which has no NVLink"));
}

TEST_CASE("a missing value is reported where it is needed, once, with its name") {
  for (const std::string name :
       {"cpu.memory_bandwidth", "cpu.socket_bandwidth", "cpu.pcie_generation", "cpu.max_payload",
        "cpu.root_complex_bandwidth", "cpu.root_complex_latency", "hca.pcie_generation", "hca.pcie_width", "hca.rate",
        "sw8.rate", "sw8.latency", "sw8.ports"}) {
    CAPTURE(name);
    const auto faults = faults_of(cluster(8, hca_host(2), fabric(FabricKind::fat_tree)), without(name));
    REQUIRE(faults.size() == 1);
    CHECK(has(faults, "which is needed here"));
    CHECK(has(faults, "set the parameter '" + name + "'"));
  }
  // What the description itself gives need not be known of the switch.
  auto given = fabric(FabricKind::fat_tree);
  given.rate = Bandwidth{5e9};
  given.hop_latency = Duration{1};
  given.leaf_ports = 8;
  ParameterSet none;
  const auto all = round_values();
  for (const auto& [key, parameter] : all.all()) {
    if (!key.starts_with("sw8.")) none.set(parameter);
  }
  CHECK(faults_of(cluster(8, hca_host(1), given), none).empty());
}

TEST_CASE("a value of zero is no bandwidth") {
  auto values = round_values();
  auto rate = values.at("hca.rate");
  rate.value = 0;
  values.set(rate);
  const auto faults = faults_of(cluster(2, hca_host(1), fabric(FabricKind::single_switch)), values);
  REQUIRE(faults.size() == 1);
  CHECK(has(faults, "1: 'hca.rate' is 0, expected a value above 0"));
}

TEST_CASE("unknown device types and types of another kind are reported once") {
  auto spec = cluster(4, hca_host(2), fabric(FabricKind::single_switch, "sw9"));
  for (auto& one : spec.hosts[0].host.devices) one.type = "sw8";
  const auto faults = faults_of(spec);
  CHECK(has(faults, "1: 'sw8' is a device of kind 'network_switch', expected a device of kind 'hca'"));
  CHECK(has(faults, "9: unknown device type 'sw9', expected a device of kind 'network_switch' (did you mean 'sw8'?)"));
  CHECK(faults.size() == 2);
}

TEST_CASE("several hosts need a fabric, one does not") {
  CHECK(fault_of(4, {}).find("4 hosts and no fabric between them (add `fabric:`") != std::string::npos);
  CHECK(faults_of(cluster(1, hca_host(1))).empty());
}

TEST_CASE("hosts of two groups may not share a name") {
  auto spec = cluster(2, hca_host(1), fabric(FabricKind::single_switch));
  spec.hosts.push_back({"n1", 1, hca_host(1), at_line(5)});
  const auto faults = faults_of(spec);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == "5: two hosts are called 'n1' (give every host group its own name)");
  spec.hosts[1].count = 0;
  CHECK(has(faults_of(spec), "5: 0 hosts in group 'n1'"));
  spec.hosts[1].count = 2'000'000'000;
  CHECK(has(faults_of(spec), "5: 2000000000 hosts in group 'n1'"));
}

TEST_CASE("fabrics that run out of ports say how many there are and what to use instead") {
  CHECK(fault_of(9, fabric(FabricKind::single_switch)) ==
        "9: 9 HCAs do not fit on one switch of 8 ports (use leaf_spine or fat_tree)");
  // 4 down and 4 up per leaf: 9 leaves, but a spine has 8 ports.
  CHECK(fault_of(33, fabric(FabricKind::fat_tree)).find("use fat_tree with 3 tiers") != std::string::npos);
  auto spines = fabric(FabricKind::leaf_spine);
  spines.spines = 5;
  CHECK(fault_of(8, spines).find("5 spines, but a leaf has 4 ports up") != std::string::npos);
  spines.spines = 1;  // 3 leaves with 4 cables each
  CHECK(fault_of(12, spines).find("3 leaves need 1 spines of 12 ports, the switch has 8 (take more spines)") !=
        std::string::npos);
  auto narrow = fabric(FabricKind::fat_tree);
  narrow.leaf_ports = 4;  // 2 down and 2 up: 8 leaves fill the 8 ports of a spine, 9 do not
  CHECK(faults_of(cluster(16, hca_host(1), narrow)).empty());
  CHECK(fault_of(17, narrow).find("9 leaves need 2 spines of 9 ports, the switch has 8") != std::string::npos);
  auto leaves = fabric(FabricKind::leaf_spine);
  leaves.leaf_ports = 9;
  CHECK(fault_of(4, leaves).find("leaves of 9 ports, a sw8 has 8") != std::string::npos);
  auto tree = fabric(FabricKind::fat_tree);
  tree.tiers = 3;  // 4 per leaf, 4 leaves per pod, 8 pods
  CHECK(fault_of(129, tree).find("129 HCAs need 9 pods, a core switch has 8 ports") != std::string::npos);
}

TEST_CASE("dragonflies and tori that cannot be built say why") {
  auto fly = fabric(FabricKind::dragonfly);
  fly.groups = 4;
  fly.routers_per_group = 2;
  fly.hosts_per_router = 1;
  CHECK(fault_of(8, fly).find("2 routers with 1 global links each reach 2 of the 3 other groups") != std::string::npos);
  fly.groups = 2;
  CHECK(fault_of(8, fly).find("8 HCAs do not fit into 2 groups of 2 routers with 1 each") != std::string::npos);
  fly.hosts_per_router = 7;  // 7 hosts, 1 neighbour, 1 global
  CHECK(
      fault_of(28, fly).find("9 cables end at switch 'group0-router0', a sw8 has 8 ports (4 switches have too many)") !=
      std::string::npos);
  auto torus = fabric(FabricKind::torus);
  CHECK(fault_of(2, torus).find("a torus without routers") != std::string::npos);
  torus.dimensions = {4, 0};
  CHECK(fault_of(2, torus).find("a torus without routers") != std::string::npos);
}

TEST_CASE("fabrics of absurd size are refused before they are built") {
  auto torus = fabric(FabricKind::torus);
  torus.dimensions = {1000, 1000, 1000};
  CHECK(fault_of(2, torus).find("torus of 1000000000 switches and 3000000002 cables (at most 100000 switches") !=
        std::string::npos);
  torus.dimensions = std::vector<int>(17, 1);
  CHECK(fault_of(2, torus).find("a torus of 17 dimensions (give at most 16 `dimensions`)") != std::string::npos);
  torus.dimensions.pop_back();
  CHECK(faults_of(cluster(2, hca_host(1), torus)).empty());

  auto fly = fabric(FabricKind::dragonfly, "sw64");
  fly.groups = fly.routers_per_group = 1024;
  fly.hosts_per_router = 1;
  CHECK(fault_of(2, fly).find("dragonfly of 1048576 switches") != std::string::npos);
  fly.groups = 90;  // 94 million cables inside the groups alone
  fly.routers_per_group = 1024;
  CHECK(fault_of(2, fly).find("at most 4000000 cables are simulated") != std::string::npos);

  auto leaves = fabric(FabricKind::leaf_spine);
  leaves.leaf_ports = 2;  // one HCA per leaf
  CHECK(fault_of(100'001, leaves).find("leaf_spine of 100001 switches") != std::string::npos);
  CHECK(fault_of(1'000'000, fabric(FabricKind::rail_optimized, "sw64"), 8).find("8000000 HCAs, one cable each") !=
        std::string::npos);

  auto list = fabric(FabricKind::list, "");
  list.switches = {{"a", "sw8", at_line(3)}, {"b", "sw8", at_line(3)}};
  list.cables = {{"a", "b", 4'000'001, {}, {}, at_line(4)}};
  CHECK(fault_of(2, list).find("4: more than 4000000 cables, from this one on") != std::string::npos);
}

TEST_CASE("hosts of absurd size are refused" * doctest::test_suite("long")) {
  std::vector<DeviceSpec> gpus;
  for (int g = 0; g < 1024; ++g) gpus.push_back(device("gpu" + std::to_string(g), DeviceKind::gpu, "socket0"));
  CHECK(faults_of(cluster(1, host(gpus))).empty());
  const auto meshes = faults_of(cluster(1, host(gpus, {nvlink("gpus", "gpus", 1, 6), nvlink("gpus", "gpus", 1, 7)})));
  REQUIRE(meshes.size() == 1);
  CHECK(has(meshes, "7: more than 1000000 NVLinks in a host, from here on"));
  gpus.push_back(device("gpu1024", DeviceKind::gpu, "socket0"));
  CHECK(has(faults_of(cluster(1, host(gpus))), "2: a host has 1025 devices (a host holds at most 1024 devices)"));
}

TEST_CASE("names of hosts, devices and switches hold no dot, which parts host from device") {
  auto spec = cluster(2, hca_host(1), fabric(FabricKind::single_switch));
  spec.hosts[0].name = "rack1.n";
  CHECK(has(faults_of(spec), "2: a host group is called 'rack1.n' (use a name without dots"));
  spec.hosts[0].name = "n";
  spec.fabric.switches = {{"n0.hca0", "sw8", at_line(12)}};
  CHECK(has(faults_of(spec), "12: a switch is called 'n0.hca0' (use a name without dots"));
  spec.fabric.switches.clear();
  spec.hosts[0].host.devices[0].name = "hca.0";
  CHECK(has(faults_of(spec), "1: a device is called 'hca.0' (use a name without dots"));
}

TEST_CASE("names that the host itself uses are taken") {
  for (const std::string name : {"gpus", "socket0", "socket1", "memory0", "memory1"}) {
    CAPTURE(name);
    const auto faults = faults_of(cluster(1, host({device(name, DeviceKind::gpu, "socket0", 8)})));
    REQUIRE(faults.size() == 1);
    CHECK(has(faults, "8: the name '" + name + "' is taken"));
  }
  // A host of two sockets leaves socket2 free.
  CHECK(faults_of(cluster(1, host({device("socket2", DeviceKind::gpu, "socket0")}))).empty());
}

TEST_CASE("a fabric rate of zero is not taken for the default") {
  auto spec = fabric(FabricKind::single_switch);
  spec.rate = Bandwidth{0};
  CHECK(fault_of(2, spec).find("9: ports of the fabric carry nothing") == 0);
}

TEST_CASE("switches and cables by hand must have names, ends and ports of their own") {
  auto list = fabric(FabricKind::list);
  list.switches = {{"a", "sw8", at_line(3)}, {"a", "sw8", at_line(4)}};
  list.cables = {{"a", "a", 1, {}, {}, at_line(5)},
                 {"n0.hca0", "a", 0, {}, {}, at_line(6)},
                 {"n1.hca0", "a", 9, {}, {}, at_line(7)}};
  const auto faults = faults_of(cluster(2, hca_host(1), list));
  CHECK(has(faults, "4: two switches are called 'a'"));
  CHECK(has(faults, "5: cable from 'a' to itself"));
  CHECK(has(faults, "6: cable from 'n0.hca0' to 'a' carries nothing"));
  CHECK(has(faults, "3: 9 cables end at switch 'a', a sw8 has 8 ports"));
  CHECK(faults.size() == 4);
}
