// SPDX-License-Identifier: Apache-2.0
// Where a fault is shown, and that its hint is of the key's own dimension and its limits the hardware's.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;
using test::shown;
using test::write_file;

namespace {

/// A scenario in block style, a key a line.
const std::vector<std::string> k_lines{"schema: fabricast/scenario/1",
                                       "name: s",
                                       "topology:",
                                       "  schema: fabricast/topology/1",
                                       "  name: t",
                                       "  hosts:",
                                       "    - name: n",
                                       "      count: 2",
                                       "      type: hgx-h100-8",
                                       "  fabric:",
                                       "    rail_optimized:",
                                       "      switch: qm9700",
                                       "      rate: 400 Gb/s",
                                       "      hop_latency: 500 ns",
                                       "      cable: 3 m",
                                       "      rails: 8",
                                       "      mtu: 4096",
                                       "      routing: minimal",
                                       "workload:",
                                       "  benchmark: all_reduce_perf",
                                       "  gpus: 16",
                                       "  sizes:",
                                       "    - 8 B",
                                       "    - 1 MiB",
                                       "software:",
                                       "  nccl:",
                                       "    version: \"2.19\""};

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

Diagnostics faults_of(const std::string& text) {
  const auto loaded = load_scenario(write_file("s.yaml", text));
  return loaded ? Diagnostics{} : loaded.error();
}

std::string topology_faults(const std::string& hosts, const std::string& fabric) {
  const auto loaded = load_topology(write_file(
      "t.yaml", "schema: fabricast/topology/1\nname: t\nhosts:\n  - " + hosts + "\nfabric: " + fabric + "\n"));
  return loaded ? "" : shown(loaded.error());
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a key left empty is shown at its own line, whatever comes behind it") {
  REQUIRE(faults_of(joined(k_lines)).empty());
  for (std::size_t i = 0; i < k_lines.size(); ++i) {
    // Its value is taken out, and what is below it; comments and empty lines follow.
    auto lines = k_lines;
    const auto indent = lines[i].find_first_not_of(" -");
    const auto colon = lines[i].find(':');
    if (colon == std::string::npos) continue;
    lines[i].erase(colon + 1);
    std::size_t end = i + 1;
    while (end < lines.size() && lines[end].find_first_not_of(' ') > indent) ++end;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i) + 1, lines.begin() + static_cast<std::ptrdiff_t>(end));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i) + 1, {"# what follows", ""});
    CAPTURE(lines[i]);
    const auto faults = faults_of(joined(lines));
    REQUIRE_FALSE(faults.empty());
    CHECK(faults.front().location.line == static_cast<int>(i) + 1);
    CHECK(faults.front().location.column == static_cast<int>(indent) + 1);
    CHECK(has(shown(faults), lines[i]));
  }
}

TEST_CASE("an element left empty is shown at its dash, an empty value between braces at its key") {
  for (const std::size_t i : {22U, 23U}) {
    auto lines = k_lines;
    lines[i] = "    -   # nothing";
    const auto faults = faults_of(joined(lines));
    REQUIRE_FALSE(faults.empty());
    CHECK(faults.front().location.line == static_cast<int>(i) + 1);
    CHECK(faults.front().location.column == 5);
  }
  CHECK(has(topology_faults("{name: n, count: , type: dgx-a100}", "{}"), "t.yaml:4:15: error: 'count' must be"));
  CHECK(has(topology_faults("{name: n, count: ~, type: dgx-a100}", "{}"), "t.yaml:4:15: error: 'count' must be"));
}

TEST_CASE("a quantity that cannot be read is answered in the key's own dimension") {
  const std::string hosts = "{name: n, count: 2, type: hgx-h100-8}";
  const auto mtu = [&](const std::string& value) {
    return topology_faults(hosts, "{single_switch: {switch: qm9700, mtu: " + value + "}}");
  };
  CHECK(has(mtu("9000 bytes"), "did you mean '9000 B'?"));
  CHECK(has(mtu("nonsense"), "write '64 KiB' or '1 MB'"));
  CHECK(has(mtu("100 Gb/s"), "'100 Gb/s' is neither a number nor a size"));
  CHECK_FALSE(has(mtu("9000 bytes") + mtu("nonsense") + mtu("9 kilobytes"), "Gb/s"));
  const auto parameter = [](const std::string& name, const std::string& value) {
    auto lines = k_lines;
    lines.insert(lines.begin() + 18, "  parameters: {" + name + ": {value: " + value + ", source: mine}}");
    return shown(faults_of(joined(lines)));
  };
  CHECK(has(parameter("qm9700.latency", "500 nanos"), "write '1.3 us' or '130 ns'"));
  CHECK(has(parameter("virtualization.passthrough.compute_tax", "four"), "write a plain number"));
  CHECK(has(parameter("h100-sxm.memory", "80 gigs"), "write '80 GiB' for powers of 1024"));
  CHECK(has(parameter("qm9700.rate", "400 gbps"), "for bytes or '400 Gb/s' for bits"));
}

TEST_CASE("what no fabric or slot can be is refused where it is written") {
  const std::string hosts = "{name: n, count: 2, type: server-1a100-cx6dx}";
  const auto fabric = [&](const std::string& text) { return topology_faults(hosts, text); };
  CHECK(fabric("{rail_optimized: {switch: sn2700}}").empty());
  CHECK(fabric("{rail_optimized: {switch: sn2700, rails: 1}}").empty());
  CHECK(has(fabric("{rail_optimized: {switch: sn2700, rails: 2}}"), "2 rails of hosts with 1 HCAs"));
  CHECK(has(fabric("{single_switch: {switch: sn2700, switch_cable: 5 m}}"), "'switch_cable' of a single switch"));
  CHECK(fabric("{leaf_spine: {switch: sn2700, switch_cable: 5 m}}").empty());
  CHECK(has(fabric("{single_switch: {switch: sn2700, mtu: 10}}"), "'mtu' must be 64 to 65536 bytes, found '10'"));
  CHECK(has(fabric("{single_switch: {switch: sn2700, mtu: 63 B}}"), "'mtu' must be 64 to 65536 bytes"));
  CHECK(fabric("{single_switch: {switch: sn2700, mtu: 64 B}}").empty());
  CHECK(has(fabric("{single_switch: {switch: sn2700, hop_latency: 100 s}}"),
            "'hop_latency' is 100 s, allowed is 0 s to"));
  CHECK(fabric("{single_switch: {switch: sn2700, hop_latency: 1 us}}").empty());
  for (int lanes = 0; lanes <= 33; ++lanes) {
    CAPTURE(lanes);
    const bool is_width =
        lanes == 12 || lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16 || lanes == 32;
    const auto found = topology_faults(
        fmt::format("{{name: n, count: 2, host: {{processor: xeon-icelake, devices: [{{name: hca0, type: "
                    "connectx-6-dx-100g, below: socket0, pcie: gen4 x{}}}]}}}}",
                    lanes),
        "{single_switch: {switch: sn2700}}");
    CHECK(found.empty() == is_width);
    if (!is_width) CHECK(has(found, "'pcie' must be a PCIe slot"));
  }
}
