// SPDX-License-Identifier: Apache-2.0
// Laws of routes over random fabrics of every generator and over random lists of switches and cables.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using test::Random;

namespace {

constexpr const char* k_one_port = "connectx-6-hdr";
constexpr const char* k_two_ports = "connectx-7-bond-2x200";

std::string cluster(int hosts, int hcas, const std::string& fabric, const std::string& name = "n",
                    const std::string& hca_type = k_one_port) {
  std::string devices;
  for (int h = 0; h < hcas; ++h)
    devices +=
        (h > 0 ? ", {name: hca" : "{name: hca") + std::to_string(h) + ", type: " + hca_type + ", below: socket0}";
  return "schema: fabricast/topology/1\nname: law\nhosts:\n  - {name: " + name + ", count: " + std::to_string(hosts) +
         ", host: {processor: epyc-rome, devices: [" + devices + "]}}\nfabric:\n  " + fabric + "\n";
}

std::string random_generator(Random& random) {
  const auto some = [&](std::uint64_t low, std::uint64_t high) {
    return std::to_string(low + random.next(high - low));
  };
  const auto type = random.pick<std::string>({"qm8700", "sn3700"});
  switch (random.next(5)) {
    case 0:
      return "leaf_spine: {switch: " + type + ", leaf_ports: " + some(6, 13) + ", oversubscription: 2}";
    case 1:
      return "fat_tree: {switch: " + type + ", leaf_ports: 10, tiers: " + some(2, 4) + "}";
    case 2:
      return "rail_optimized: {switch: " + type + ", leaf_ports: " + some(6, 13) + "}";
    case 3:
      return "dragonfly: {switch: " + type + ", routers_per_group: 4, hosts_per_router: " + some(2, 5) +
             ", global_links: 3}";
    default:
      return "torus: {switch: " + type + ", dimensions: [" + some(3, 6) + ", " + some(1, 6) + ", " + some(1, 4) + "]}";
  }
}

using Ends = std::vector<std::pair<std::string, std::string>>;

/// A connected tangle of switches with one or two cables from every HCA.
struct Tangle {
  std::vector<std::string> switches;
  Ends cables;

  [[nodiscard]] std::string yaml() const {
    std::string out = "list:\n    switches:\n";
    for (const auto& name : switches) out += "      - {name: " + name + ", type: qm8700}\n";
    out += "    cables:\n";
    std::set<std::pair<std::string, std::string>> listed;
    for (const auto& [from, to] : cables) {
      if (!listed.insert(std::minmax(from, to)).second) continue;  // counted at the first
      const auto count = std::ranges::count_if(cables, [&, a = from, b = to](const auto& one) {
        return std::minmax(one.first, one.second) == std::minmax(a, b);
      });
      out += "      - {from: " + from + ", to: " + to + ", count: " + std::to_string(count) + "}\n";
    }
    return out;
  }
};

Tangle random_tangle(Random& random, int hosts) {
  Tangle tangle;
  const auto count = 2 + random.next(7);
  for (std::uint64_t s = 0; s < count; ++s) {
    tangle.switches.push_back("s" + std::to_string(s));
    if (s > 0) tangle.cables.emplace_back("s" + std::to_string(random.next(s)), tangle.switches.back());
  }
  for (std::uint64_t extra = random.next(6); extra > 0; --extra) {
    const auto a = random.next(count);
    tangle.cables.emplace_back("s" + std::to_string(a), "s" + std::to_string((a + 1 + random.next(count - 1)) % count));
  }
  for (int h = 0; h < hosts; ++h) {
    for (auto k = 1 + random.next(2); k > 0; --k)
      tangle.cables.emplace_back("n" + std::to_string(h) + ".hca0", "s" + std::to_string(random.next(count)));
  }
  return tangle;
}

std::vector<DeviceId> stations(const Topology& topology, const std::vector<LinkId>& links) {
  std::vector<DeviceId> passed;
  for (const auto id : links) {
    const auto link = topology.link(id);
    if (passed.empty()) passed.push_back(link.from);
    CHECK(passed.back() == link.from);
    passed.push_back(link.to);
  }
  return passed;
}

/// Links on the shortest way between two HCAs; HCAs do not forward.
int fewest_links(const Topology& topology, DeviceId from, DeviceId to) {
  std::map<DeviceId, std::vector<DeviceId>> next;
  for (int l = 0; l < topology.num_links(); ++l) {
    const auto link = topology.link({l});
    if (link.kind == LinkKind::network) next[link.from].push_back(link.to);
  }
  std::map<DeviceId, int> distance{{from, 0}};
  std::queue<DeviceId> waiting({from});
  while (!waiting.empty()) {
    const auto at = waiting.front();
    waiting.pop();
    if (at != from && topology.kind(at) == DeviceKind::hca) continue;
    for (const auto neighbour : next[at]) {
      if (distance.try_emplace(neighbour, distance[at] + 1).second) waiting.push(neighbour);
    }
  }
  return distance.count(to) > 0 ? distance[to] : -1;
}

}  // namespace

