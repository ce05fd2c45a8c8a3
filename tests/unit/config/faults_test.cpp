// SPDX-License-Identifier: Apache-2.0
// One test per kind of faulty input: the whole message, never a crash.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;
using test::shown;
using test::write_file;

namespace {

std::string topology_faults(const std::string& text) {
  const auto loaded = load_topology(write_file("t.yaml", text));
  if (loaded) return "";
  return shown(loaded.error());
}

const std::string k_host = "schema: fabricast/topology/1\nname: t\nhosts:\n";

}  // namespace

TEST_CASE("an unknown key names the nearest one") {
  CHECK(topology_faults(k_host + "  - {name: n, typ: dgx-a100}\n") ==
        "t.yaml:4:15: error: unknown key 'typ' in a host group\n"
        "    4 |   - {name: n, typ: dgx-a100}\n"
        "      |               ^\n"
        "      = note: did you mean 'type'?\n");
}

TEST_CASE("NCCL's environment variables that have another place here, or none, are answered with it") {
  const auto answer = [](const std::string& key) {
    const auto loaded = load_scenario(
        write_file("s.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                                 "/topologies/dgx-a100-pair.yaml\nsoftware: {nccl: {" + key +
                                 ": 1}}\nworkload: {benchmark: all_reduce_perf}\n"));
    return loaded ? "" : shown(loaded.error());
  };
  for (const auto& [key, hint] : std::vector<std::pair<std::string, std::string>>{
           {"NCCL_ALGO", "write 'algorithm' in the workload"},
           {"proto", "write 'protocol' in the workload"},
           {"NCCL_MIN_NCHANNELS", "write 'channels' in the workload, NCCL's least and most number of them"},
           {"NCCL_P2P_DISABLE", "write 'p2p: off'"},
           {"p2p_level", "peer access is NCCL's own by distance and release, or none with 'p2p: off'"},
           {"NCCL_BUFFSIZE", "write a size under 'parameters' of the topology: 'nccl.buffer_size'"},
           {"NCCL_NTHREADS", "not modelled, NCCL's own default holds"},
           {"NCCL_CROSS_NIC", "did you mean 'cross_nic'?"}}) {
    const auto told = answer(key);
    CAPTURE(told);
    CHECK(told.find("unknown key '" + key + "' in the NCCL settings") != std::string::npos);
    CHECK(told.find("= note: " + hint + "\n") != std::string::npos);
  }
}

TEST_CASE("NVLink SHARP is auto, on or off") {
  const auto answer = [](const std::string& value) {
    const auto loaded = load_scenario(
        write_file("s.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                                 "/topologies/dgx-a100-pair.yaml\nsoftware: {nccl: {nvls: " + value +
                                 "}}\nworkload: {benchmark: all_reduce_perf}\n"));
    return loaded ? "" : shown(loaded.error());
  };
  for (const auto* value : {"auto", "on", "off"}) CHECK(answer(value).empty());
  CHECK(answer("maybe").find("'nvls' must be on or off or auto, found 'maybe'") != std::string::npos);
  CHECK(answer("[on]").find("'nvls' must be on or off or auto, found a list") != std::string::npos);
}

TEST_CASE("a release is major.minor with digits behind it, whatever software it is of") {
  const auto answer = [](const std::string& software) {
    const auto loaded = load_scenario(
        write_file("s.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                                 "/topologies/dgx-a100-pair.yaml\nsoftware: {" + software +
                                 "}\nworkload: {benchmark: osu_latency}\n"));
    return loaded ? "" : shown(loaded.error());
  };
  for (const auto* key : {"cuda", "ofed", "mpi_version", "ucx", "version"}) {
    const auto line = [&](const std::string& value) {
      const auto entry = fmt::format("{}: \"{}\"", key, value);
      return std::string_view(key) == "version" ? "nccl: {" + entry + "}" : entry;
    };
    for (const auto* good : {"12.4", "5.4-1.0.3", "2.18.3"}) CHECK(answer(line(good)) == "");
    for (const auto* bad : {"4", "four", "4.", "4.1x", "4.1 rc", "0.9", "-4.1", "4.-1", "123.4", "4.1.x"})
      CHECK(answer(line(bad)).find(fmt::format("'{}' must be ", key)) != std::string::npos);
    CHECK(answer(line("")).find(" is empty") != std::string::npos);
  }
}

TEST_CASE("a key of a workload that its benchmark does not read is said, and no other") {
  const auto warnings = [](const std::string& workload) {
    const auto loaded = load_scenario(
        write_file("s.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                                 "/topologies/dgx-a100-pair.yaml\nworkload: {benchmark: " + workload + "}\n"));
    return loaded ? shown(loaded->warnings) : shown(loaded.error());
  };
  const std::map<std::string, std::vector<std::string>> readers{
      {"channels: 2", {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf"}},
      {"protocol: ll", {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf"}},
      {"launch: graph", {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf"}},
      {"window: 2", {"osu_bw", "osu_mbw_mr", "ib_write_bw"}},
      {"pairs: 2", {"osu_mbw_mr"}},
      {"queue_pairs: 2", {"ib_write_bw"}},
      {"bidirectional: on", {"ib_write_bw"}},
      {"root: 1", {"osu_bcast", "osu_reduce", "broadcast_perf", "reduce_perf"}},
      {"direction: to_device", {"host_copies"}},
      {"streams: 2", {"iperf3"}},
      {"devices: [node0.gpu0, node1.gpu0]",
       {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf", "osu_bw", "osu_latency", "osu_mbw_mr",
        "ib_write_bw", "host_copies"}},
      {"gpus: 2",
       {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf", "osu_bw", "osu_latency", "osu_mbw_mr",
        "osu_bcast", "osu_reduce", "osu_alltoall", "osu_barrier", "ib_write_bw", "host_copies"}},
      {"ranks: 4",
       {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf", "osu_mbw_mr", "osu_bcast", "osu_reduce",
        "osu_alltoall", "osu_barrier"}}};
  for (const auto& reader : readers) {
    const auto& line = reader.first;
    const auto& by = reader.second;
    for (const auto* benchmark :
         {"all_reduce_perf", "sendrecv_perf", "broadcast_perf", "reduce_perf", "osu_bw", "osu_latency", "osu_mbw_mr",
          "osu_bcast", "osu_reduce", "osu_alltoall", "osu_barrier", "ib_write_bw", "host_copies", "iperf3"}) {
      CAPTURE(line);
      CAPTURE(benchmark);
      const bool is_read = std::ranges::count(by, benchmark) > 0;
      const auto words = fmt::format("{} does not read '{}'", benchmark, line.substr(0, line.find(':')));
      CHECK((warnings(benchmark + std::string(", ") + line).find(words) == std::string::npos) == is_read);
    }
  }
}

TEST_CASE("the statistic over ranks belongs to MPI collectives, elsewhere it is refused") {
  const auto faults = [](const std::string& workload) {
    const auto loaded = load_scenario(write_file(
        "s.yaml", "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                      "/topologies/dgx-a100-pair.yaml\nworkload: {statistic: max, benchmark: " + workload + "}\n"));
    return loaded ? "" : shown(loaded.error());
  };
  for (const auto* benchmark : {"osu_bcast", "osu_allreduce", "osu_alltoall", "osu_barrier"})
    CHECK(faults(benchmark) == "");
  for (const auto* benchmark : {"osu_latency", "osu_mbw_mr", "all_reduce_perf", "ib_write_bw", "iperf3"}) {
    CAPTURE(benchmark);
    CHECK(faults(benchmark).find(fmt::format("'statistic' belongs to MPI collectives, not to {}", benchmark)) !=
          std::string::npos);
  }
}

TEST_CASE("an unknown device type names the nearest ones") {
  CHECK(topology_faults(k_host + "  - {name: n, type: dgx-a10}\n") ==
        "t.yaml:4:21: error: no device type 'dgx-a10'\n"
        "    4 |   - {name: n, type: dgx-a10}\n"
        "      |                     ^\n"
        "      = note: did you mean 'dgx-a100' or 'dgx-a100-80'?\n");
}

TEST_CASE("an unknown device type names those that its makers call so") {
  const auto hint_for = [](const std::string& name) {
    const auto text = topology_faults(
        k_host + "  - {name: n, count: 2, type: dgx-a100}\nfabric: {single_switch: {switch: " + name + "}}\n");
    const auto at = text.find("note: ");
    return at == std::string::npos ? text : text.substr(at + 6, text.find('\n', at) - at - 6);
  };
  CHECK(hint_for("quantum-2") == "did you mean 'qm9700'?");
  CHECK(hint_for("Switch-IB 2") == "did you mean 'sb7800'?");
  CHECK(hint_for("slingshot switch") == "did you mean 'rosetta'?");
  // Of many it says nothing, as of none.
  for (const auto* name : {"nvidia", "on", "quantum-7"}) CHECK(hint_for(name).starts_with("`fabricast list devices "));
}

TEST_CASE("a device of the wrong kind is refused where it is named") {
  CHECK(topology_faults(k_host + "  - {name: n, type: v100-sxm2-16}\n")
            .find("'v100-sxm2-16' is a gpu, a host is expected here") != std::string::npos);
}

TEST_CASE("empty, binary, non-UTF-8, missing files and directories each get their own message") {
  CHECK(topology_faults("") ==
        "t.yaml: error: the file is empty\n      = note: the first line says what it is, e.g. `schema: "
        "fabricast/topology/1`\n");
  CHECK(topology_faults("# only a comment\n").find("the file is empty") != std::string::npos);
  CHECK(topology_faults(std::string("a\0b", 3)).find("this is a binary file") != std::string::npos);
  CHECK(topology_faults("name: \xff\xfe\n").find("t.yaml:1:7: error: the byte 0xff is not UTF-8") != std::string::npos);
  const auto missing = load_topology("/nonexistent/t.yaml");
  REQUIRE_FALSE(missing);
  CHECK(render(missing.error()) == "/nonexistent/t.yaml: error: cannot open the file: No such file or directory\n");
  const auto folder = load_topology(std::filesystem::temp_directory_path().string());
  REQUIRE_FALSE(folder);
  CHECK(render(folder.error()).find("this is a directory") != std::string::npos);
}

TEST_CASE("a file of 100 MB is refused by its size") {
  const auto path = write_file("big.yaml", "name: x\n");
  std::filesystem::resize_file(path, 100'000'000);
  const auto loaded = load_topology(path);
  REQUIRE_FALSE(loaded);
  CHECK(shown(loaded.error()).find("big.yaml: error: the file has 95 MiB, the largest accepted is 16 MiB") == 0);
}

TEST_CASE("alias bombs are stopped by counting what they expand to") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK(topology_faults(bomb).find("the document has more than 200000 nodes after its aliases are expanded") !=
        std::string::npos);
  CHECK(topology_faults("a: &a [*a]\n") != "");
}

TEST_CASE("deep nesting is refused before anything recurses") {
  CHECK(topology_faults(std::string(100'000, '[')).find("nested more than 64 deep") != std::string::npos);
  std::string block;
  for (int i = 0; i < 3'000; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(topology_faults(block).find("nested more than 64 deep") != std::string::npos);
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  CHECK(topology_faults(dashes).find("nested more than 64 deep") != std::string::npos);
}

TEST_CASE("syntax errors, two documents, merge keys and lists as keys are named with their place") {
  CHECK(topology_faults("name: [1, 2\n").find("t.yaml:1:7: error: '[' is not closed") == 0);
  CHECK(topology_faults("name: a\n---\nname: b\n").find("a second document starts here") != std::string::npos);
  CHECK(topology_faults("<<: {a: 1}\nname: x\n").find("t.yaml:1:1: error: merge keys ('<<') are not supported") == 0);
  CHECK(topology_faults("? [a, b]\n: 1\n").find("a key must be a word, found a list") != std::string::npos);
  CHECK(topology_faults("- a\n").find("the document must be a mapping, found a list") != std::string::npos);
}

TEST_CASE("a slip of YAML is named where it is, with the fix, in no words of the parser's") {
  struct Slip {
    std::string text, message, hint;
  };
  const std::string head = "schema: fabricast/topology/1\nname: t\n";
  const std::vector<Slip> slips{
      {"schema fabricast/topology/1\nname: t\n", "1:1: error: no ': ' parts key and value",
       "write 'schema: fabricast/topology/1'"},
      {"schema:fabricast/topology/1\nname: t\n", "1:1: error: no ': ' parts", "write 'schema: fabricast/topology/1'"},
      {head + "hosts:\n  - name: n\n    count=2\n    type: x\n", "5:5: error: no ': ' parts", "write 'count: 2'"},
      {head + "hosts:\n  - name=n\n    count: 2\n", "4:5: error: no ': ' parts", "write 'name: n'"},
      {head + "hosts: []\nfabric={single_switch: {cable: 3 m}}\n", "4:1: error: no ': '", "'fabric: {single_switch: {"},
      {head + "hosts: []\nfabric:{single_switch: {cable: 3 m}}\n", "4:1: error: no ': '", "'fabric: {single_switch: {"},
      {head + "\thosts: []\n", "3:1: error: a tab indents this line", "blanks"},
      {head + "hosts:\n\t- {name: n}\n", "4:1: error: a tab indents this line", "blanks"},
      {head + "hosts:\n  - name: n\n      count: 2\n", "5:7: error: this line is deeper than the one above",
       "beside it"},
      {head + "hosts:\n   - name: n\n  count: 2\n", "5:3: error: the indentation of this line fits nothing",
       "beside it"},
      {head + "hosts:\n  - name: n\n  fabric:\n    x: 1\n", "5:3: error: the indentation of this line", "beside it"},
      {head + "hosts:\n  - {name: n, type: x\nfabric: {}\n", "4:5: error: '{' is not closed", "end it with '}'"},
      {head + "hosts: [{name: n}\nfabric: {}\n", "3:8: error: '[' is not closed", "end it with ']'"},
      {head + "hosts: []]\n", "3:10: error: a closing bracket has no opening one", "remove it"},
      {"schema: \"fabricast/topology/1\nname: t\n", "1:9: error: the quote that opens here is not closed", "its line"},
      {"name: 'it''s\nhosts: []\n", "1:7: error: the quote that opens here is not closed", "its line"},
      {"name: \"t\nhosts: \"x\"\n", "1:7: error: the quote that opens here is not closed", "its line"},
      {head + "hosts: *nope\n", "3:8: error: an alias refers to an anchor that is not above it", "write the value out"},
      {head + "description: a: b\n", "3:15: error: a second ': ' follows on one line", "in quotes"},
      {head + "description: @a\n", "3:14: error: a value cannot begin with '@'", "in quotes"},
      {head + "description: \"a\\qb\"\n", "3:", "single quotes"},
  };
  for (const auto& slip : slips) {
    CAPTURE(slip.text);
    const auto faults = topology_faults(slip.text);
    INFO(faults);
    CHECK(faults.find("t.yaml:" + slip.message) == 0);
    CHECK(faults.find(slip.hint) != std::string::npos);
    CHECK(faults.find("illegal") == std::string::npos);
    CHECK(faults.find("not found") == std::string::npos);
  }
  // Quotes, brackets and colons inside texts are none.
  for (const auto* text : {"a 'b\" [c: d", "it's {so"})
    CHECK(topology_faults(head + fmt::format("description: |\n  x: \"y\n  {}\nhosts: []\n", text)).find("not closed") ==
          std::string::npos);
  CHECK(topology_faults(head + "description: don't [stop\nhosts: []\n").find("not closed") == std::string::npos);
}

TEST_CASE("a key without its colon inside braces is told with it, one in capitals without them") {
  const auto of = [](const std::string& group) {
    return topology_faults("schema: fabricast/topology/1\nname: t\nhosts:\n  - {" + group + "}\n");
  };
  CHECK(of("name=n, type: dgx-1-v100").find("write 'name: n'") != std::string::npos);
  CHECK(of("name n, type: dgx-1-v100").find("write 'name: n'") != std::string::npos);
  CHECK(of("name:n, type: dgx-1-v100").find("write 'name: n'") != std::string::npos);
  CHECK(of("NAME: n, type: dgx-1-v100").find("did you mean 'name'?") != std::string::npos);
}

TEST_CASE("what hangs below nothing, ends at nothing or does not fit is reported all at once") {
  const auto faults = topology_faults(
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: n\n    host:\n      processor: xeon-skylake\n      "
      "devices:\n"
      "        - {name: gpu0, type: v100-pcie-16, below: sw0}\n        - {name: gpu1, type: v100-pcie-16, below: "
      "socket7}\n        - {name: gpu2, type: v100-pcie-16}\n"
      "        - {name: hca0, type: connectx-5-edr, below: socket0}\n      nvlinks:\n        - {from: hca0, to: "
      "gpu0}\n");
  CHECK(faults.find("device 'gpu0' is below 'sw0', which the host does not have") != std::string::npos);
  CHECK(faults.find("device 'gpu1' is below 'socket7', which the host does not have") != std::string::npos);
  CHECK(faults.find("device 'gpu2' does not say what it is below") != std::string::npos);
  CHECK(faults.find("NVLink ends at 'hca0', which is no GPU or NVSwitch of the host") != std::string::npos);
}

TEST_CASE("cycles of `below` and duplicate names are found") {
  const auto faults = topology_faults(
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: n\n    host:\n      processor: xeon-skylake\n      "
      "devices:\n"
      "        - {name: a, kind: pcie_switch, below: b}\n        - {name: b, kind: pcie_switch, below: a}\n        - "
      "{name: c, kind: pcie_switch, below: socket0}\n        - {name: c, kind: pcie_switch, below: socket1}\n");
  CHECK(faults.find("device 'b' is below 'a', which is below 'b' itself") != std::string::npos);
  CHECK(faults.find("two devices are called 'c'") != std::string::npos);
}

TEST_CASE("a switch with too few ports and a cable to nowhere are faults of the fabric") {
  CHECK(topology_faults(k_host +
                        "  - {name: n, count: 64, type: dgx-1-v100}\nfabric:\n  single_switch: {switch: sb7800}\n")
            .find("256 HCAs do not fit on one switch of 36 ports") != std::string::npos);
  CHECK(topology_faults(k_host + "  - {name: n, count: 2, type: dgx-1-v100}\nfabric:\n  list:\n    switches: [{name: "
                                 "s, type: sb7800}]\n    cables: [{from: n0.hca9, to: s}]\n")
            .find("cable ends at 'n0.hca9', which is no HCA or switch") != std::string::npos);
}

TEST_CASE("faults of the scenario and of its topology come in one answer") {
  write_file("t.yaml", k_host + "  - {name: n, count: zero, type: dgx-a100}\n");
  const auto loaded = load_scenario(write_file(
      "s.yaml",
      "schema: fabricast/scenario/1\nname: s\ntopology: t.yaml\nworkload: {benchmark: osu_latencies, window: 0}\n"));
  REQUIRE_FALSE(loaded);
  const auto text = shown(loaded.error());
  CHECK(text.find("s.yaml:4:23: error: 'benchmark' is 'osu_latencies', which is not known") != std::string::npos);
  CHECK(text.find("s.yaml:4:46: error: 'window' is 0, allowed is 1 to 100000") != std::string::npos);
  CHECK(text.find("t.yaml:4:22: error: 'count' must be a whole number, found 'zero'") != std::string::npos);
}

TEST_CASE("--set changes counts, adds keys, reaches list elements by name or number, and reports bad paths") {
  CHECK(test::shipped("allreduce-dgx-a100-16.yaml", {{"workload.gpus", "8"}}).scenario.workloads[0].gpus == 8);
  CHECK(test::shipped("allreduce-dgx-a100-16.yaml", {{"workload.channels", "4"}}).scenario.workloads[0].channels == 4);
  CHECK(test::shipped("allreduce-dgx-a100-16.yaml", {{"workload.sizes", "[1 MiB, 2 MiB]"}})
            .scenario.workloads[0]
            .sizes.size() == 2);
  const auto moved = test::shipped("osu-latency-fdr-gpudirect.yaml",
                                   {{"topology.hosts.node.devices", "[{name: hca0, below: socket1}]"}});
  CHECK(moved.topology.device(moved.topology.device_in_host(0, DeviceKind::hca, 0)).socket == 1);
  const auto counted = test::shipped("allreduce-dgx-a100-16.yaml", {{"topology.hosts.0.count", "3"}});
  CHECK(counted.topology.num_hosts() == 3);
  const auto bad = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/osu-latency-fdr-gpudirect.yaml", {},
                                 {{"topology.hosts.nodes.count", "3"}});
  REQUIRE_FALSE(bad);
  CHECK(render(bad.error()) ==
        "--set topology.hosts.nodes.count=3: error: the list has no element 'nodes'\n      = note: did you mean "
        "'node'?\n");
}

TEST_CASE("documents mutated at random are refused or read, never a crash") {
  std::uint64_t state = 12345;
  const auto next = [&state] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return state >> 33;
  };
  std::vector<std::string> texts;
  for (const auto* name : {"/scenarios/osu-latency-fdr-gpudirect.yaml", "/topologies/irregular-list.yaml",
                           "/topologies/fdr-kepler-pair.yaml", "/scenarios/two-jobs.yaml"}) {
    std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + name);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  const std::string pieces[] = {"{",  "}",  "[", "]", ":",  "- ",       "&a ",        "*a", "\n",     "  ", "'",
                                "\"", "\t", "|", "0", "-1", "gen9 x99", "1e999 GB/s", "%",  "!!int ", "<<", "\xc3\xa9"};
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    auto text = texts[next() % texts.size()];
    for (int change = 0; change < 3; ++change) {
      const auto at = next() % (text.size() + 1);
      if (next() % 2 == 0)
        text.insert(at, pieces[next() % std::size(pieces)]);
      else
        text.erase(at, next() % 8);
    }
    const auto path = write_file("mutant.yaml", text);
    const auto scenario = load_scenario(path);
    const auto topology = load_topology(path);
    if (!scenario) CHECK_FALSE(render(scenario.error()).empty());
    if (!topology) CHECK_FALSE(render(topology.error()).empty());
    refused += !scenario && !topology ? 1 : 0;
  }
  CHECK(refused > 500);
}
