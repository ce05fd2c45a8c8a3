// SPDX-License-Identifier: Apache-2.0
// What `check` says about lossless fabrics, both ways.
#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

std::string doubts(const std::string& fabric, const std::string& host = "server-1v100-cx4-100g") {
  const auto loaded =
      test::topology("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 8, type: " + host +
                     "}]\nfabric:\n  " + fabric + "\n");
  const auto found = check_lossless(loaded.topology, loaded.parameters);
  CHECK_FALSE(has_errors(found));
  return render(found);
}

std::string pfc(const std::string& lossless, const std::string& more = "") {
  return doubts("single_switch: {switch: sn2700, lossless: {" + lossless + "}" + more + "}");
}

bool says(const std::string& text, const std::string& words) {
  CAPTURE(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a fabric without a lossless block, or with the guide's, gives no warning") {
  CHECK(doubts("single_switch: {switch: sn2700}") == "");
  CHECK(pfc("pfc: [3], headroom: auto, cnp_priority: 6, weights: {3: 50, 0: 50, 6: strict}") == "");
}

TEST_CASE("headroom below the round trip is warned about at the cable that needs more") {
  // 100 Gb/s over 40 m: 2 x 40 / 1.98e8 x 12.5e9 = 5051 B, two packets of 4178 B and 3891 B of response: 17298 B.
  CHECK(says(pfc("headroom: 16 KiB", ", cable: 40 m"),
             "headroom of 16384 B is less than the 17298 B that 100 Gb/s over 40 m needs (8 such ports)"));
  CHECK(pfc("headroom: 16 KiB", ", cable: 5 m") == "");
}

TEST_CASE("headroom that does not fit into the packet memory") {
  CHECK(says(pfc("pfc: [3], headroom: 3 MiB"), "take 24.1 MiB, the switch has 16 MiB"));
  CHECK(says(pfc("pfc: [3], headroom: 1200 KiB"), "a lossless pool of 8 MiB does not fit beside"));
}

TEST_CASE("packets above the port MTU, and payloads that are no RDMA MTU") {
  CHECK(says(pfc("port_mtu: 4000 B"), "RoCE packets of 4140 B do not pass ports with an MTU of 4000 B"));
  CHECK(says(pfc("pfc: [3]", ", mtu: 1500 B"), "RDMA packets cannot carry 1500 B"));
  CHECK(pfc("port_mtu: 4200 B") == "");
}

TEST_CASE(
    "notifications in a paused class or behind others, too many lossless classes, VLAN priorities across switches") {
  CHECK(says(pfc("cnp_priority: 3"), "congestion notifications use priority 3, which PFC pauses"));
  CHECK(says(pfc("weights: {6: 10}"), "(priority 6) are not scheduled first"));
  CHECK(says(pfc("pfc: [1, 2, 3]"), "3 priorities are lossless"));
  CHECK(says(doubts("leaf_spine: {switch: sn2700, leaf_ports: 4, lossless: {trust: pcp}}"),
             "priorities come from the VLAN tag (pcp) in a fabric of several switches"));
  CHECK(pfc("trust: pcp") == "");
}

TEST_CASE("a port that pauses before ECN marks") {
  CHECK(says(pfc("alpha: 0.01"), "PFC pauses a lone port at"));
  CHECK(
      says(pfc("xoff: 60 kB, xon: 48 kB"), "PFC pauses a lone port at 60000 B, before ECN marks anything at 150000 B"));
}

TEST_CASE("credits that do not cover the round trip slow a lane down") {
  const auto text = doubts("single_switch: {switch: sb7800, cable: 10 m, lossless: {vl_buffer: 6 KiB}}");
  CHECK(says(text, "of buffer per lane keep"));
  CHECK(doubts("single_switch: {switch: sb7800, cable: 10 m, lossless: {vl_buffer: 16 KiB}}") == "");
  CHECK(says(doubts("single_switch: {switch: sb7800, lossless: {vl_buffer: 256 KiB}}"), "more than the 128 KiB"));
}

TEST_CASE("routes that can deadlock are named with their circle and the way out") {
  const auto text = doubts("torus: {switch: qm8700, dimensions: [8]}");
  CHECK(says(text, "the routes can deadlock: 8 buffers wait for each other in a circle: router0 -> router1"));
  CHECK(says(text, "`lossless: {virtual_lanes: 2}`"));
  CHECK(doubts("torus: {switch: qm8700, dimensions: [8], lossless: {virtual_lanes: 2}}") == "");
  const auto ethernet = doubts("torus: {switch: sn2700, dimensions: [8], lossless: {pfc: [3]}}");
  CHECK(says(ethernet, "use `routing: up_down`"));
  CHECK(doubts("torus: {switch: sn2700, dimensions: [8]}") == "");
}

TEST_CASE("priority flow control of the two ends of a port must agree") {
  CHECK(says(pfc("ports: {n3.hca0: [4]}"), "flow control disagrees: n3.hca0 pauses 4, its neighbour switch0 3"));
  CHECK(says(pfc("ports: {n3.hca0: []}"), "flow control disagrees: n3.hca0 pauses nothing, its neighbour switch0 3"));
  CHECK(says(pfc("ports: {switch0/n3.hca0: []}"), "flow control disagrees: switch0/n3.hca0 pauses nothing"));
  CHECK(says(pfc("ports: {switch0: [4]}"), "(and 7 others)"));
  // Both ends alike is no mismatch, but what travels is lossy there.
  CHECK(pfc("ports: {switch0/n3.hca0: [], n3.hca0: []}") == "");
  CHECK(says(pfc("ports: {nowhere: [3, 4]}"), "'nowhere' is no switch and no adapter of the topology"));
  CHECK(pfc("ports: {n3.hca0: [3]}") == "");
}

TEST_CASE("of ports that differ: traffic is judged by the cables, not by what the other ports have") {
  const auto said = [](const std::string& ports, int priority, const std::string& fabric = "torus: {dimensions: [4]") {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "n, count: 4, type: server-1v100-cx4-100g}]\n  fabric:\n    " +
        fabric + ", switch: sn2700, lossless: {ports: {" + ports +
        "}}}\nworkload: {benchmark: traffic, pattern: permutation, sizes: [1 MB], transport: {priority: " +
        std::to_string(priority) + "}}\n");
    const auto found = check_lossless(loaded.topology, loaded.parameters, &loaded.scenario);
    CHECK_FALSE(has_errors(found));
    return render(found);
  };
  const std::string one_cable = "router0/router1: [], router1/router0: []";
  CHECK(says(said(one_cable, 3), "traffic travels in priority 3, which neither end of router0 - router1 pauses"));
  CHECK_FALSE(says(said(one_cable, 3), "can deadlock"));
  CHECK(says(said("router0/n0.hca0: []", 3), "can deadlock in priority 3: 4 buffers"));
  // The other priority is lossless on every cable, and none of the usual one.
  const std::string fours =
      "router0: [4], router1: [4], router2: [4], router3: [4], n0.hca0: [4], n1.hca0: [4], "
      "n2.hca0: [4], n3.hca0: [4]";
  CHECK(says(said(fours, 4), "can deadlock in priority 4"));
  CHECK_FALSE(says(said(fours, 4), "full buffers"));
  CHECK(says(said(fours, 3), "traffic travels in priority 3, and PFC acts on"));
  CHECK_FALSE(says(said(fours, 3), "can deadlock"));
}

