// SPDX-License-Identifier: Apache-2.0
// Routes through fabrics small enough to be followed by hand.
#include <algorithm>
#include <map>
#include <set>

#include "specs.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

/// Flows per link when the HCAs of `from` send to those of `to`, one each.
std::map<int, int> loads(const Topology& topology, const std::vector<std::pair<DeviceId, DeviceId>>& pairs) {
  std::map<int, int> load;
  for (const auto& [from, to] : pairs) {
    const auto path = topology.path_between_hcas(from, to);
    REQUIRE(path);
    for (const auto link : path->links) ++load[link.value];
  }
  return load;
}

FabricSpec dragonfly(int groups, int routers, int hosts, int global) {
  auto spec = fabric(FabricKind::dragonfly, "sw64");
  spec.groups = groups;
  spec.routers_per_group = routers;
  spec.hosts_per_router = hosts;
  spec.global_links = global;
  return spec;
}

}  // namespace

TEST_CASE("leaves take whole hosts where one fits, and a ring of hosts of any number shares no cable") {
  for (const int hcas : {1, 3, 5, 8, 12, 20, 42}) {
    for (int hosts = 2; hosts <= 14; ++hosts) {
      CAPTURE(hcas);
      CAPTURE(hosts);
      auto spec = fabric(FabricKind::fat_tree, "sw64");
      spec.tiers = 2;
      const auto t = built(cluster(hosts, hca_host(hcas), spec));
      std::vector<std::pair<DeviceId, DeviceId>> pairs;
      for (int host = 0; host < hosts; ++host) {
        const auto own = t.devices(DeviceKind::hca, host), next = t.devices(DeviceKind::hca, (host + 1) % hosts);
        std::set<int> leaves;
        for (std::size_t i = 0; i < own.size(); ++i) {
          leaves.insert(t.link(t.uplinks(own[i]).front()).to.value);
          pairs.emplace_back(own[i], next[i]);
        }
        CHECK(leaves.size() == 1);
      }
      for (const auto& [link, flows] : loads(t, pairs))
        CHECK(flows * 12.5e9 <= t.link_bandwidth(LinkId{link}).bytes_per_s);
    }
  }
  // 43 do not fit below 42 ports, whose 21 up are twice as fast: they fill one leaf and begin another.
  const auto t = built(cluster(2, hca_host(43), fabric(FabricKind::fat_tree, "sw64")));
  std::map<int, int> on_leaf;
  for (const auto hca : t.devices(DeviceKind::hca)) ++on_leaf[t.link(t.uplinks(hca).front()).to.value];
  CHECK(on_leaf.size() == 3);
}

TEST_CASE("a shift inside every rail of an InfiniBand fabric uses each cable once") {
  // 8 hosts with 4 HCAs, 8-port leaves: 4 down and 4 up, 2 leaves per rail. Numbers of the HCAs of one leaf are 4
  // apart.
  const auto t = built(cluster(8, hca_host(4), fabric(FabricKind::rail_optimized)));
  std::vector<std::pair<DeviceId, DeviceId>> pairs;
  for (int h = 0; h < 8; ++h) {
    for (int rail = 0; rail < 4; ++rail) pairs.emplace_back(hca_of(t, h, rail), hca_of(t, (h + 4) % 8, rail));
  }
  for (const auto& row : loads(t, pairs)) {
    const auto& [link, flows] = row;
    CAPTURE(t.link_name(LinkId{row.first}));
    CHECK(flows == 1);
  }
}

TEST_CASE("a shift between pods of a three-tier InfiniBand fat tree uses each cable once") {
  // k = 8: 4 HCAs per leaf, 4 leaves per pod, so hosts 16 apart are in neighbouring pods.
  auto spec = fabric(FabricKind::fat_tree);
  spec.tiers = 3;
  const auto t = built(cluster(128, hca_host(1), spec));
  std::vector<std::pair<DeviceId, DeviceId>> pairs;
  for (int h = 0; h < 128; ++h) pairs.emplace_back(hca_of(t, h), hca_of(t, (h + 16) % 128));
  for (const auto& [link, flows] : loads(t, pairs)) CHECK(flows == 1);
  CHECK(t.equal_cost_routes(hca_of(t, 0), hca_of(t, 127)).size() == 16);  // (k / 2)^2
}

