// SPDX-License-Identifier: Apache-2.0
// Traces that cannot be replayed: what is wrong, where, and what to write instead.
#include <algorithm>

#include "fabricast/replay.hpp"
#include "tests/support/clusters.hpp"
#include "tests/unit/trace/writers.hpp"

using namespace fabricast;
using test::ChakraNode;

namespace {

/// What reading and replaying says, empty when it works.
std::string said_of(const std::vector<TraceFile>& files, int copies = 0) {
  const auto trace = read_trace(files, copies);
  if (!trace) return render(trace.error());
  static const auto on = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/dgx-a100-pair.yaml");
  const auto report = replay(on->topology, on->parameters, *trace);
  return report ? std::string() : render(report.error());
}

std::string goal(const std::string& rank0, const std::string& rank1 = "") {
  return "num_ranks 2\nrank 0 {\n" + rank0 + "}\nrank 1 {\n" + rank1 + "}\n";
}

bool says(const std::string& text, const std::vector<std::string>& parts) {
  const bool out = std::ranges::all_of(parts, [&](const auto& part) { return text.find(part) != std::string::npos; });
  if (!out) MESSAGE(text);
  return out;
}

}  // namespace

TEST_CASE("faults of a GOAL schedule have their line and what to write") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> all{
      {goal("l1: send 8b to 1 tag 2\n"), {"t:3:1", "never receives", "add the receive"}},
      {goal("l1: recv 8b from 1 tag 2\n"), {"t:3:1", "never sends"}},
      {goal("l1: send 8b to 1\n", "l1: recv 9b from 0\n"), {"t:6:1", "8 B", "same bytes"}},
      {goal("l1: send 8 to 1\n"), {"t:3:1", "'8'", "1024b"}},
      {goal("l1: send 8b to 2\n"), {"t:3:1", "below num_ranks"}},
      {goal("l1: send 8b to 0\n"), {"t:3:1", "of another rank"}},
      {goal("l1: calc -5\n"), {"t:3:1", "nanoseconds"}},
      {goal("l1: calc 5 gpu 3\n"), {"t:3:1", "'gpu'", "cpu C"}},
      {goal("l1: calc 5\nl1: calc 6\n"), {"t:4:1", "twice"}},
      {goal("l1: calc 5\nl1 requires l7\n"), {"t:4:1", "'l7'"}},
      {goal("l1: calc 5\nl1 wants l7\n"), {"t:4:1", "LABEL: calc N"}},
      {goal("l1: calc 5\nl2: calc 5\nl1 requires l2\nl2 requires l1\n"), {"t:3:1", "waits for itself"}},
      {goal("l1: calc 5\nl1 requires l1\n"), {"t:3:1", "waits for itself"}},
      {"num_ranks 2\nrank 0 {\nl1: calc 1\n", {"cut off", "`}`"}},
      {"num_ranks 0\n", {"t:1:1", "1 to 65536"}},
      {"num_ranks 99999999999999999999\n", {"1 to 65536"}},
      {"rank 0 {\n}\n", {"t:1:1", "num_ranks"}},
      {"l1: calc 5\n", {"t:1:1", "outside"}},
      {"hello\n", {"t:1:1"}},
      {"", {"num_ranks"}},
      {"\xff\xfe", {"no text"}},
      {"\x1f\x8b\x08 compressed", {"gunzip"}},
      {std::string("\x7f\x10\0\0\0\0\0\0\2\0\0\0", 12), {"binary GOAL", "txt2bin"}},
  };
  for (const auto& one : all) {
    const auto& text = one.first;
    CAPTURE(text);
    CHECK(says(said_of({{"t", text}}), one.second));
  }
  CHECK(says(said_of({{"t", goal("")}, {"u", goal("")}}), {"beside other files"}));
  CHECK(says(said_of({{"t", goal("")}}, 4), {"leave --ranks out"}));
}

