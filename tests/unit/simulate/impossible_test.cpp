// SPDX-License-Identifier: Apache-2.0
// Descriptions of what cannot be: refused at their line and column, with the fix; and their neighbours that can be.
#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// Line 7 holds the host's devices, 8 the fabric, 9 the cables, 10 the workload.
std::string scenario_of(const std::string& devices, const std::string& fabric, const std::string& workload,
                        int hosts = 2) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
         "{name: n, count: " +
         std::to_string(hosts) + ", host: {processor: epyc-rome, devices: [" + devices + "]}}\n" + fabric +
         "workload: {" + workload + "}\n";
}

const std::string k_hca = "{name: hca0, type: connectx-6-hdr, below: socket0}";
const std::string k_gpus =
    "{name: gpu0, type: a100-pcie-40, below: socket0}, {name: gpu1, type: a100-pcie-40, below: socket1}";
const std::string k_switch = "  fabric: {single_switch: {switch: qm8700}}\n";
const std::string k_latency = "benchmark: osu_latency, sizes: [8 B]";

/// The message with its place; empty when it loads.
std::string refusal(const std::string& yaml) {
  const auto loaded = load_scenario(test::write_file("impossible.yaml", yaml));
  return loaded ? std::string() : test::shown(loaded.error());
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::string list_of(const std::string& cables, const std::string& type = "qm8700") {
  return "  fabric: {list: {switches: [{name: sw, type: " + type + "}], cables: [\n" + cables + "]}}\n";
}

}  // namespace

TEST_CASE("a GPU has one rank of NCCL and of copies, two ranks of MPI may share one") {
  for (const auto* benchmark : {"all_reduce_perf", "host_copies", "gpu_step, compute: 1 ms"}) {
    CAPTURE(benchmark);
    const auto text = refusal(scenario_of(k_gpus + ", " + k_hca, k_switch,
                                          "devices: [n0.gpu0, n0.gpu0], benchmark: " + std::string(benchmark)));
    CHECK(says(text, "impossible.yaml:9:31: error: device 'n0.gpu0' is named twice"));
    CHECK(says(text, "a GPU of its own"));
  }
  CHECK(refusal(scenario_of(k_gpus + ", " + k_hca, k_switch,
                            "devices: [n0.gpu0, n0.gpu0], benchmark: osu_latency, buffers: device")) == "");
}

TEST_CASE("a link trains at most at what slot and card can do") {
  const auto with = [](const std::string& keys) {
    return refusal(
        scenario_of("{name: hca0, type: connectx-6-hdr, below: socket0, " + keys + "}", k_switch, k_latency));
  };
  CHECK(says(with("pcie: gen3 x8, trained: gen6 x32"), "'hca0' trained at gen6 x32, its slot can do gen3 x8"));
  CHECK(says(with("pcie: gen3 x8, trained: gen3 x16"), "its slot can do gen3 x8"));
  CHECK(says(with("trained: gen5 x16"), "'hca0' trained at gen5 x16, its card can do gen4 x16"));
  CHECK(says(with("pcie: gen5 x16, trained: gen5 x8"), "its card can do gen4 x16"));
  CHECK(says(with("trained: gen5 x16"), "impossible.yaml:7:"));
  CHECK(with("pcie: gen4 x16, trained: gen3 x8") == "");
  CHECK(with("pcie: gen4 x16, trained: gen4 x16") == "");
}

TEST_CASE("an HCA has as many cables as ports, and no two lines are the same cable") {
  const auto cables = [](const std::string& lines) { return refusal(scenario_of(k_hca, list_of(lines), k_latency)); };
  const std::string second = "{from: n1.hca0, to: sw}\n";
  CHECK(cables("{from: n0.hca0, to: sw},\n" + second) == "");
  const auto eight = cables("{from: n0.hca0, to: sw, count: 8},\n" + second);
  CHECK(says(eight, "impossible.yaml:9:1: error: 8 cables end at HCA 'n0.hca0', a connectx-6-hdr has 1 port\n"));
  const auto twice = cables("{from: n0.hca0, to: sw},\n{from: sw, to: n0.hca0},\n" + second);
  CHECK(says(twice, "impossible.yaml:10:1: error: the cable from 'sw' to 'n0.hca0' is listed twice"));
  CHECK(says(twice, "impossible.yaml:9:1"));
  CHECK(says(cables("{from: n0.hca0, to: n0.hca0},\n" + second), "to itself"));
  CHECK(says(cables("{from: n0.hca0, to: sw, count: 0},\n" + second), "'count'"));
}