TEST_CASE("an HCA with two cables uses the one that is nearer, and both when they are equal") {
  auto spec = fabric(FabricKind::list);
  spec.switches = {{"a", "sw8", {}}, {"b", "sw8", {}}, {"c", "sw8", {}}};
  // n0 hangs at a and c, n1 at c only, n2 at b and at c.
  spec.cables = {{"n0.hca0", "a", 1, {}, {}, {}}, {"n0.hca0", "c", 1, {}, {}, {}}, {"n1.hca0", "c", 1, {}, {}, {}},
                 {"n2.hca0", "b", 1, {}, {}, {}}, {"n2.hca0", "c", 1, {}, {}, {}}, {"a", "b", 1, {}, {}, {}},
                 {"a", "c", 1, {}, {}, {}}};
  const auto t = built(cluster(3, hca_host(1), spec));
  CHECK(stations(t, t.path_between_hcas(hca_of(t, 0), hca_of(t, 1))->links) ==
        std::vector<std::string>{"n0.hca0", "c", "n1.hca0"});
  CHECK(stations(t, t.path_between_hcas(hca_of(t, 2), hca_of(t, 0))->links) ==
        std::vector<std::string>{"n2.hca0", "c", "n0.hca0"});

  auto twin = fabric(FabricKind::list);
  twin.switches = {{"s", "sw8", {}}};
  twin.cables = {{"n0.hca0", "s", 2, {}, {}, {}}, {"n1.hca0", "s", 2, {}, {}, {}}};
  const auto two = built(cluster(2, hca_host(1), twin));
  CHECK(two.equal_cost_routes(hca_of(two, 0), hca_of(two, 1)).size() == 4);
}

TEST_CASE("dragonfly routes are local, global, local: at most one global cable") {
  // Five groups of four routers, one global cable per pair of groups. Two global cables in a row would sometimes be
  // shorter.
  const auto t = built(cluster(20, hca_host(1), dragonfly(5, 4, 1, 1)));
  for (int a = 0; a < 20; ++a) {
    for (int b = 0; b < 20; ++b) {
      if (a == b) continue;
      const auto names = stations(t, t.path_between_hcas(hca_of(t, a), hca_of(t, b))->links);
      std::set<std::string> groups;
      for (std::size_t i = 1; i + 1 < names.size(); ++i) groups.insert(names[i].substr(0, names[i].find('-')));
      CAPTURE(a);
      CAPTURE(b);
      CHECK(groups.size() == (a / 4 == b / 4 ? 1 : 2));
      CHECK(names.size() <= 6);  // two HCAs and four routers
    }
  }
}

TEST_CASE("routers of a dragonfly that choose ways spread traffic over all links of a router, or of a group") {
  // Two groups of three routers; two global links each make six between the groups.
  auto spec = dragonfly(2, 3, 1, 2);
  spec.local_links = 2;
  const auto t = built(cluster(6, hca_host(1), spec));
  const auto links_of = [&](int from, int to) { return t.path_between_hcas(hca_of(t, from), hca_of(t, to))->links; };
  CHECK(!t.spread_of(links_of(0, 1).front()));  // an adapter's own cable
  const auto local = t.spread_of(links_of(0, 1)[1]);
  REQUIRE(local);
  CHECK(local->out->over == SpreadOver::router);
  CHECK(local->out->links.size() == 4);  // two links to each of two routers
  CHECK(local->in->links.size() == 4);
  for (const auto link : local->out->links) CHECK(t.link(link).from == local->out->at);
  for (const auto link : local->in->links) CHECK(t.link(link).to == local->in->at);
  int between = 0;
  for (const auto link : links_of(0, 5)) {
    const auto spread = t.spread_of(link);
    if (!spread || spread->out->over != SpreadOver::group) continue;
    ++between;
    CHECK(spread->out->links.size() == 6);
    CHECK(spread->in->links.size() == 6);
  }
  CHECK(between == 1);
  spec.routing = Routing::minimal;
  const auto fixed = built(cluster(6, hca_host(1), spec));
  for (int l = 0; l < fixed.num_links(); ++l) CHECK(!fixed.spread_of(LinkId{l}));
}

