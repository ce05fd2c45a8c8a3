// SPDX-License-Identifier: Apache-2.0
// RCCL's rules for eight MI300X or MI355X, against its source worked through by hand.
#include "nccl/rccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::Setup;

namespace {

constexpr std::int64_t KiB = 1024, MiB = 1024 * KiB;

LoadedScenario hosts_of(int count, const std::string& software = "{}", const std::string& more = "",
                        const std::string& type = "mi300x-8") {
  const std::string fabric = count == 1 ? "" : ", fabric: {single_switch: {switch: ethernet-400g-leaf, cable: 5 m}}";
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, "
      "hosts: [{name: n, count: " +
      std::to_string(count) + ", type: " + type + more + "}]" + fabric + "}\nsoftware: " + software +
      "\nworkload: {benchmark: all_reduce_perf}\n");
}

ChannelGraph graph_of(const LoadedScenario& loaded, std::size_t gpus = 0) {
  const Setup setup(loaded);
  auto ranks = setup.context.topology.devices(DeviceKind::gpu);
  if (gpus > 0) ranks.resize(gpus);
  return search_channels(setup.context, group_by_host(setup.context.topology, ranks));
}

/// A communicator of full meshes, as search_channels describes it.
CommunicatorFacts facts_of(int nodes, int version = 225) {
  CommunicatorFacts facts;
  facts.library = Library::rccl;
  facts.num_nodes = nodes;
  facts.num_ranks = 8 * nodes;
  facts.compute_capability = 94;
  facts.is_amd = true;
  facts.has_equal_channels = false;
  facts.ll128_allowed = nodes > 1;
  facts.graph_channels = nodes > 1 ? 32 : 28;
  facts.channel_gb_per_s = 336.0 / facts.graph_channels;
  facts.version = version;
  return facts;
}

/// The same of MI355X.
CommunicatorFacts cdna4_of(int nodes) {
  auto facts = facts_of(nodes, 227);
  facts.generation = AmdGeneration::cdna4;
  facts.compute_capability = 95;
  return facts;
}

std::string choice(const CommunicatorFacts& facts, std::int64_t size, Collective collective = Collective::all_reduce) {
  const auto chosen = choose(facts, collective, Bytes{size}, std::nullopt, std::nullopt);
  return fmt::format("{} {}", to_string(chosen.algorithm), to_string(chosen.protocol));
}

/// How often each of the 56 directed links between eight GPUs is taken.
std::map<std::pair<int, int>, int> links_of(const std::vector<std::vector<int>>& orders, bool are_closed) {
  std::map<std::pair<int, int>, int> out;
  for (const auto& order : orders) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) ++out[{order[i], order[i + 1]}];
    if (are_closed) ++out[{order.back(), order.front()}];
  }
  return out;
}

bool is_permutation(const std::vector<int>& order) {
  return order.size() == 8 && std::set<int>(order.begin(), order.end()).size() == 8;
}

}  // namespace

TEST_CASE("RCCL's rings of one host take every link of a full mesh equally often, its ways between hosts once") {
  const auto rings = rccl::rings();
  CHECK(rings.size() == 28);
  CHECK(std::ranges::all_of(rings, is_permutation));
  const auto of_rings = links_of(rings, true);
  CHECK(of_rings.size() == 56);
  CHECK(std::ranges::all_of(of_rings, [](const auto& link) { return link.second == 4; }));
  std::vector<std::vector<int>> ways;
  for (std::size_t c = 0; c < 8; ++c) ways.push_back(rccl::way(c, 0, 2));
  const auto of_ways = links_of(ways, false);
  CHECK(of_ways.size() == 56);
  CHECK(std::ranges::all_of(of_ways, [](const auto& link) { return link.second == 1; }));
}

