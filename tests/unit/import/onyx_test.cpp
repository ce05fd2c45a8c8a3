// SPDX-License-Identifier: Apache-2.0
// Running configurations of Onyx switches: one in the form in which a switch prints it, read to its end.
#include "fabricast/import.hpp"
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

}  // namespace

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