TEST_CASE("switches of a tree that choose ways spread traffic over all links of a leaf, and of a pod") {
  // Switches of eight ports, four up (three of twice the HCAs' rate where there are two tiers).
  for (const bool has_three_tiers : {false, true}) {
    auto spec =
        fabric(has_three_tiers ? FabricKind::fat_tree : FabricKind::leaf_spine, has_three_tiers ? "sw8" : "sw64");
    spec.leaf_ports = 8;
    if (has_three_tiers) spec.tiers = 3;
    const auto fixed = built(cluster(40, hca_host(1), spec));
    for (int l = 0; l < fixed.num_links(); ++l) CHECK(!fixed.spread_of(LinkId{l}));
    spec.routing = Routing::adaptive;
    const auto t = built(cluster(40, hca_host(1), spec));
    CAPTURE(has_three_tiers);
    const std::size_t up = has_three_tiers ? 4 : 3;
    const auto links = t.path_between_hcas(hca_of(t, 0), hca_of(t, 39))->links;
    REQUIRE(links.size() == (has_three_tiers ? 6 : 4));
    CHECK(!t.spread_of(links.front()));
    CHECK(!t.spread_of(links.back()));
    const auto of = [&](std::size_t i) { return *t.spread_of(links[i]); };
    CHECK(of(1).out->over == SpreadOver::leaf);
    CHECK(of(1).out->at == t.link(links[1]).from);
    CHECK(of(1).out->links.size() == up);
    CHECK(of(1).in == nullptr);
    const auto down = of(links.size() - 2);
    CHECK(down.out == nullptr);
    CHECK(down.in->over == SpreadOver::leaf);
    CHECK(down.in->at == t.link(links[links.size() - 2]).to);
    CHECK(down.in->links.size() == up);
    if (has_three_tiers) {
      CHECK(of(2).out->over == SpreadOver::pod);
      CHECK(of(2).out->links.size() == 16);
      CHECK(of(3).in->links.size() == 16);
    }
    // A dead cable carries nothing of what the others share.
    const auto damaged = t.without_links({links[1]});
    const auto way_round = damaged.path_between_hcas(hca_of(t, 0), hca_of(t, 39))->links;
    for (const auto link : way_round) {
      const auto shared = damaged.spread_of(link);
      if (shared && shared->out != nullptr && shared->out->at == t.link(links[1]).from)
        CHECK(shared->out->links.size() == up - 1);
    }
  }
}

TEST_CASE("torus routes take the dimensions in order, the short way round") {
  auto spec = fabric(FabricKind::torus, "sw64");
  spec.dimensions = {5, 4};
  const auto t = built(cluster(20, hca_host(1), spec));
  // (0,0) to (4,3): one step back in each dimension.
  CHECK(stations(t, t.path_between_hcas(hca_of(t, 0), hca_of(t, 19))->links) ==
        std::vector<std::string>{"n0.hca0", "router0-0", "router4-0", "router4-3", "n19.hca0"});
  // (0,0) to (2,1): two steps, then one. One route only: the order of dimensions is fixed.
  CHECK(t.equal_cost_routes(hca_of(t, 0), hca_of(t, 7)).size() == 1);
  // (0,0) to (0,2): half way round four routers, both ways are equal.
  CHECK(t.equal_cost_routes(hca_of(t, 0), hca_of(t, 10)).size() == 2);
  for (int b = 1; b < 20; ++b) {
    const int x = std::min(b % 5, 5 - b % 5);
    const int y = std::min(b / 5, 4 - b / 5);
    CHECK(t.path_between_hcas(hca_of(t, 0), hca_of(t, b))->network_switch_hops == 1 + x + y);
  }
}

TEST_CASE("routes are found on the largest torus, and not to what hangs at no switch" * doctest::test_suite("long")) {
  auto spec = fabric(FabricKind::torus, "sw64");
  spec.dimensions = {100, 100, 10};
  const auto t = built(cluster(2, hca_host(1), spec));
  CHECK(t.path_between_hcas(hca_of(t, 0), hca_of(t, 1))->network_switch_hops == 2);

  auto list = fabric(FabricKind::list);
  list.switches = {{"a", "sw8", {}}, {"b", "sw8", {}}};
  list.cables = {{"n0.hca0", "a", 1, {}, {}, {}}, {"n1.hca0", "a", 1, {}, {}, {}}, {"n2.hca0", "b", 1, {}, {}, {}}};
  const auto parted = built(cluster(4, hca_host(1), list));
  CHECK(parted.path_between_hcas(hca_of(parted, 0), hca_of(parted, 1)));
  CHECK_FALSE(parted.path_between_hcas(hca_of(parted, 0), hca_of(parted, 2)));
  CHECK_FALSE(parted.path_between_hcas(hca_of(parted, 0), hca_of(parted, 3)));
}

TEST_CASE("Ethernet spreads flows evenly over the routes of a fat tree") {
  auto spec = fabric(FabricKind::fat_tree);
  spec.tiers = 3;
  const auto t = built(cluster(64, hca_host(1), spec), true);
  std::map<std::vector<LinkId>, int> flows;
  for (std::uint64_t flow = 0; flow < 1600; ++flow)
    ++flows[t.path_between_hcas(hca_of(t, 0), hca_of(t, 63), flow)->links];
  CHECK(flows.size() == 16);
  for (const auto& [route, count] : flows) CHECK(count > 60);  // 100 on average; 4 standard deviations are 39
}
