// SPDX-License-Identifier: Apache-2.0
// Paths, distances and routes against hand computations.
#include <set>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

const std::string k_two_sockets =
    "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: n\n    count: 2\n    host:\n      processor: "
    "xeon-skylake\n      devices:\n"
    "        - {name: sw0, kind: pcie_switch, below: socket0, pcie: gen3 x16}\n        - {name: sw1, kind: "
    "pcie_switch, below: sw0, pcie: gen3 x16}\n"
    "        - {name: rc0, kind: root_complex, below: socket1}\n"
    "        - {name: gpu0, type: v100-pcie-16, below: sw0}\n        - {name: gpu1, type: v100-pcie-16, below: sw0}\n  "
    "      - {name: gpu2, type: v100-pcie-16, below: sw1}\n"
    "        - {name: gpu3, type: v100-pcie-16, below: rc0}\n        - {name: gpu4, type: v100-pcie-16, below: rc0}\n  "
    "      - {name: gpu5, type: v100-pcie-16, below: socket1, pcie: gen3 x8}\n"
    "        - {name: hca0, type: connectx-5-edr, below: sw0}\nfabric:\n  single_switch: {switch: sb7800, cable: 2 "
    "m}\n";

DeviceId gpu(const Topology& topology, int ordinal) { return topology.device_in_host(0, DeviceKind::gpu, ordinal); }

std::string equal_hosts(int count, const std::string& fabric) {
  return "schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, count: " + std::to_string(count) +
         ", host: {processor: xeon-skylake, devices: [{name: gpu0, type: v100-pcie-16, below: socket0}, {name: hca0, "
         "type: connectx-5-edr, below: socket0}]}}\nfabric:\n  " +
         fabric + "\n";
}

DeviceId hca(const Topology& topology, int host, int ordinal = 0) {
  return topology.device_in_host(host, DeviceKind::hca, ordinal);
}

}  // namespace

TEST_CASE("PCIe links carry what the TLP model gives for each generation") {
  CHECK(pcie_bandwidth(3, 16, 256).bytes_per_s == test::approx(14.10e9).epsilon(0.001));
  CHECK(pcie_bandwidth(3, 16, 128).bytes_per_s == test::approx(12.76e9).epsilon(0.001));
  CHECK(pcie_bandwidth(4, 16, 256).bytes_per_s == test::approx(28.20e9).epsilon(0.001));
  CHECK(pcie_bandwidth(5, 16, 256).bytes_per_s == test::approx(56.4e9).epsilon(0.001));
  CHECK(pcie_bandwidth(3, 8, 256).bytes_per_s * 2 == test::approx(pcie_bandwidth(3, 16, 256).bytes_per_s));
}

TEST_CASE("distances follow nvidia-smi's classes") {
  const auto t = test::topology(k_two_sockets).topology;
  CHECK(t.distance(gpu(t, 0), gpu(t, 0)) == Distance::same);
  CHECK(t.distance(gpu(t, 0), gpu(t, 1)) == Distance::pix);   // one switch
  CHECK(t.distance(gpu(t, 0), gpu(t, 2)) == Distance::pxb);   // two switches
  CHECK(t.distance(gpu(t, 3), gpu(t, 4)) == Distance::phb);   // one root complex
  CHECK(t.distance(gpu(t, 3), gpu(t, 5)) == Distance::node);  // two root complexes of a socket
  CHECK(t.distance(gpu(t, 0), gpu(t, 3)) == Distance::sys);   // other socket
  CHECK(t.distance(gpu(t, 0), hca(t, 0)) == Distance::pix);
}