TEST_CASE("RCCL's rings leave a host by the adapter that they enter the next one by, whatever the number of hosts") {
  for (std::size_t hosts = 2; hosts <= 17; ++hosts) {
    CAPTURE(hosts);
    for (std::size_t c = 0; c < 32; ++c) {
      std::set<int> first;
      for (std::size_t h = 0; h < hosts; ++h) {
        const auto here = rccl::way(c, h, hosts);
        CHECK(is_permutation(here));
        CHECK(here.back() == rccl::way(c, (h + 1) % hosts, hosts).front());
      }
    }
    // In eight channels every adapter is entered and left once.
    for (std::size_t h = 0; h < hosts; ++h) {
      std::set<int> in, out;
      for (std::size_t c = 0; c < 8; ++c) {
        in.insert(rccl::way(c, h, hosts).front());
        out.insert(rccl::way(c, h, hosts).back());
      }
      CHECK(in.size() == 8);
      CHECK(out.size() == 8);
    }
  }
}

TEST_CASE(
    "links between GPUs are called what their maker calls them, and the result says how far the source was read") {
  const auto loaded = hosts_of(1);
  const auto& topology = loaded.topology;
  const auto gpus = topology.devices(DeviceKind::gpu);
  const auto path = topology.path_in_host(gpus[0], gpus[1]);
  REQUIRE(path);
  CHECK(topology.link_name(path->links[0]) == "n.gpu0 -> n.gpu1 (Infinity Fabric link x1)");
  const auto says = [](const std::string& release) {
    const auto said = test::run(hosts_of(1, "{nccl: {version: \"" + release + "\"}}")).workloads.at(0).assumptions;
    return std::ranges::any_of(said, [](const std::string& line) { return line.find("source was read") != line.npos; });
  };
  CHECK(says("2.28"));
  CHECK_FALSE(says("2.27"));
}

TEST_CASE("RCCL has 56 channels in a host of eight MI300X, 64 between hosts, 32 for two and 24 for four GPUs") {
  CHECK(graph_of(hosts_of(1)).channels.size() == 56);
  CHECK(graph_of(hosts_of(2)).channels.size() == 64);
  CHECK(graph_of(hosts_of(3)).channels.size() == 64);
  CHECK(graph_of(hosts_of(1), 2).channels.size() == 32);
  CHECK(graph_of(hosts_of(1), 4).channels.size() == 24);
  // 48 GB/s a link.
  for (const auto& [gpus, gb_per_s] : std::vector<std::pair<std::size_t, double>>{{2, 48}, {4, 144}, {8, 336}}) {
    const auto graph = graph_of(hosts_of(1), gpus);
    CHECK(graph.graph_channels * graph.channel_gb_per_s == test::approx(gb_per_s));
  }
  CHECK(graph_of(hosts_of(2)).ll128_allowed);
  CHECK_FALSE(graph_of(hosts_of(1)).ll128_allowed);
}

TEST_CASE("a channel of RCCL comes in by the adapter beside its first GPU and leaves by the one beside its last") {
  const Setup setup(hosts_of(3));
  const auto& topology = setup.context.topology;
  const auto graph = graph_of(hosts_of(3));
  for (const auto& channel : graph.channels) {
    for (const auto& in_host : channel) {
      CHECK(topology.distance(in_host.order.front(), in_host.hca) <= Distance::pxb);
      CHECK(topology.distance(in_host.order.back(), in_host.hca_out) <= Distance::pxb);
      CHECK(in_host.sender == in_host.order.back());
    }
  }
}

TEST_CASE("hosts that RCCL has no table for are searched as NCCL does it") {
  const auto few = graph_of(hosts_of(2, "{}", ", remove: [hca1, hca3, hca5, hca7]"));
  CHECK_FALSE(few.is_by_table);
  CHECK_FALSE(few.ll128_allowed);
  CHECK_FALSE(few.channels.empty());
  // Without peer access the GPUs exchange through host memory.
  CHECK_FALSE(graph_of(hosts_of(1, "{nccl: {p2p: off}}")).is_by_table);
}

