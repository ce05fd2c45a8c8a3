// SPDX-License-Identifier: Apache-2.0
// Pictures of random fabrics: boxes apart and inside, every switch that a drawn host is cabled to is there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "exchange/host_tree.hpp"
#include "exchange/switch_layout.hpp"
#include "fabricast/exchange.hpp"
#include "fabricast/load.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

struct Box {
  std::string name;
  double x = 0, y = 0, width = 0, height = 0;
};

struct Picture {
  double width = 0, height = 0;
  std::vector<Box> boxes;  ///< of devices, without the legend's
  std::size_t num_cables = 0;
  std::string text;
};

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

Picture picture_of(const Topology& topology) {
  Picture picture;
  picture.text = topology_svg(topology);
  static const std::regex view(R"x(viewBox="0 0 (\d+) (\d+)")x");
  static const std::regex box(
      R"x(<title>([^<:]*)[^<]*</title><rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)")x");
  static const std::regex cable(R"x(class="cable( dense)?")x");
  std::smatch found;
  REQUIRE(std::regex_search(picture.text, found, view));
  picture.width = std::stod(found[1]);
  picture.height = std::stod(found[2]);
  for (const auto& one : matches(picture.text, box))
    picture.boxes.push_back({one[1], std::stod(one[2]), std::stod(one[3]), std::stod(one[4]), std::stod(one[5])});
  picture.num_cables = matches(picture.text, cable).size();
  return picture;
}

bool overlap(const Box& a, const Box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/// A topology written as YAML inside a scenario; nothing when the generator refuses it.
std::optional<Topology> topology_of(const std::string& hosts, const std::string& fabric) {
  auto loaded =
      load_scenario_text("t.yaml", fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n"
                                               "  schema: fabricast/topology/1\n  name: t\n  hosts:\n{}"
                                               "  fabric:\n    {}\n"
                                               "workload: {{benchmark: osu_latency, buffers: [host, host]}}\n",
                                               hosts, fabric));
  if (!loaded) return std::nullopt;
  return std::move(loaded->topology);
}

std::string host_group(const std::string& name, int count, const std::string& type) {
  return fmt::format("    - {{name: {}, count: {}, type: {}}}\n", name, count, type);
}

int between(test::Random& random, int low, int high) {
  return low + static_cast<int>(random.next(static_cast<std::uint64_t>(high - low) + 1));
}

/// A fabric of a random kind and shape.
std::string random_fabric(test::Random& random) {
  const auto pick = [&](int low, int high) { return between(random, low, high); };
  switch (pick(0, 6)) {
    case 0:
      return "single_switch: {switch: qm9700}";
    case 1:
      return fmt::format("leaf_spine: {{switch: qm8700, spines: {}, leaf_ports: {}}}", pick(1, 12), 2 * pick(2, 20));
    case 2:
      return fmt::format("fat_tree: {{switch: qm8700, tiers: {}, leaf_ports: {}}}", pick(2, 3), 2 * pick(2, 20));
    case 3:
      return fmt::format("rail_optimized: {{switch: qm8700, rails: {}}}", pick(1, 8));
    case 4:
      return fmt::format(
          "dragonfly: {{switch: qm8700, groups: {}, routers_per_group: {}, hosts_per_router: {}, "
          "global_links: {}}}",
          pick(1, 12), pick(1, 9), pick(1, 4), pick(1, 4));
    case 5:
      return fmt::format("torus: {{switch: qm8700, dimensions: [{}, {}]}}", pick(1, 20), pick(1, 20));
    default:
      return fmt::format("torus: {{switch: qm8700, dimensions: [{}, {}, {}]}}", pick(1, 7), pick(1, 7), pick(1, 7));
  }
}