TEST_CASE("names and modes are given once") {
  const auto patched = refusal(
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: dgx-a100, devices: [{name: hca0, below: "
      "socket0}, {name: hca0, below: socket1}]}]\n");
  CHECK(says(patched, "error"));
  const auto loaded = load_topology(test::write_file(
      "twice.yaml",
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, type: server-1a100-cx6dx, devices: "
      "[{name: hca0, below: socket0}, {name: hca0, below: socket1}]}\n"));
  REQUIRE_FALSE(loaded);
  CHECK(says(test::shown(loaded.error()), "device 'hca0' is listed twice"));
  const auto modes = refusal(scenario_of(k_gpus + ", " + k_hca, k_switch, k_latency) +
                             "virtualization: {mode: sr-iov, devices: [{name: hca0, mode: sr-iov}, {name: hca0, mode: "
                             "vmxnet3}]}\n");
  CHECK(says(modes, "device 'hca0' has a mode already"));
}

TEST_CASE("a GPU has no more NVLinks in use than it has") {
  const auto with = [](int links) {
    return refusal(
        scenario_of("{name: gpu0, type: v100-sxm2-16, below: socket0}, {name: gpu1, type: v100-sxm2-16, "
                    "below: socket0}], nvlinks: [{from: gpu0, to: gpu1, links: " +
                        std::to_string(links) + "}",
                    "", "benchmark: all_reduce_perf", 1));
  };
  CHECK(with(6) == "");
  CHECK(says(with(7), "7 NVLinks at 'gpu0', a v100-sxm2-16 has 6"));
}

TEST_CASE("splitter cables share ports as far as the data sheet goes") {
  const auto hosts = [](const std::string& hca, const std::string& network, int count) {
    return refusal(scenario_of("{name: hca0, type: " + hca + ", below: socket0}",
                               "  fabric: {single_switch: {switch: " + network + "}}\n", k_latency, count));
  };
  CHECK(hosts("connectx-7-ndr", "qm9700", 64) == "");
  CHECK(says(hosts("connectx-7-ndr", "qm9700", 65), "65 HCAs do not fit on one switch of 64 ports"));
  CHECK(hosts("connectx-7-ndr200", "qm9700", 128) == "");
  CHECK(says(hosts("connectx-7-ndr200", "qm9700", 129), "with 65 ports needed on splitter cables"));
  CHECK(hosts("connectx-6-hdr100", "qm9700", 128) == "");  // two cables of a port, however slow
  CHECK(says(hosts("connectx-6-hdr100", "qm9700", 129), "65 ports"));
  CHECK(hosts("connectx-6-hdr100", "qm8700", 80) == "");
  CHECK(says(hosts("connectx-6-hdr", "qm8700", 41), "41 HCAs do not fit on one switch of 40 ports"));
  CHECK(hosts("connectx-4-lx-25g", "sn2100", 64) == "");  // four of 25 Gb/s on a port of 100
  CHECK(says(hosts("connectx-4-lx-25g", "sn2100", 65), "17 ports"));
}

TEST_CASE("the oversubscription of a leaf counts capacity, not ports") {
  const auto leaf = [](const std::string& hca, double ratio, int count, const std::string& more = "") {
    const auto loaded = test::scenario(
        scenario_of("{name: hca0, type: " + hca + ", below: socket0}",
                    "  fabric: {fat_tree: {switch: qm9700, oversubscription: " + std::to_string(ratio) + more + "}}\n",
                    k_latency, count));
    double down = 0;
    double up = 0;
    for (int l = 0; l < loaded.topology.num_links(); ++l) {
      const auto link = loaded.topology.link(LinkId{l});
      if (link.kind != LinkKind::network || loaded.topology.device(link.to).name != "leaf0") continue;
      (loaded.topology.device(link.from).kind == DeviceKind::hca ? down : up) += link.bandwidth.bytes_per_s;
    }
    return std::pair{down, up};
  };
  // 42 x 200 Gb/s down, 21 x 400 Gb/s up fill 63 of 64 ports.
  const auto even = leaf("connectx-7-ndr200", 1, 84);
  CHECK(even.first == test::approx(42 * 25e9));
  CHECK(even.second == test::approx(21 * 50e9));
  const auto half = leaf("connectx-7-ndr200", 2, 102);
  CHECK(half.first == test::approx(51 * 25e9));
  CHECK(half.second == test::approx(13 * 50e9));
  const auto same = leaf("connectx-7-ndr", 1, 64);
  CHECK(same.first == same.second);
  // With splitters 32 ports down take 64 HCAs of half the rate; 3 : 1 is 48 ports with 96 HCAs over 16.
  const auto split = leaf("connectx-7-ndr200", 1, 128, ", splitters: on");
  CHECK(split.first == test::approx(64 * 25e9));
  CHECK(split.second == test::approx(32 * 50e9));
  const auto split_three = leaf("connectx-7-ndr200", 3, 192, ", splitters: on");
  CHECK(split_three.first == test::approx(96 * 25e9));
  CHECK(split_three.second == test::approx(16 * 50e9));
  const auto refused = refusal(scenario_of("{name: hca0, type: connectx-7-ndr, below: socket0}",
                                           "  fabric: {fat_tree: {switch: qm9700, splitters: on}}\n", k_latency, 80));
  CHECK(says(refused, "splitters on ports of a qm9700, which take one of these HCAs each"));
}