TEST_CASE("RCCL takes rings inside a host and trees between hosts up to the sizes that its tuning model gives") {
  const auto one = facts_of(1);
  CHECK(choice(one, 8) == "ring ll");
  CHECK(choice(one, 256 * KiB) == "ring ll");
  CHECK(choice(one, 512 * KiB) == "ring simple");
  CHECK(choice(one, 1024 * MiB) == "ring simple");
  // The last size of trees, by powers of two.
  for (const auto& row : std::vector<std::pair<int, std::int64_t>>{{2, 64}, {4, 128}, {8, 256}}) {
    const auto nodes = row.first;
    const auto last = row.second;
    CAPTURE(nodes);
    CHECK(choice(facts_of(nodes), last * MiB).starts_with("tree"));
    CHECK(choice(facts_of(nodes), 2 * last * MiB) == "ring simple");
  }
}

TEST_CASE("between hosts ranges of bytes set RCCL's protocol") {
  const auto two = facts_of(2);
  CHECK(choice(two, MiB) == "tree ll");
  CHECK(choice(two, MiB + 4) == "tree ll128");
  CHECK(choice(two, 9 * MiB) == "tree ll128");
  CHECK(choice(two, 9 * MiB + 4) == "tree simple");
  CHECK(choice(facts_of(4), 32 * MiB) == "tree ll128");
  CHECK(choice(facts_of(4), 40 * MiB) == "tree simple");
  // Of all-gather and reduce-scatter the bytes of one of 16 ranks count.
  CHECK(choice(two, 16 * 98304, Collective::all_gather) == "ring ll");
  CHECK(choice(two, 16 * 98308, Collective::all_gather) == "ring ll128");
  CHECK(choice(two, 16 * 5046276, Collective::all_gather) == "ring simple");
  CHECK(choice(two, 16 * 131072, Collective::reduce_scatter) == "ring ll");
  CHECK(choice(two, 16 * 131076, Collective::reduce_scatter) == "ring ll128");
  // The ranges came with 2.25.
  CHECK(choice(facts_of(2, 224), 9 * MiB) == "tree simple");
  // A forced protocol stays.
  CHECK(choose(two, Collective::all_reduce, Bytes{MiB}, std::nullopt, Protocol::simple).protocol == Protocol::simple);
  // Where LL128 is not allowed LL ends and Simple begins.
  auto without = two;
  without.ll128_allowed = false;
  CHECK(choice(without, 2 * MiB) == "tree simple");
  // One host scatters up to 352,128 B a rank by LL from 2.26 on.
  CHECK(choice(facts_of(1, 226), 8 * 352128, Collective::reduce_scatter) == "ring ll");
  CHECK(choice(facts_of(1, 226), 8 * 352132, Collective::reduce_scatter) == "ring simple");
  CHECK(choice(facts_of(1, 225), 8 * 352128, Collective::reduce_scatter) == "ring simple");
}

TEST_CASE("MSCCL's schedules come first where a size is a multiple of their chunks") {
  auto one = facts_of(1);
  one.has_schedules = true;
  CHECK(choice(one, 512) == "ring ll");
  CHECK(choice(one, KiB) == "msccl ll");
  CHECK(choice(one, KiB + 4) == "ring ll");
  CHECK(choice(one, 512 * KiB) == "msccl simple");
  CHECK(choice(one, 16 * MiB) == "msccl simple");
  CHECK(choice(one, 16 * MiB + 2048) == "ring simple");
  CHECK(choice(one, 8 * KiB, Collective::all_gather) == "msccl ll128");
  CHECK(choice(one, MiB, Collective::all_gather) == "ring simple");
  CHECK(choice(one, MiB, Collective::broadcast) == "ring simple");
  CHECK(rccl::schedule(one, Collective::all_reduce, Bytes{KiB})->rounds == 2);
  CHECK(rccl::schedule(one, Collective::all_gather, Bytes{KiB})->rounds == 1);
  // A ring that is asked for is none of them.
  CHECK(choose(one, Collective::all_reduce, Bytes{MiB}, Algorithm::ring, std::nullopt).algorithm == Algorithm::ring);
}

TEST_CASE("from 2.26 on a channel of RCCL has 16 KiB of traffic, twice an all-reduce's bytes") {
  auto two = facts_of(2);
  const auto channels = [&](std::int64_t size) {
    return channel_use(two, {Algorithm::tree, Protocol::ll128}, Bytes{size}, 32).channels;
  };
  two.version = 225;
  CHECK(channels(32 * KiB) == 16);
  two.version = 226;
  CHECK(channels(32 * KiB) == 4);
  CHECK(channels(32 * KiB + 4) == 5);
  CHECK(channels(256 * KiB) == 32);
}

