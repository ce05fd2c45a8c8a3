// SPDX-License-Identifier: Apache-2.0
// Running configurations of Onyx switches: one in the form in which a switch prints it, read to its end.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "fabricast/import.hpp"
#include "fabricast/simulate.hpp"
#include "tests/unit/import/captures.hpp"

using namespace fabricast;

namespace {

ImportedCluster imported(const std::string& text) {
  auto result = import_cluster({{"onyx.txt", text, SourceRole::any, "onyx"}});
  if (!result) FAIL(render(result.error()));
  return std::move(*result);
}

bool holds(const std::string& text, const std::string& words) {
  CAPTURE(text);
  return text.find(words) != std::string::npos;
}

std::string without(const std::string& text, const std::string& words) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    const auto line = text.substr(at, end - at);
    if (line.find(words) == std::string::npos) out += line;
    at = end;
  }
  return out;
}

std::string replaced(std::string text, const std::string& words, const std::string& others) {
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + others.size()))
    text.replace(at, words.size(), others);
  return text;
}

/// Five hosts send to a sixth through a switch with the imported settings.
struct Incast {
  int priority = 0;
  std::int64_t drops = 0, pauses = 0;
};
Incast incast(const std::string& configuration) {
  auto block = imported(configuration).yaml;
  std::string indented;
  for (std::size_t at = 0; at < block.size();) {
    const auto end = block.find('\n', at) + 1;
    indented += "      " + block.substr(at, end - at);
    at = end;
  }
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-onyx-{}.yaml", getpid());
  std::ofstream(path) << "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: "
                         "t\n  hosts: [{name: n, count: 6, host: {processor: xeon-skylake, devices: [{name: hca0, "
                         "type: connectx-5-100g, below: socket0}]}}]\n  fabric:\n    single_switch:\n      switch: "
                         "sn2700\n"
                      << indented
                      << "workload: {benchmark: traffic, pattern: incast, senders: 5, sizes: [8 MiB], transport: "
                         "{congestion_control: none}}\n";
  const auto loaded = load_scenario(path.string());
  std::filesystem::remove(path);
  if (!loaded) FAIL(render(loaded.error()));
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters, options);
  if (!run) FAIL(render(run.error()));
  const auto& row = run->workloads.at(0).rows.at(0);
  Incast out{row.flows.at(0).priority, static_cast<std::int64_t>(row.fabric->lossy_drops + row.fabric->lossless_drops),
             0};
  out.pauses = static_cast<std::int64_t>(row.fabric->pauses);
  return out;
}

}  // namespace

TEST_CASE("a full running configuration is read line by line, and its settings reach the packet engine") {
  const auto text = test::capture("onyx-roce-leaf.txt");
  const auto found = imported(text);
  CAPTURE(render(found.findings));
  CHECK(found.findings.empty());
  for (const auto* words :
       {"operating_system: onyx", "flow_control: pfc", "pfc: [3]", "trust: dscp",
        "dscp_to_priority: {24: 0, 34: 3, 48: 6}", "marks: {dscp: 34}", "pool_share: 0.5",
        "ecn: {min: 150 kB, max: 1500 kB}", "weights: {0: 40, 3: 60, 6: strict}", "cnp_priority: 6"}) {
    CAPTURE(words);
    CHECK(holds(found.yaml, words));
  }
  const auto lossless = incast(text);
  CHECK(lossless.priority == 3);
  CHECK(lossless.drops == 0);
  CHECK(lossless.pauses > 0);
  // Each of the lines that make priority 3 lossless is needed.
  for (const auto* line : {"priority-flow-control priority 3", "map switch-priority 3"}) {
    CAPTURE(line);
    const auto lossy = incast(without(text, line));
    CHECK(lossy.drops > 0);
    CHECK(lossy.pauses == 0);
  }
  // The map as some guides write it.
  CHECK(incast(replaced(text, " to switch-priority", " switch-priority")).drops == 0);
  // Without its map a DSCP is the priority of its upper three bits: 34 is 4, which nobody pauses.
  const auto unmapped =
      without(text, "qos map dscp 34") + "   interface ethernet 1/1 qos map dscp 35 switch-priority 3\n";
  CHECK(holds(imported(unmapped).yaml, "marks: {dscp: 35}"));
}

TEST_CASE("what is imported loads, whatever the configuration lacks") {
  const auto text = test::capture("onyx-roce-leaf.txt");
  for (const auto* line : {"qos trust", "qos map dscp", "congestion-control", "dcb ets", "memory percent",
                           "type lossless", "priority-flow-control enable", "priority-flow-control mode"}) {
    CAPTURE(line);
    incast(without(text, line));
  }
  for (const auto* name : {"onyx-roce-pool.txt", "onyx-mlag-spine.txt"}) incast(test::capture(name));
}