TEST_CASE("faults of a Chakra trace name the node and what is wrong with it") {
  const auto collective = [](std::vector<std::pair<std::string, std::string>> attributes) {
    return test::json({{3, 7, "c", 0, {}, std::move(attributes)}});
  };
  CHECK(says(said_of({{"t", collective({{"comm_type", "0"}})}}), {"t:4:1", "node 3", "comm_size"}));
  CHECK(says(said_of({{"t", collective({{"comm_size", "8"}})}}), {"comm_type", "0 all-reduce"}));
  CHECK(says(said_of({{"t", collective({{"comm_size", "8"}, {"comm_type", "3"}})}}),
             {"collective 3", "which NCCL has not"}));
  CHECK(says(said_of({{"t", collective({{"comm_size", "9999999999999999"}, {"comm_type", "0"}})}}), {"2^50"}));
  CHECK(says(said_of({{"t", test::json({{1, 4, "a", 1, {7}, {}}})}}), {"node 1", "node 7"}));
  CHECK(says(said_of({{"t", test::json({{1, 4, "a", 1, {}, {}}, {1, 4, "b", 1, {}, {}}})}}), {"earlier node"}));
  CHECK(says(said_of({{"t", test::json({{1, 4, "a", 1, {2}, {}}, {2, 4, "b", 1, {1}, {}}})}}), {"waits for itself"}));
  CHECK(says(said_of({{"t", test::json({{1, 5, "a", 1, {}, {{"comm_size", "4"}}}})}}), {"comm_dst"}));
  CHECK(says(said_of({{"t", test::json({{1, 5, "a", 1, {}, {{"comm_size", "4"}, {"comm_dst", "9"}}}})}}),
             {"rank 9", "all ranks"}));
  CHECK(says(said_of({{"t", test::json({{1, 4, "a", 4'000'000'000'000'000, {}, {}}})}}), {"1e12 us"}));
  CHECK(says(said_of({{"t", test::json({{1, 4, "a", 1, {}, {}}})}}, 17), {"17 ranks", "16 GPUs"}));
  CHECK(says(said_of({{"t", "{\"id\": \"x\"}"}}), {"t:1:1", "numbers"}));
  CHECK(says(said_of({{"t", "{\"id\": 1, \"type\": 4"}}), {"cut off"}));
  CHECK(says(said_of({{"t", std::string(5000, '{')}}), {"cut off"}));
  CHECK(says(said_of({{"t", "{\"version\": \"1\"}"}}), {"no node"}));
  CHECK(said_of({{"t", test::protobuf({{1, 4, "a", 1, {}, {}}})}}).empty());
}

TEST_CASE("what PyTorch writes before it is a Chakra trace is refused with the way to one, not replayed as nothing") {
  const std::string thread =
      R"({"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1, "inputs": {"values": []},)"
      R"( "attrs": [{"name": "rf_id", "type": "uint64", "value": 0}]})";
  CHECK(says(said_of({{"t", R"({"schema": "1.1.1-chakra.0.0.4", "pid": 2784631, "start_ts": 2188364098, "nodes": [)" +
                                thread + R"(], "finish_ts": 2188364999})"}}),
             {"t:1:1", "PyTorch's execution trace of the host", "chakra_trace_link"}));
  CHECK(says(said_of({{"t", R"({"traceEvents": [{"name": "k", "ph": "X", "ts": 1, "dur": 2}]})"}}),
             {"PyTorch's profiler", "chakra_converter"}));
  CHECK(says(said_of({{"t", R"({"pid": 1, "time": "now"})"}}), {"no node", "neither id nor type"}));
}

TEST_CASE(
    "a published excerpt of a converted trace is read: ids and numbers as strings, names as protobuf writes them") {
  // ASTRA-sim's page on communicator groups shows this node; the object before it is the metadata, the one it waits for
  // is added.
  const std::string text = R"({"version": "0.0.4"}
{"id": "3", "name": "layer", "type": "COMP_NODE", "durationMicros": "15", "attr": [{"name": "is_cpu_op", "boolVal": false}]}
{"id": "4", "name": "in_emb_y@0_X1COMM", "type": "COMM_COLL_NODE", "dataDeps": ["3"], "attr": [
  {"name": "comm_size", "int64Val": "26843545600"}, {"name": "comm_type", "int64Val": "2"},
  {"name": "pg_name", "stringVal": "17"}, {"name": "is_cpu_op", "int32Val": 0}]}
)";
  CHECK(said_of({{"t.0.json", text}, {"t.1.json", text}}).empty());
  const auto trace = read_trace({{"t.0.json", text}, {"t.1.json", text}}, 0);
  REQUIRE(trace);
}

TEST_CASE("ranks whose collectives differ are told apart by their places") {
  const auto one = [](const char* type, const char* size) {
    return test::json({{1, 7, "c", 0, {}, {{"comm_type", type}, {"comm_size", size}, {"pg_name", "tp"}}}});
  };
  CHECK(says(said_of({{"a.0.json", one("0", "64")}, {"a.1.json", one("0", "128")}}),
             {"a.1.json:4:1", "group 'tp'", "64 B"}));
  CHECK(says(said_of({{"a.0.json", one("0", "64")}, {"a.1.json", one("7", "64")}}), {"in one order"}));
  CHECK(said_of({{"a.0.json", one("0", "64")}, {"a.1.json", one("0", "64")}}).empty());
}

TEST_CASE("a protobuf trace that is cut anywhere gets a message, never a crash") {
  const auto whole =
      test::protobuf({{1, 4, "forward", 100, {}, {{"stream", "7"}}},
                      {2, 7, "all-reduce", 0, {1}, {{"comm_type", "0"}, {"comm_size", "4096"}, {"pg_name", "x"}}}});
  int refused = 0;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto said = said_of({{"t", whole.substr(0, cut)}});
    refused += said.empty() ? 0 : 1;
  }
  CHECK(refused >= static_cast<int>(whole.size()) - 2);  // a cut between two nodes leaves a trace
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {1, 7, 0x80, 0xff}) {
      auto damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      (void)said_of({{"t", damaged}});
    }
  }
}

TEST_CASE("groups beside traces say who is missing, who is too many, and what is no list of groups") {
  Trace trace;
  trace.format = "chakra";
  TraceOp op;
  op.kind = TraceOpKind::collective;
  op.name = "all_reduce";
  op.group = "tp";
  trace.ranks = {{op}, {op}, {}};
  const auto said = [&](const std::string& text) {
    const auto checked = check_groups(trace, {"groups.json", text});
    return checked ? std::string() : render(checked.error());
  };
  CHECK(said(R"({"tp": [0, 1]})").empty());
  CHECK(said(R"({"dp": [0, 2]})").empty());  // no trace names it
  const std::vector<std::pair<std::string, std::vector<std::string>>> all{
      {R"({"tp": [0, 1, 2]})", {"rank 2 of group 'tp' never takes part", "groups.json"}},
      {R"({"tp": [0]})", {"'all_reduce' is of group 'tp', which rank 1 is not in"}},
      {R"({"tp": [0, 3]})", {"rank 3", "0 to 2"}},
      {R"({"tp": [0, -1]})", {"rank -1"}},
      {R"({"tp": [0, 0]})", {"rank 0 twice"}},
      {R"({"tp": [0.5]})", {"rank 0.5"}},
      {R"({"tp": {"0": 1}})", {"no list of ranks"}},
      {R"({"tp": [0, 1]})" + std::string("x"), {"cut off or no JSON"}},
      {R"({"tp": [0, )", {"cut off or no JSON"}},
      {"", {"cut off or no JSON"}},
      {std::string(100'000, '['), {"groups within groups"}},
      {"\xff\xfe{}", {"cut off or no JSON"}},
  };
  for (const auto& one : all) {
    CAPTURE(one.first.substr(0, 40));
    CHECK(says(said(one.first), one.second));
  }
}