TEST_CASE("RDMA packets of a VM carry the priority of its port group, where switches trust the VLAN tag") {
  const auto said = [](const std::string& group, const std::string& lossless, const std::string& way = "{vf: 1}") {
    const auto loaded = test::topology(
        "schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, count: 2, host: {processor: xeon-skylake, "
        "devices: [{name: hca0, type: connectx-5-100g, below: socket0}]}, vms: [{name: a, devices: {hca0: " +
        way + "}, port_group: " + group + "}]}\nfabric: {single_switch: {switch: sn2700, lossless: " + lossless +
        "}}\n");
    return render(check_lossless(loaded.topology, loaded.parameters));
  };
  CHECK(says(said("{vlan: 5, priority: 4}", "{trust: pcp}"), "carry priority 4, and PFC acts on 3"));
  CHECK(says(said("{vlan: 5}", "{trust: pcp}"), "carry priority 0, and PFC acts on 3"));
  CHECK(said("{vlan: 5, priority: 3}", "{trust: pcp}") == "");
  CHECK(says(said("{vlan: 5, priority: 3}", "{trust: dscp}"), "nobody reads priority 3 of the VLAN tag"));
  CHECK(said("{vlan: 5, priority: 4}", "{trust: pcp}", "vmxnet3") == "");
}