TEST_CASE("a path lists directed links, and peer limits only where a root complex turns traffic round") {
  const auto t = test::topology(k_two_sockets).topology;
  const auto below_switch = t.path_in_host(gpu(t, 0), hca(t, 0));
  REQUIRE(below_switch);
  CHECK(below_switch->links.size() == 2);
  CHECK(below_switch->pcie_switch_hops == 1);
  CHECK(below_switch->peer_crossings.empty());
  CHECK(t.link(below_switch->links[0]).from == gpu(t, 0));
  CHECK(t.link(below_switch->links[1]).to == hca(t, 0));

  CHECK(below_switch->dma == Dma::read);  // the HCA fetches
  CHECK(t.path_in_host(hca(t, 0), gpu(t, 0))->dma == Dma::write);
  CHECK(t.path_in_host(t.local_memory(gpu(t, 0)), gpu(t, 0))->dma == Dma::read);

  const auto across = t.path_in_host(gpu(t, 0), gpu(t, 3));
  REQUIRE(across);
  CHECK(across->socket_crossings == 1);
  REQUIRE(across->peer_crossings.size() == 1);
  CHECK(across->peer_crossings[0].is_cross_socket);
  CHECK(across->peer_crossings[0].processor == "xeon-skylake");
  // gpu0 - sw0 - rc-sw0 - socket0 - socket1 - rc0 - gpu3
  CHECK(across->links.size() == 6);

  const auto to_memory = t.path_in_host(gpu(t, 5), t.local_memory(gpu(t, 5)));
  REQUIRE(to_memory);
  CHECK(to_memory->peer_crossings.empty());
  CHECK(to_memory->bottleneck.bytes_per_s == test::approx(pcie_bandwidth(3, 8, 256).bytes_per_s));
  CHECK(t.link(to_memory->bottleneck_link).lanes == 8);
}

TEST_CASE("every link has its reverse between the same devices") {
  const auto t = test::topology(k_two_sockets).topology;
  for (int l = 0; l < t.num_links(); ++l) {
    const auto link = t.link(LinkId{l});
    const auto back = t.link(t.reverse(LinkId{l}));
    CHECK(link.from == back.to);
    CHECK(link.to == back.from);
    CHECK(link.bandwidth == back.bandwidth);
  }
}

TEST_CASE("a path between memories of two hosts goes through the nearest HCAs and the switch") {
  const auto t = test::topology(k_two_sockets).topology;
  const auto path = t.path(gpu(t, 0), t.device_in_host(1, DeviceKind::gpu, 0));
  REQUIRE(path);
  CHECK(path->network_switch_hops == 1);
  CHECK(path->bottleneck.bytes_per_s == test::approx(12.5e9));
  // Two PCIe switches (125 ns each), two cables of 2 m (5.05 ns/m), one switch of 90 ns.
  CHECK(path->latency.us() == test::approx(2 * 0.1 + 2 * 0.0101 + 0.090).epsilon(0.001));
}

TEST_CASE("NVLink meshes and NVSwitches are preferred between GPUs") {
  const auto mesh = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/abci-v100.yaml");
  REQUIRE(mesh);
  const auto direct = mesh->topology.path_in_host(gpu(mesh->topology, 0), gpu(mesh->topology, 3));
  REQUIRE(direct);
  CHECK(direct->uses_nvlink);
  CHECK(direct->links.size() == 1);
  CHECK(mesh->topology.link(direct->links[0]).lanes == 2);
  CHECK_FALSE(mesh->topology.path_in_host(gpu(mesh->topology, 0), gpu(mesh->topology, 3), {.may_use_nvlink = false})
                  ->uses_nvlink);
  const auto switched = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/dgx-a100-pair.yaml");
  REQUIRE(switched);
  CHECK(switched->topology.path_in_host(gpu(switched->topology, 0), gpu(switched->topology, 7))->links.size() == 2);
}

TEST_CASE("a fat tree of two tiers has one route per cable up and respects oversubscription") {
  // 8-port leaves: 4 down, 4 up; 16 hosts are 4 leaves below 2 spines, 2 cables each.
  const auto even = test::topology(equal_hosts(16, "fat_tree: {switch: sb7800, leaf_ports: 8}")).topology;
  CHECK(even.devices(DeviceKind::network_switch).size() == 6);
  CHECK(even.path_between_hcas(hca(even, 0), hca(even, 1))->network_switch_hops == 1);
  CHECK(even.path_between_hcas(hca(even, 0), hca(even, 15))->network_switch_hops == 3);
  // 4 cables up, and on the way down 2 parallel cables from each spine.
  CHECK(even.equal_cost_routes(hca(even, 0), hca(even, 15)).size() == 8);
  // 3 : 1 : 6 down, 2 up.
  const auto over =
      test::topology(equal_hosts(12, "fat_tree: {switch: sb7800, leaf_ports: 8, oversubscription: 3}")).topology;
  int down = 0;
  int up = 0;
  const auto leaf = over.find_device("leaf0");
  REQUIRE(leaf);
  for (int l = 0; l < over.num_links(); ++l) {
    const auto link = over.link(LinkId{l});
    if (link.from != *leaf) continue;
    ++(over.kind(link.to) == DeviceKind::hca ? down : up);
  }
  CHECK(down == 6);
  CHECK(up == 2);
}

