// SPDX-License-Identifier: Apache-2.0
// Cyclic buffer dependencies: found where textbooks have them, absent where lanes or up-down routing break them.
#include <set>

#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

LoadedTopology fabric(int hosts, const std::string& body) {
  return test::topology("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: " + std::to_string(hosts) +
                        ", type: server-2s-rome-1a100}]\nfabric:\n  " + body + "\n");
}

/// A ring of `size` switches with one host each, written by hand.
std::string ring(int size, const std::string& more) {
  std::string switches;
  std::string cables;
  for (int s = 0; s < size; ++s) {
    const auto name = "s" + std::to_string(s);
    switches += (s > 0 ? ", " : "") + ("{name: " + name + ", type: qm8700}");
    cables += (s > 0 ? ", " : "") + ("{from: n" + std::to_string(s) + ".hca0, to: " + name + "}, {from: " + name +
                                     ", to: s" + std::to_string((s + 1) % size) + "}");
  }
  return "list: {switches: [" + switches + "], cables: [" + cables + "]" + more + "}";
}

/// Every link of the cycle starts where the one before ends.
void check_is_cycle(const Topology& topology, const DeadlockReport& report) {
  REQUIRE(report.cycle.size() >= 2);
  for (std::size_t i = 0; i < report.cycle.size(); ++i) {
    const auto& next = report.cycle[(i + 1) % report.cycle.size()];
    CHECK(topology.link(report.cycle[i].link).to == topology.link(next.link).from);
  }
}

}  // namespace

TEST_CASE("a ring of four switches deadlocks with minimal routes, and the cycle is named") {
  const auto loaded = fabric(4, ring(4, ""));
  const auto report = find_buffer_cycle(loaded.topology, 1);
  REQUIRE(report.is_analysed);
  check_is_cycle(loaded.topology, report);
  CHECK(report.cycle.size() == 4);
  CHECK(describe_cycle(loaded.topology, report) == "s0 -> s1 -> s2 -> s3 -> s0");
}

TEST_CASE("a ring of three switches cannot deadlock: no route passes two of its links") {
  const auto loaded = fabric(3, ring(3, ""));
  const auto report = find_buffer_cycle(loaded.topology, 1);
  CHECK(report.is_analysed);
  CHECK(report.cycle.empty());
}

TEST_CASE("up-down routing breaks the cycle of any ring and still reaches everybody") {
  for (const int size : {4, 5, 8}) {
    CAPTURE(size);
    const auto loaded = fabric(size, ring(size, ", routing: up_down"));
    CHECK(find_buffer_cycle(loaded.topology, 1).cycle.empty());
    const auto hcas = loaded.topology.devices(DeviceKind::hca);
    for (const auto a : hcas) {
      for (const auto b : hcas) {
        if (a == b) continue;
        const auto path = loaded.topology.path_between_hcas(a, b);
        REQUIRE(path);
        CHECK(loaded.topology.link(path->links.front()).from == a);
        CHECK(loaded.topology.link(path->links.back()).to == b);
        for (std::size_t i = 0; i + 1 < path->links.size(); ++i)
          CHECK(loaded.topology.link(path->links[i]).to == loaded.topology.link(path->links[i + 1]).from);
      }
    }
  }
}

TEST_CASE("dimension order on a torus has cycles with one lane and none with two") {
  for (const auto* dimensions : {"[4]", "[8]", "[4, 4]", "[5, 3]", "[4, 4, 4]"}) {
    CAPTURE(dimensions);
    const auto loaded = fabric(64, std::string("torus: {switch: qm8700, dimensions: ") + dimensions + "}");
    const auto one = find_buffer_cycle(loaded.topology, 1);
    check_is_cycle(loaded.topology, one);
    const auto two = find_buffer_cycle(loaded.topology, 2);
    CHECK(two.is_analysed);
    CHECK(two.num_dependencies > 0);
    CHECK(two.cycle.empty());
  }
}

TEST_CASE("a torus with up-down routing needs one lane") {
  const auto loaded = fabric(16, "torus: {switch: qm8700, dimensions: [4, 4], routing: up_down}");
  CHECK(find_buffer_cycle(loaded.topology, 1).cycle.empty());
}

TEST_CASE("trees need no search, and up-down on a tree takes the same number of hops") {
  const auto loaded = fabric(32, "fat_tree: {switch: qm8700, tiers: 3, leaf_ports: 8}");
  const auto report = find_buffer_cycle(loaded.topology, 1);
  CHECK(report.is_analysed);
  CHECK(report.cycle.empty());
  const auto up_down = fabric(32, "fat_tree: {switch: qm8700, tiers: 3, leaf_ports: 8, routing: up_down}");
  const auto hcas = loaded.topology.devices(DeviceKind::hca);
  for (std::size_t i = 1; i < hcas.size(); ++i) {
    CHECK(loaded.topology.equal_cost_routes(hcas[0], hcas[i]).size() ==
          up_down.topology.equal_cost_routes(hcas[0], hcas[i]).size());
  }
}

TEST_CASE("next links lead along a route, with the lane rule of the torus") {
  const auto loaded = fabric(8, "torus: {switch: qm8700, dimensions: [8]}");
  const auto& topology = loaded.topology;
  const auto hcas = topology.devices(DeviceKind::hca);
  // From router 6 to router 1: 7, 0 (wraps around), 1.
  auto link = topology.uplinks(hcas[6]).front();
  int lane = 0;
  std::vector<int> lanes;
  while (topology.link(link).to != hcas[1]) {
    const auto next = topology.next_network_links(link, hcas[1]);
    REQUIRE(next.size() == 1);
    lane = topology.next_lane(link, lane, next[0], 2);
    lanes.push_back(lane);
    link = next[0];
  }
  CHECK(lanes == std::vector<int>{0, 1, 1, 1});
}