TEST_CASE("every route is a chain of cables from HCA to HCA that passes no switch twice") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int hosts = static_cast<int>(2 + random.next(30));
    const auto loaded = test::topology(cluster(hosts, static_cast<int>(1 + random.next(3)), random_generator(random)));
    const auto hcas = loaded.topology.devices(DeviceKind::hca);
    for (int k = 0; k < 40; ++k) {
      const auto from = random.pick(hcas);
      const auto to = random.pick(hcas);
      if (from == to) continue;
      const auto path = loaded.topology.path_between_hcas(from, to, random.next(8));
      REQUIRE(path);
      const auto passed = stations(loaded.topology, path->links);
      CHECK(passed.front() == from);
      CHECK(passed.back() == to);
      CHECK(std::set<DeviceId>(passed.begin(), passed.end()).size() == passed.size());
      CHECK(path->network_switch_hops + 2 == static_cast<int>(passed.size()));
      CHECK(path->bottleneck.bytes_per_s > 0);
    }
  }
}

TEST_CASE("no way through a tangle of switches is shorter than the route, whatever cables an HCA has") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto loaded = test::topology(cluster(6, 1, random_tangle(random, 6).yaml(), "n", k_two_ports));
    const auto hcas = loaded.topology.devices(DeviceKind::hca);
    for (const auto from : hcas) {
      for (const auto to : hcas) {
        if (from == to) continue;
        const auto path = loaded.topology.path_between_hcas(from, to);
        REQUIRE(path);
        CHECK(static_cast<int>(path->links.size()) == fewest_links(loaded.topology, from, to));
      }
    }
  }
}

TEST_CASE("renaming switches and hosts changes no route, reordering them no length") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto tangle = random_tangle(random, 6);
    const auto renamed_end = [](const std::string& name) { return (name[0] == 'n' ? "zebra" : "x") + name.substr(1); };
    auto renamed = tangle;
    for (auto& name : renamed.switches) name = renamed_end(name);
    for (auto& [from, to] : renamed.cables) std::tie(from, to) = std::pair(renamed_end(from), renamed_end(to));
    auto reordered = tangle;
    std::ranges::reverse(reordered.switches);
    std::ranges::reverse(reordered.cables);
    const auto plain = test::topology(cluster(6, 1, tangle.yaml(), "n", k_two_ports)).topology;
    const auto other_names = test::topology(cluster(6, 1, renamed.yaml(), "zebra", k_two_ports)).topology;
    const auto other_order = test::topology(cluster(6, 1, reordered.yaml(), "n", k_two_ports)).topology;
    const auto hcas = plain.devices(DeviceKind::hca);
    for (const auto from : hcas) {
      for (const auto to : hcas) {
        if (from == to) continue;
        const auto path = plain.path_between_hcas(from, to);
        CHECK(path->links == other_names.path_between_hcas(from, to)->links);
        const auto reordered_path = other_order.path_between_hcas(from, to);
        CHECK(path->links.size() == reordered_path->links.size());
        CHECK(path->latency == reordered_path->latency);
        CHECK(path->bottleneck == reordered_path->bottleneck);
      }
    }
  }
}