TEST_CASE("a fat tree of three tiers has (k/2)^2 routes between pods") {
  // k = 4: 2 hosts per leaf, 2 leaves per pod, 4 pods.
  const auto t = test::topology(equal_hosts(16, "fat_tree: {switch: sb7800, leaf_ports: 4, tiers: 3}")).topology;
  CHECK(t.devices(DeviceKind::network_switch).size() == 8 + 8 + 4);
  CHECK(t.equal_cost_routes(hca(t, 0), hca(t, 15)).size() == 4);
  CHECK(t.path_between_hcas(hca(t, 0), hca(t, 15))->network_switch_hops == 5);
  CHECK(t.path_between_hcas(hca(t, 0), hca(t, 3))->network_switch_hops == 3);
}

TEST_CASE("shifts over an InfiniBand fat tree do not collide, Ethernet spreads flows by hash") {
  const auto t = test::topology(equal_hosts(16, "fat_tree: {switch: sb7800, leaf_ports: 8}")).topology;
  std::map<int, int> load;
  for (int h = 0; h < 16; ++h) {
    const auto path = t.path_between_hcas(hca(t, h), hca(t, (h + 4) % 16));
    REQUIRE(path);
    for (const auto link : path->links) ++load[link.value];
  }
  for (const auto& [link, flows] : load) CHECK(flows == 1);

  const auto ethernet = test::topology(equal_hosts(16, "fat_tree: {switch: sn2700, leaf_ports: 8}")).topology;
  std::map<int, int> first_hop;
  for (std::uint64_t flow = 0; flow < 1000; ++flow)
    ++first_hop[ethernet.path_between_hcas(hca(ethernet, 0), hca(ethernet, 15), flow)->links[1].value];
  CHECK(first_hop.size() == 4);
  for (const auto& [link, flows] : first_hop) CHECK(flows > 180);
}

TEST_CASE("rails, dragonflies, tori and direct cables have the hops they should") {
  const auto rails = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/rail-optimized-h100-64.yaml");
  REQUIRE(rails);
  const auto& r = rails->topology;
  CHECK(r.path_between_hcas(hca(r, 0, 3), hca(r, 1, 3))->network_switch_hops == 1);
  CHECK(r.path_between_hcas(hca(r, 0, 3), hca(r, 1, 4))->network_switch_hops == 3);

  const auto fly =
      test::topology(
          equal_hosts(
              24, "dragonfly: {switch: qm8700, groups: 3, routers_per_group: 4, hosts_per_router: 2, global_links: 1}"))
          .topology;
  CHECK(fly.path_between_hcas(hca(fly, 0), hca(fly, 1))->network_switch_hops == 1);
  CHECK(fly.path_between_hcas(hca(fly, 0), hca(fly, 7))->network_switch_hops == 2);
  CHECK(fly.path_between_hcas(hca(fly, 0), hca(fly, 23))->network_switch_hops <= 4);

  const auto torus = test::topology(equal_hosts(16, "torus: {switch: qm8700, dimensions: [4, 4]}")).topology;
  CHECK(torus.path_between_hcas(hca(torus, 0), hca(torus, 1))->network_switch_hops == 2);
  CHECK(torus.path_between_hcas(hca(torus, 0), hca(torus, 3))->network_switch_hops == 2);   // round the edge
  CHECK(torus.path_between_hcas(hca(torus, 0), hca(torus, 10))->network_switch_hops == 5);  // two and two

  const auto direct =
      test::topology(equal_hosts(2, "list: {cables: [{from: n0.hca0, to: n1.hca0, length: 1 m}]}")).topology;
  CHECK(direct.path_between_hcas(hca(direct, 0), hca(direct, 1))->links.size() == 1);
}

TEST_CASE("16,384 GPUs are built and routed without a table of pairs") {
  const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/fat-tree-16384.yaml");
  REQUIRE(loaded);
  const auto& t = loaded->topology;
  CHECK(t.devices(DeviceKind::gpu).size() == 16384);
  std::set<int> hops;
  for (int h = 1; h < t.num_hosts(); h += 97)
    hops.insert(t.path_between_hcas(hca(t, 0), hca(t, h, h % 8))->network_switch_hops);
  CHECK(*hops.rbegin() == 5);
}