TEST_CASE("RCCL opens a channel for every 16 KiB of Simple and as much of a ring of LL, in full at 896 KiB") {
  const auto one = facts_of(1);
  const auto channels = [&](Protocol protocol, std::int64_t size) {
    return channel_use(one, {Algorithm::ring, protocol}, Bytes{size}, 56).channels;
  };
  for (const auto protocol : {Protocol::simple, Protocol::ll}) {
    CHECK(channels(protocol, 8) == 1);
    CHECK(channels(protocol, 32 * KiB) == 2);
    CHECK(channels(protocol, 896 * KiB - 4) == 55);
    CHECK(channels(protocol, 896 * KiB) == 56);
  }
}

TEST_CASE("RCCL has 112 channels in a host of eight MI355X, 64 between hosts, four times what it finds of fewer GPUs") {
  const auto of = [](int hosts, std::size_t gpus = 0) { return graph_of(hosts_of(hosts, "{}", "", "mi355x-8"), gpus); };
  CHECK(of(1).channels.size() == 112);
  CHECK(of(2).channels.size() == 64);
  CHECK(of(3).channels.size() == 64);
  CHECK(of(1, 2).channels.size() == 8);
  CHECK(of(1, 4).channels.size() == 24);
  // It plans 48 GB/s a link as for MI300X, whose links are slower.
  CHECK(of(1).graph_channels * of(1).channel_gb_per_s == test::approx(336));
  CHECK(of(2).ll128_allowed);
  CHECK_FALSE(of(1).ll128_allowed);
  // Between hosts no more than 64, in a host 128.
  CHECK(rccl::copies_of_channels(AmdGeneration::cdna4, 16, 8, 2) == 4);
  CHECK(rccl::copies_of_channels(AmdGeneration::cdna4, 40, 8, 2) == 1);
  CHECK(rccl::copies_of_channels(AmdGeneration::cdna4, 40, 8, 1) == 3);
}

TEST_CASE("between hosts of MI355X RCCL has ranges of bytes of its own, of broadcast and reduce too") {
  const auto two = cdna4_of(2);
  CHECK(choice(two, 131068) == "tree ll");
  CHECK(choice(two, 131072) == "tree ll128");
  CHECK(choice(two, 17660224) == "tree ll128");
  CHECK(choice(two, 17660228) == "tree simple");
  // From three hosts on 3.8 times: 67,108,862 B.
  CHECK(choice(cdna4_of(4), 67108860) == "tree ll128");
  CHECK(choice(cdna4_of(4), 67108864) != "tree ll128");
  CHECK(choice(two, 16 * 4, Collective::all_gather) == "ring ll");
  CHECK(choice(two, 16 * 8, Collective::all_gather) == "ring ll128");
  CHECK(choice(two, 16 * 8388608, Collective::all_gather) == "ring ll128");
  CHECK(choice(two, 16 * 8388612, Collective::all_gather) == "ring simple");
  CHECK(choice(two, 16 * 131068, Collective::reduce_scatter) == "ring ll");
  CHECK(choice(two, 16 * 131072, Collective::reduce_scatter) == "ring ll128");
  CHECK(choice(two, 16 * 4194308, Collective::reduce_scatter) == "ring simple");
  // Of these all bytes count.
  CHECK(choice(two, 2048, Collective::broadcast) == "ring ll");
  CHECK(choice(two, 2052, Collective::broadcast) == "ring ll128");
  CHECK(choice(two, 16777216, Collective::broadcast) == "ring ll128");
  CHECK(choice(two, 16777220, Collective::broadcast) == "ring simple");
  CHECK(choice(two, 16380, Collective::reduce) == "ring ll");
  CHECK(choice(two, 16384, Collective::reduce) == "ring ll128");
  CHECK(choice(two, 16777220, Collective::reduce) == "ring simple");
}