TEST_CASE("pools of advanced buffer management hold what is bound to their lossless groups") {
  const std::string lines =
      "advanced buffer management force\npool iPool1 size 5242880 type dynamic\npool iPool0 size 5242880 type dynamic\n"
      "interface ethernet 1/1-1/32 ingress-buffer iPort.pg3 bind switch-priority 3\n"
      "interface ethernet 1/1-1/32 ingress-buffer iPort.pg6 bind switch-priority 6\n"
      "interface ethernet 1/1-1/32 ingress-buffer iPort.pg3 map pool iPool1 type lossless reserved 67538 xoff 18432 "
      "xon "
      "18432 shared alpha 2\n"
      "interface ethernet 1/1-1/32 ingress-buffer iPort.pg6 map pool iPool0 type lossy reserved 10240 shared alpha 8\n"
      "interface ethernet 1/1-1/32 qos trust L3\nqos map dscp 26 to switch-priority 3\n"
      "dcb priority-flow-control enable force\ndcb priority-flow-control priority 3 enable\n"
      "interface ethernet 1/1-1/32 dcb priority-flow-control mode on force\n";
  const auto found = imported(lines);
  CHECK(found.findings.empty());
  for (const auto* words : {"pfc: [3]", "shared_buffer: 5242880 B", "alpha: 2\n"}) CHECK(holds(found.yaml, words));
  CHECK(incast(lines).drops == 0);
  const auto lossy = imported(replaced(lines, "type lossless", "type lossy"));
  CHECK(holds(render(lossy.findings), "PFC pauses priority 3, no lossless pool holds it"));
}

TEST_CASE("flow control that is switched on for no priority loses everything, and the import says at which ports") {
  const auto text = test::capture("onyx-mlag-spine.txt");
  REQUIRE(!text.empty());
  const auto found = imported(text);
  CHECK(holds(found.yaml, "flow_control: drop"));
  CHECK(holds(render(found.findings), "priority flow control is on at port-channel 100, and no priority has it"));
  CHECK(found.findings.size() == 1);
  // The same with a priority and its pool: the ports are named, those of the others are not lossless.
  const auto whole = imported(text +
                              "traffic pool roce type lossless\ntraffic pool roce map switch-priority 3\n"
                              "dcb priority-flow-control priority 3 enable\n");
  CHECK(whole.findings.empty());
  CHECK(holds(whole.yaml, "pfc: [3]  # at port-channel 100;"));
  // Many ports, odd bytes: a comment of one short line.
  std::string many =
      "dcb priority-flow-control enable force\ninterface ether\x01net 1/1 dcb priority-flow-control mode on\n";
  for (int port = 1; port <= 40; ++port)
    many += "interface ethernet 1/" + std::to_string(port) + " dcb priority-flow-control mode on force\n";
  CHECK(holds(render(imported(many).findings), "ethernet 1/1, ethernet 1/2, ethernet 1/3, ethernet 1/4 and 37 others"));
}

TEST_CASE("the running configuration of a switch with a lossless pool and no flow control is read, and doubted") {
  const auto text = test::capture("onyx-roce-pool.txt");
  REQUIRE(!text.empty());
  const auto found = imported(text);
  CHECK(holds(found.yaml, "trust: dscp"));
  CHECK(holds(found.yaml, "pool_share: 0.5"));
  CHECK(holds(found.yaml, "flow_control: drop"));
  CHECK(holds(render(found.findings), "a lossless pool holds priority 5, PFC does not pause it"));
  CHECK(found.findings.size() == 1);
  // With the lines that its own manual asks for.
  const auto whole = imported(text +
                              "dcb priority-flow-control enable force\ndcb priority-flow-control priority 5 enable\n"
                              "interface ethernet 1/1-1/32 dcb priority-flow-control mode on force\n");
  CHECK(whole.findings.empty());
  CHECK(holds(whole.yaml, "pfc: [5]"));
}

TEST_CASE("a pool holds every priority of its line") {
  const auto found = imported(
      "traffic pool roce type lossless\ntraffic pool roce map switch-priority 2 3 7\ndcb priority-flow-control enable "
      "force\ndcb priority-flow-control priority 2 enable\ndcb priority-flow-control priority 3 enable\n"
      "interface ethernet 1/1 dcb priority-flow-control mode on force\n");
  CHECK(holds(found.yaml, "pfc: [2, 3]"));
  CHECK(holds(render(found.findings), "a lossless pool holds priority 7, PFC does not pause it"));
}