/// Every switch with a cable to a host whose boxes are in the picture.
void check_picture(const Topology& topology) {
  const auto picture = picture_of(topology);
  std::set<std::string> drawn;
  for (const auto& box : picture.boxes) {
    CHECK_MESSAGE(drawn.insert(box.name).second, box.name);
    CHECK_MESSAGE((box.x >= 0 && box.y >= 0), box.name);
    CHECK_MESSAGE((box.x + box.width <= picture.width && box.y + box.height <= picture.height), box.name);
  }
  for (std::size_t a = 0; a < picture.boxes.size(); ++a) {
    for (std::size_t b = a + 1; b < picture.boxes.size(); ++b)
      if (overlap(picture.boxes[a], picture.boxes[b]))
        FAIL_CHECK(picture.boxes[a].name << " on " << picture.boxes[b].name);
  }
  std::set<std::pair<std::string, std::string>> bundles;
  for (const auto& cable : exchange::network_cables(topology)) {
    const auto from = topology.device(cable.from).name;
    const auto to = topology.device(cable.to).name;
    const bool has_host = topology.kind(cable.from) == DeviceKind::hca || topology.kind(cable.to) == DeviceKind::hca;
    const bool has_both = drawn.count(from) > 0 && drawn.count(to) > 0;
    const auto& end = topology.kind(cable.from) == DeviceKind::hca ? from : to;
    if (has_host && drawn.count(end) > 0) CHECK_MESSAGE(has_both, from << " - " << to);
    if (has_both) bundles.insert({from, to});
  }
  CHECK(picture.num_cables == bundles.size());
  const auto num_switches = topology.devices(DeviceKind::network_switch).size();
  std::size_t num_drawn = 0;
  for (const auto id : topology.devices(DeviceKind::network_switch)) num_drawn += drawn.count(topology.device(id).name);
  CHECK(num_drawn >= std::min<std::size_t>(num_switches, 64));
  // What is left out is said.
  if (num_drawn < num_switches) CHECK(picture.text.find(" more</text>") != std::string::npos);
}

}  // namespace

TEST_CASE(
    "no two boxes of a picture overlap, all lie inside, and no switch that a drawn host is cabled to is missing") {
  const std::vector<std::string> types = {"server-2s-rome-1a100", "hgx-h100-8", "dgx-1-v100", "dgx-2", "dgx-a100"};
  test::Random random(7);
  int num_valid = 0;
  for (int i = 0; i < 60; ++i) {
    std::string hosts;
    for (int g = 0; g < between(random, 1, 3); ++g)
      hosts += host_group(fmt::format("h{}x", g), between(random, 1, g == 0 ? 70 : 5), random.pick(types));
    const auto fabric = random_fabric(random);
    CAPTURE(hosts);
    CAPTURE(fabric);
    const auto topology = topology_of(hosts, fabric);
    if (!topology) continue;
    ++num_valid;
    check_picture(*topology);
  }
  CHECK(num_valid > 20);
}

TEST_CASE("the leaves of all eight rails are in the picture, and those of large fabrics that the drawn hosts hang on") {
  const auto rails = topology_of(host_group("node", 64, "hgx-h100-8"), "rail_optimized: {switch: qm9700, rails: 8}");
  REQUIRE(rails);
  const auto picture = picture_of(*rails);
  std::set<std::string> names;
  for (const auto& box : picture.boxes) names.insert(box.name);
  for (int rail = 0; rail < 8; ++rail) CHECK(names.count(fmt::format("rail{}-leaf1", rail)) == 1);
  // The second group hangs on the last of 76 leaves.
  const auto large =
      topology_of(host_group("a", 1500, "server-2s-rome-1a100") + host_group("b", 2, "server-2s-rome-1a100"),
                  "fat_tree: {switch: qm8700, tiers: 3}");
  REQUIRE(large);
  CHECK(large->devices(DeviceKind::network_switch).size() > 128);
  check_picture(*large);
}