namespace {

/// Seconds until every host of a dragonfly has sent to the host `shift` places behind it.
double shift_time(const std::string& fabric, int hosts, int shift, double bytes) {
  const auto file = test::write_file("dragonfly.yaml", cluster(hosts, 1, fabric));
  std::string flows;
  for (int h = 0; h < hosts; ++h)
    flows += "    - {from: n" + std::to_string(h) + ", to: n" + std::to_string((h + shift) % hosts) + "}\n";
  const auto loaded = test::scenario("schema: fabricast/scenario/1\nname: shift\ntopology: " + file +
                                     "\nworkload:\n  benchmark: traffic\n  sizes: [" +
                                     std::to_string(static_cast<std::int64_t>(bytes)) + " B]\n  flows:\n" + flows);
  return test::run(loaded).workloads[0].rows[0].time.seconds();
}

}  // namespace

TEST_CASE(
    "routers that choose ways lose nothing to fixed routes, more links lose nothing, and links carry what they can") {
  constexpr double k_bytes = 64e6, k_port = 25e9, k_tolerance = 1.0001;
  int num_gained = 0;
  for (std::uint64_t seed = 0; seed < test::draws(24); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int groups = 2 + static_cast<int>(random.next(3)), routers = 2 + static_cast<int>(random.next(3));
    const int per_router = 1 + static_cast<int>(random.next(4)), hosts = groups * routers * per_router;
    const int global = groups - 1;
    const int shift = 1 + static_cast<int>(random.next(static_cast<std::uint64_t>(hosts - 1)));
    const auto fabric = [&](int local_links, const std::string& routing) {
      return "dragonfly: {switch: rosetta, groups: " + std::to_string(groups) +
             ", routers_per_group: " + std::to_string(routers) + ", hosts_per_router: " + std::to_string(per_router) +
             ", global_links: " + std::to_string(global) + ", local_links: " + std::to_string(local_links) + routing +
             "}";
    };
    CAPTURE(fabric(1, ""));
    CAPTURE(shift);
    const double fixed = shift_time(fabric(1, ", routing: minimal"), hosts, shift, k_bytes);
    const double chosen = shift_time(fabric(1, ""), hosts, shift, k_bytes);
    CHECK(chosen <= fixed * k_tolerance);
    CHECK(chosen == test::approx(shift_time(fabric(1, ", routing: adaptive"), hosts, shift, k_bytes)));
    CHECK(shift_time(fabric(2, ""), hosts, shift, k_bytes) <= chosen * k_tolerance);
    num_gained += chosen < fixed / 1.05 ? 1 : 0;
    // Whatever the ways: no group sends more than its links to others carry.
    const int of_group = routers * per_router;
    int leaving = 0;
    for (int h = 0; h < of_group; ++h) leaving += (h + shift) % hosts / of_group != 0 ? 1 : 0;
    CHECK(chosen * k_tolerance >= leaving * k_bytes / (routers * global * k_port));
  }
  CHECK(num_gained > 3);
}

TEST_CASE("only switches of leaves, rails and dragonflies are said to choose ways") {
  for (const std::string fabric : {"single_switch: {switch: qm8700", "torus: {switch: qm8700, dimensions: [2, 2]"}) {
    const auto loaded = load_topology(test::write_file("fixed.yaml", cluster(4, 1, fabric + ", routing: adaptive}")));
    REQUIRE(!loaded);
    CHECK(test::shown(loaded.error()).find("not forecast to choose ways as they go") != std::string::npos);
  }
  for (const std::string fabric :
       {"leaf_spine: {switch: qm8700, leaf_ports: 4", "rail_optimized: {switch: qm8700, leaf_ports: 4",
        "fat_tree: {switch: qm8700, leaf_ports: 4"})
    CHECK(load_topology(test::write_file("chosen.yaml", cluster(4, 1, fabric + ", routing: adaptive}"))));
}

TEST_CASE("routes of 16,384 GPUs are found one by one") {
  const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/fat-tree-16384.yaml");
  REQUIRE(loaded);
  const auto gpus = loaded->topology.devices(DeviceKind::gpu);
  REQUIRE(gpus.size() == 16384);
  for (std::size_t g = 0; g < gpus.size(); g += 511) {
    const auto path = loaded->topology.path(gpus[g], gpus[gpus.size() - 1 - g]);
    REQUIRE(path);
    CHECK(path->network_switch_hops <= 5);
    CHECK(loaded->topology.link(path->links.front()).from == gpus[g]);
    CHECK(loaded->topology.link(path->links.back()).to == gpus[gpus.size() - 1 - g]);
  }
}
