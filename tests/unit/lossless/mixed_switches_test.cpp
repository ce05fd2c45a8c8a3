// SPDX-License-Identifier: Apache-2.0
// Fabrics of unlike switches: each has its own buffers and thresholds, wherever it is listed.
#include <algorithm>
#include <map>

#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// Two leaves with three hosts each below a spine; `switches` in the order given.
std::string fabric_of(const std::vector<std::string>& switches, const std::string& lossless) {
  std::string out = "    switches: [";
  for (const auto& one : switches) out += one + ", ";
  out += "]\n    cables:\n";
  for (int host = 0; host < 6; ++host)
    out += "      - {from: n" + std::to_string(host) + ".hca0, to: leaf" + std::to_string(host / 3) + "}\n";
  out += "      - {from: leaf0, to: spine, count: 2}\n      - {from: leaf1, to: spine, count: 2}\n";
  return out + (lossless.empty() ? "" : "    lossless: " + lossless + "\n");
}

LoadedScenario incast(const std::vector<std::string>& switches, const std::string& lossless = "") {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, count: 6, type: server-1v100-cx4-100g}]\n  fabric:\n   list:\n" +
      fabric_of(switches, lossless) + "workload: {benchmark: traffic, pattern: incast, sizes: [4 MB]}\n");
}

Row packets(const LoadedScenario& loaded) {
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  return test::run(loaded, options).workloads[0].rows.at(0);
}

std::vector<std::string> ordered(const std::string& leaves, const std::string& spine, bool is_spine_first) {
  std::vector<std::string> out{"{name: leaf0, type: " + leaves + "}", "{name: leaf1, type: " + leaves + "}"};
  out.insert(is_spine_first ? out.begin() : out.end(), "{name: spine, type: " + spine + "}");
  return out;
}

}  // namespace

TEST_CASE("the order in which unlike switches are listed changes nothing") {
  for (const auto& types :
       {std::pair("sn2700", "sn5600"), std::pair("sn5600", "sn2700"), std::pair("sn3700", "ethernet-40g-tor")}) {
    const auto *leaves = types.first, *spine = types.second;
    for (const auto* lossless : {"", "{pfc: [3]}", "{flow_control: drop}", "{pfc: [3], alpha: 0.5}"}) {
      CAPTURE(leaves);
      CAPTURE(lossless);
      const auto one = packets(incast(ordered(leaves, spine, false), lossless));
      const auto other = packets(incast(ordered(leaves, spine, true), lossless));
      CHECK(one.time == other.time);
      CHECK(one.fabric->pauses == other.fabric->pauses);
      CHECK(one.fabric->lossy_drops == other.fabric->lossy_drops);
    }
  }
}

TEST_CASE("every switch has its own ASIC's memory, and what the fabric names holds for all") {
  const auto loaded = incast(ordered("sn2700", "sn5600", false), "{pfc: [3]}");
  SwitchSettings switches(loaded.topology, loaded.parameters);
  CHECK(switches.of("sn2700").buffer == 16_MiB);
  CHECK(switches.of("sn2700").preset == "spectrum-1");
  CHECK(switches.of("sn5600").buffer == 160_MiB);
  CHECK(switches.of("sn5600").cell == 192_B);
  const auto given = incast(ordered("sn2700", "sn5600", false), "{pfc: [3], alpha: 2, shared_buffer: 4 MiB}");
  SwitchSettings all(given.topology, given.parameters);
  for (const auto* type : {"sn2700", "sn5600"}) {
    CHECK(all.of(type).alpha == 2);
    CHECK(all.of(type).shared_buffer == 4_MiB);
  }
}

TEST_CASE("headroom of unlike switches is theirs, and the table names both") {
  const auto loaded = incast(ordered("sn2700", "sn5600", true), "{pfc: [3]}");
  std::map<std::string, Bytes> in_use;
  for (const auto& port : port_headrooms(loaded.topology, loaded.parameters))
    in_use[port.switch_type] = std::max(in_use[port.switch_type], port.configured);
  REQUIRE(in_use.size() == 2);
  CHECK(in_use["sn5600"] > in_use["sn2700"]);
  const auto table = describe_lossless(loaded.topology, loaded.parameters, &loaded.scenario);
  CAPTURE(table);
  CHECK(table.find("sn2700: flow control: pfc, values of spectrum-1") != std::string::npos);
  CHECK(table.find("sn5600: flow control: pfc, values of spectrum-4") != std::string::npos);
}

TEST_CASE("a lane's credits are those of the switch it leads to") {
  // 1 km at 100 Gb/s needs 130 kB: a Quantum-X800 has them, a Switch-IB does not.
  const auto time = [&](const std::string& first, const std::string& second) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{name: n, count: 2, type: server-2s-broadwell-1p100}]\n  fabric:\n   list:\n    switches: [{name: a, type: " +
        first + "}, {name: b, type: " + second +
        "}]\n    cables: [{from: n0.hca0, to: a}, {from: a, to: b, length: 1000 m}, {from: b, to: n1.hca0}]\n"
        "workload: {benchmark: traffic, sizes: [4 MB], flows: [{from: n0, to: n1}]}\n");
    return packets(loaded).time.seconds();
  };
  const double both_large = time("q3400", "q3400");
  CHECK(time("sb7800", "q3400") < 1.05 * both_large);
  CHECK(time("q3400", "sb7800") > 1.5 * both_large);
}