TEST_CASE("more NVSwitches than fit beside each other take further rows inside their host") {
  for (int count = 1; count <= 9; ++count) {
    std::string host =
        "    - name: n\n      count: 1\n      host:\n        processor: epyc-rome\n        sockets: 1\n        "
        "devices:\n"
        "          - {name: gpu0, type: v100-sxm3-32, below: socket0, pcie: gen3 x16}\n"
        "          - {name: gpu1, type: v100-sxm3-32, below: socket0, pcie: gen3 x16}\n"
        "          - {name: hca0, type: connectx-5-edr, below: socket0, pcie: gen3 x16}\n";
    for (int s = 0; s < count; ++s) host += fmt::format("          - {{name: nvs{}, type: nvswitch-1}}\n", s);
    host += "        nvlinks:\n";
    for (int s = 0; s < std::min(count, 6); ++s)
      host += fmt::format("          - {{from: gpus, to: nvs{}, links: 1}}\n", s);
    const auto topology = topology_of(host, "single_switch: {switch: qm8700}");
    REQUIRE(topology);
    check_picture(*topology);
    const auto picture = picture_of(*topology);
    CHECK(std::count_if(picture.boxes.begin(), picture.boxes.end(),
                        [](const Box& box) { return box.name.find("nvs") != std::string::npos; }) == count);
  }
}

TEST_CASE("the planes of a torus are grids: neighbours in a row or column of the picture are neighbours by cable") {
  const auto torus =
      topology_of(host_group("n", 24, "server-2s-rome-1a100"), "torus: {switch: qm8700, dimensions: [4, 3, 2]}");
  REQUIRE(torus);
  const auto layout = exchange::lay_out_switches(*torus, {}, 20);
  const auto switches = torus->devices(DeviceKind::network_switch);
  REQUIRE(layout.cells.size() == 24);
  for (int r = 0; r < 24; ++r) {
    const auto& cell = layout.cells.at(switches[static_cast<std::size_t>(r)]);
    CHECK(cell.column == test::approx(r % 4 + r / 12 * 4.5));
    CHECK(cell.row == test::approx(r / 4 % 3));
  }
  CHECK(layout.columns == test::approx(8.5));
  CHECK(layout.rows == test::approx(3));
}

TEST_CASE("a tier above the limit keeps its needed switches, counts the others and centres its rows") {
  const auto large = topology_of(host_group("a", 2000, "server-2s-rome-1a100"), "fat_tree: {switch: qm8700, tiers: 3}");
  REQUIRE(large);
  const auto switches = large->devices(DeviceKind::network_switch);
  const auto tiers = exchange::switch_tiers(*large);
  std::vector<DeviceId> leaves;
  for (std::size_t s = 0; s < switches.size(); ++s) {
    if (tiers[s] == 0) leaves.push_back(switches[s]);
  }
  REQUIRE(leaves.size() == 100);
  const auto layout = exchange::lay_out_switches(*large, {leaves[98], leaves[99]}, 10);
  CHECK(layout.cells.count(leaves[99]) == 1);
  CHECK(layout.cells.count(leaves[61]) == 1);
  CHECK(layout.cells.count(leaves[62]) == 0);
  REQUIRE(!layout.notes.empty());
  CHECK(layout.notes.back().words == "+ 36 more");
  // 64 leaves and the note: four rows of 17, at the bottom and 0.6 of a row below the tier above.
  CHECK(layout.columns == test::approx(17));
  std::set<double> rows, others;
  for (const auto& [id, cell] : layout.cells) {
    const bool is_leaf = std::find(leaves.begin(), leaves.end(), id) != leaves.end();
    (is_leaf ? rows : others).insert(cell.row);
  }
  const double top = *rows.begin();
  CHECK(rows == std::set<double>{top, top + 1, top + 2, top + 3});
  CHECK(top == test::approx(*others.rbegin() + 1.6));
  CHECK(layout.rows == test::approx(top + 4));
  // The 14 of the last row (13 leaves and the note) are centred on 17 columns.
  CHECK(layout.notes.back().cell.column == test::approx(13.5 * 17 / 14 - 0.5));
}

TEST_CASE("names with XML's own characters stay text") {
  auto loaded = load_scenario_text("t.yaml",
                                   "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n"
                                   "  name: 'a<b>&c'\n  hosts: [{name: n, count: 1, type: dgx-a100}]\n"
                                   "workload: {benchmark: osu_latency, buffers: [host, host], ranks_per_host: 2}\n");
  if (!loaded) return;  // the reader refuses such names: nothing to escape
  const auto svg = topology_svg(loaded->topology);
  CHECK(svg.find("a&lt;b&gt;&amp;c") != std::string::npos);
  CHECK(svg.find("a<b>") == std::string::npos);
}