TEST_CASE("in one host of MI355X RCCL gathers up to 88,448 B and scatters up to 175,488 B a rank by LL") {
  const auto one = cdna4_of(1);
  CHECK(choice(one, 8 * 88448, Collective::all_gather) == "ring ll");
  CHECK(choice(one, 8 * 88452, Collective::all_gather) == "ring simple");
  CHECK(choice(one, 8 * 175488, Collective::reduce_scatter) == "ring ll");
  CHECK(choice(one, 8 * 175492, Collective::reduce_scatter) == "ring simple");
  // What no rule names is the tuning model's, whose figures are those of MI300X.
  for (const auto size : {8 * KiB, 256 * KiB, 512 * KiB, 64 * MiB}) {
    CAPTURE(size);
    CHECK(choice(one, size) == choice(facts_of(1, 227), size));
  }
  auto with = one;
  with.has_schedules = true;
  CHECK(choice(with, 64 * KiB) == "msccl ll");
}

TEST_CASE("between hosts RCCL weighs trees and rings of MI355X by factors of their own") {
  // 2 hosts, 64 MiB: LL128 of a tree 12 + 2 x (7 x 0.9 + 10.5) + 67.1e6 / (1000 x 336 x 0.06 / 2 x 0.1) us, of Simple
  // 17 + 2 x (7 x 2.3 + 25) + 67.1e6 / (1000 x 336 x 0.11 / 2 x 0.9).
  const auto two = cdna4_of(2);
  const auto time = [&](Algorithm algorithm, Protocol protocol, std::int64_t size) {
    return rccl::estimated_time_us(two, Collective::all_reduce, algorithm, protocol, Bytes{size});
  };
  CHECK(time(Algorithm::tree, Protocol::ll128, 64 * MiB) == test::approx(45.6 + 67108864 / (1000 * 1.008)));
  CHECK(time(Algorithm::tree, Protocol::simple, 64 * MiB) == test::approx(99.2 + 67108864 / (1000 * 16.632)));
  // 32 MiB: twice; 1 GiB of a ring of Simple: 0.8; 16 MiB of a ring of LL128: 0.1.
  CHECK(time(Algorithm::tree, Protocol::ll128, 32 * MiB) == test::approx(45.6 + 33554432 / (1000 * 20.16)));
  const double ring = 336 * 16 / 30.0;
  CHECK(time(Algorithm::ring, Protocol::simple, 1024 * MiB) ==
        test::approx(17 + 28 * 6 + 2 * 320 + 1073741824 / (1000 * 0.8 * ring)));
  CHECK(time(Algorithm::ring, Protocol::ll128, 16 * MiB) ==
        test::approx(12 + 28 * 2 + 2 * 9.5 + 16777216 / (1000 * 0.1 * 0.08 * ring)));
}

TEST_CASE("RCCL takes PXN and larger chunks of send and receive from fewer ranks of MI355X on") {
  const auto pxn = [](const std::string& type, int hosts) {
    const Setup setup(hosts_of(hosts, "{}", "", type));
    const auto ranks = setup.context.topology.devices(DeviceKind::gpu);
    return !own_software(setup.context, ranks).has_value();
  };
  CHECK_FALSE(pxn("mi355x-8", 3));
  CHECK(pxn("mi355x-8", 4));
  CHECK_FALSE(pxn("mi300x-8", 4));
  const Setup older(hosts_of(1));
  CHECK(ranks_with_pxn(older.context, older.context.topology.devices(DeviceKind::gpu)[0]) == 64);
  for (const auto& [nodes, steps] : std::vector<std::pair<int, int>>{{1, 1}, {2, 2}, {3, 2}, {4, 4}, {8, 4}})
    CHECK(rccl::steps_of_p2p_chunk(cdna4_of(nodes)) == steps);
  for (const auto& [nodes, steps] : std::vector<std::pair<int, int>>{{1, 1}, {4, 1}, {7, 1}, {8, 4}})
    CHECK(rccl::steps_of_p2p_chunk(facts_of(nodes, 226)) == steps);
  CHECK(rccl::steps_of_p2p_chunk(facts_of(8, 225)) == 1);
}
