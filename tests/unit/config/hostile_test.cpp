// SPDX-License-Identifier: Apache-2.0
// Input that nobody means well with: bytes that are no text, control characters, aliases that grow, paths without end.
#include <string>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

constexpr const char* k_head = "schema: fabricast/scenario/1\nname: hostile\n";
constexpr const char* k_pair =
    "topology:\n  schema: fabricast/topology/1\n  name: pair\n  hosts: [{name: node, count: 2, type: dgx-a100}]\n"
    "  fabric: {single_switch: {switch: qm8700}}\nworkload: {benchmark: osu_bw, sizes: [1 KiB]}\n";

std::string faults_of(const std::string& text, const std::vector<Setting>& settings = {}) {
  const auto loaded = load_scenario_text("s.yaml", text, {}, settings);
  return loaded ? "" : render(loaded.error());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("bytes that are no UTF-8 are refused where they are") {
  for (const auto* bad : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    const auto loaded =
        load_scenario(test::write_file("bad.yaml", std::string(k_head) + "a\xC3\xA9: b\n  cd" + bad + "\n"));
    REQUIRE_FALSE(loaded.has_value());
    const auto message = test::shown(loaded.error());
    CAPTURE(message);
    CHECK(message.rfind("bad.yaml:4:5: error: the byte 0x", 0) == 0);
    CHECK(has(message, "is not UTF-8"));
    CHECK(has(message, "save the file as UTF-8"));
  }
}

TEST_CASE("control characters are refused in keys and values, written out or escaped, values may have lines") {
  CHECK(has(faults_of(std::string(k_head) + "\"a\\e[31m\": 1\n"),
            "s.yaml:3:1: error: the key 'a\\x1b[31m' has a control"));
  CHECK(has(faults_of(std::string(k_head) + "description: \"a\\x07\"\n"),
            "s.yaml:3:14: error: the value 'a\\x07' has a"));
  CHECK(has(faults_of(std::string(k_head) + "description: \"a\\u202eb\"\n"), "has a control character"));
  CHECK(has(faults_of(std::string(k_head) + "\"a\\nb\": 1\n"), "the key 'a\\x0ab' has a control character"));
  const auto lines = faults_of(std::string(k_head) + k_pair + "description: \"a\\n\\tb\"\n");
  CHECK(lines == "");
  const auto late = faults_of(std::string(k_head) + k_pair + "description: \"a\\n\\tb\\e\"\n");
  CHECK(has(late, "control character"));
  for (const auto& message : {lines, late}) CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("a setting is refused for the same reasons as a file") {
  const auto refused = [](const std::string& path, const std::string& value) {
    const auto message = faults_of(std::string(k_head) + k_pair, {{path, value}});
    CHECK(message.size() < 2000);
    return message;
  };
  CHECK(has(refused("name", "a\x1b"), "--set name=a\\x1b: error: 'a\\x1b' has a control character"));
  CHECK(has(refused("na\x1bme", "a"), "has a control character"));
  CHECK(has(refused("name", "a\xFF"), "is not UTF-8"));
  CHECK(has(refused("a\xFF", "1"), "is not UTF-8"));
  CHECK(has(refused("workload..sizes", "1"), "the path has an empty part"));
  CHECK(has(refused("workload.sizes.9", "1 KiB"), "the list has no element '9'"));
  for (const auto* path : {"workload.sizes[0]", "topology.hosts[0].count", "topology.hosts[node].count"}) {
    CAPTURE(path);
    CHECK(has(refused(path, "1"), "is no part of a path"));
    CHECK(has(refused(path, "1"), "stand behind a dot, by name or number: write '"));
  }
  CHECK(has(refused("topology.hosts[0].count", "3"), "write 'hosts.0'"));
  CHECK(has(refused("name.x.y", "1"), "'x' cannot be set inside the value 'hostile'"));
  std::string path = "a";
  for (int i = 1; i < 64; ++i) path += ".a";
  CHECK(has(refused(path, "1"), "unknown key 'a'"));
  CHECK(has(refused(path + ".a", "1"), "the path has 65 parts"));
  for (int i = 64; i < 60'000; ++i) path += ".a";
  CHECK(has(refused(path, "1"), "the path has 60000 parts"));
}

TEST_CASE("a setting changes what its path names: by key, by name of an element, by number") {
  const auto text = std::string(k_head) + k_pair;
  const auto loaded = load_scenario_text(
      "s.yaml", text, {}, {{"topology.hosts.node.count", "3"}, {"workload.sizes.0", "2 KiB"}, {"name", "b"}});
  REQUIRE(loaded.has_value());
  CHECK(loaded->topology.num_hosts() == 3);
  CHECK(loaded->scenario.workloads[0].sizes == std::vector<Bytes>{Bytes{2048}});
  CHECK(loaded->scenario.name == "b");
  CHECK(load_scenario_text("s.yaml", text, {}, {{"topology.hosts.0.count", "5"}})->topology.num_hosts() == 5);
}

TEST_CASE("aliases cannot make a small file large") {
  std::string nested = "a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8]\n";
  for (int i = 1; i < 8; ++i) {
    nested += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 8; ++k) nested += "*a" + std::to_string(i - 1) + (k < 7 ? ", " : "]\n");
  }
  CHECK(has(faults_of(k_head + nested), "more than 200000 nodes after its aliases are expanded"));
  std::string longer = "a: &a " + std::string(1 << 20, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) longer += "*a, ";
  CHECK(has(faults_of(k_head + longer + "*a]\n"), "more than 64 MiB after its aliases are expanded"));
  // What is there without aliases counts once, however deep it lies.
  std::string deep = "a: &a 1\nb: [[[[[[";
  for (int i = 0; i < 60'000; ++i) deep += "1, ";
  CHECK_FALSE(has(faults_of(k_head + deep + "*a]]]]]]\n"), "nodes"));
  CHECK(has(faults_of(std::string(k_head) + "a: &a [*a]\n"), "an alias refers to a list or mapping it is part of"));
}

TEST_CASE("a key given twice is reported with both places, and the first counts") {
  const auto message =
      faults_of(std::string(k_head) + "software: {mpi: one}\nsoftware: {mpi: two}\n? [x]\n: 1\n<<: 2\n");
  CHECK(has(message, "s.yaml:4:1: error: key 'software' is given twice"));
  CHECK(has(message, "s.yaml:3:1: note: 'software' is first given here"));
  CHECK(has(message, "s.yaml:5:3: error: a key must be a word, found a list"));
  CHECK(has(message, "s.yaml:7:1: error: merge keys"));
}

TEST_CASE("nesting deeper than 64 is refused before anything recurses") {
  const auto nested = [](int n) {
    return "a: " + std::string(static_cast<std::size_t>(n), '[') + std::string(static_cast<std::size_t>(n), ']') + "\n";
  };
  CHECK_FALSE(has(faults_of(k_head + nested(63)), "nested"));
  CHECK(has(faults_of(k_head + nested(64)), "nested more than 64 deep"));
  CHECK(has(faults_of(k_head + nested(100'000)), "nested more than 64 deep"));
}

TEST_CASE("faults come in the order of files and lines, each once") {
  const auto message =
      faults_of(std::string(k_head) + "topology: {schema: fabricast/topology/1, name: t, zz: 1}\nyy: 2\nxx: 1\n");
  CHECK(message.find(":3:") < message.find(":4:1: error: unknown key 'yy'"));
  CHECK(message.find("'yy'") < message.find("'xx'"));
  CHECK(message.find("unknown key 'zz'") == message.rfind("unknown key 'zz'"));
}

TEST_CASE("sizes are the nearest bytes, and a sweep reaches its end") {
  const auto sizes = [](const std::string& given) {
    const auto loaded = load_scenario_text("s.yaml", std::string(k_head) + k_pair, {}, {{"workload.sizes", given}});
    if (!loaded) FAIL(render(loaded.error()));
    return loaded->scenario.workloads[0].sizes;
  };
  CHECK(sizes("[1.001 kB]") == std::vector<Bytes>{Bytes{1001}});
  CHECK(sizes("{from: 0, to: 8 B}") == std::vector<Bytes>{Bytes{0}, Bytes{1}, Bytes{2}, Bytes{4}, Bytes{8}});
  CHECK(sizes("{from: 3 B, to: 27 B, factor: 3}") == std::vector<Bytes>{Bytes{3}, Bytes{9}, Bytes{27}});
  CHECK(sizes("{from: 1 B, to: 9e18 B}").back() == Bytes{std::int64_t{1} << 62});
  CHECK(sizes("{from: 1 B, to: 9e18 B}").size() == 63);
}
