// SPDX-License-Identifier: Apache-2.0
// What rings, chains, trees and pairs cross, counted by hand.
#include "nccl/patterns.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "nccl/nics.hpp"
#include "nccl/nvls.hpp"
#include "schedules/algorithms.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::beside_gpus;
using test::cluster_of;
using test::PairedHost;
using test::Setup;

namespace {

struct Made {
  Setup setup;
  Pattern pattern;
  ChannelGraph graph;

  /// How often the port of an HCA sends.
  [[nodiscard]] int sent_by(const std::string& hca) const {
    int times = 0;
    for (const auto& crossing : pattern.crossings) {
      const auto& resources = *setup.resources;
      if (!resources.is_link(crossing.resource)) continue;
      const auto link = setup.loaded->topology.link(LinkId{crossing.resource});
      if (link.kind == LinkKind::network && setup.loaded->topology.device(link.from).name == hca)
        times += crossing.times;
    }
    return times;
  }
  [[nodiscard]] int over_nvlink_from(const std::string& gpu) const {
    int times = 0;
    for (const auto& crossing : pattern.crossings) {
      if (!setup.resources->is_link(crossing.resource)) continue;
      const auto link = setup.loaded->topology.link(LinkId{crossing.resource});
      if (link.kind == LinkKind::nvlink && setup.loaded->topology.device(link.from).name == gpu)
        times += crossing.times;
    }
    return times;
  }
  [[nodiscard]] double hops(TransportKind kind) const {
    for (const auto& one : pattern.hops)
      if (one.kind == kind) return one.count;
    return 0;
  }
};

Made made(LoadedScenario loaded, Collective collective, Algorithm algorithm = Algorithm::ring, std::size_t channels = 0,
          int root = 0) {
  Setup setup(std::move(loaded));
  setup.context.runs_alone = false;  // every crossing, not the slowest alone
  const auto ranks = setup.loaded->topology.devices(DeviceKind::gpu);
  const auto hosts = group_by_host(setup.loaded->topology, ranks);
  auto graph = search_channels(setup.context, hosts);
  if (channels == 0) channels = graph.channels.size();
  if (algorithm == Algorithm::nvls) {
    graph.heads = nvls_offer(setup.context, hosts).heads;
    search_nvls(setup.context, hosts, graph.heads);
  }
  auto pattern = PatternMaker(setup.context, collective, ranks, hosts, graph, ranks[static_cast<std::size_t>(root)],
                              Buffers::device)
                     .make(algorithm, channels);
  return {std::move(setup), std::move(pattern), std::move(graph)};
}

const PairedHost k_eight_rails{.hcas = beside_gpus("connectx-7-ndr", 8)};

}  // namespace

TEST_CASE("trees: the channels of the search have the first tree of hosts, their doubles the second") {
  const auto edges_at = [](int host, int hosts, bool is_second) {
    int edges = schedules::double_tree_parent(host, hosts, is_second) < 0 ? 0 : 1;
    for (int other = 0; other < hosts; ++other)
      edges += schedules::double_tree_parent(other, hosts, is_second) == host ? 1 : 0;
    return edges;
  };
  constexpr int hosts = 4;
  const PairedHost one_rail{.hcas = {{"connectx-7-ndr", "sw0"}}};
  const auto found =
      static_cast<int>(made(cluster_of(one_rail, hosts), Collective::all_reduce, Algorithm::tree).graph.graph_channels);
  for (int channels = 1; channels <= 2 * found; ++channels) {
    CAPTURE(channels);
    const auto trees =
        made(cluster_of(one_rail, hosts), Collective::all_reduce, Algorithm::tree, static_cast<std::size_t>(channels));
    const int first = std::min(channels, found);
    for (int host = 0; host < hosts; ++host)
      CHECK(trees.sent_by("n" + std::to_string(host) + ".hca0") ==
            first * edges_at(host, hosts, false) + (channels - first) * edges_at(host, hosts, true));
  }
}

TEST_CASE("NVLSTree: each head has an HCA of its own up and down two trees, whatever HCAs rings take") {
  struct Row {
    LoadedScenario cluster;
    int gpus, heads;
  };
  const auto racks = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
      "count: "
      "2, type: gb200-nvl72}], fabric: {fat_tree: {switch: qm9700}}}\nworkload: {benchmark: all_reduce_perf}\n");
  for (const auto& row : {Row{cluster_of(k_eight_rails, 2), 8, 8},
                          Row{cluster_of({.hcas = beside_gpus("connectx-7-ndr", 4)}, 2), 8, 4}, Row{racks, 72, 32}}) {
    CAPTURE(row.heads);
    const auto trees = made(row.cluster, Collective::all_reduce, Algorithm::nvls);
    int senders = 0;
    int heads = 0;
    for (int i = 0; i < row.gpus; ++i) {
      const int sent = trees.sent_by("n0.hca" + std::to_string(i));
      senders += sent == 2 ? 1 : 0;
      CHECK((sent == 0 || sent == 2));
      // Of a unit, half of a share: all shares out, and its own once more if it is a head.
      const int stores = trees.over_nvlink_from("n0.gpu" + std::to_string(i));
      heads += stores == 2 * (row.heads + 1) ? 1 : 0;
      CHECK((stores == 2 * row.heads || stores == 2 * (row.heads + 1)));
    }
    CHECK(senders == row.heads);
    CHECK(heads == row.heads);
    // One channel has the first tree alone, which goes up from one host and down from the other.
    const auto one = made(row.cluster, Collective::all_reduce, Algorithm::nvls, 1);
    CHECK(one.over_nvlink_from("n0.gpu0") == row.heads + 1);
    CHECK(one.sent_by("n0.hca0") == 1);
  }
}

TEST_CASE("rings: every HCA sends as often as channels leave by it, every GPU passes on once per channel") {
  const auto ring = made(cluster_of(k_eight_rails, 3), Collective::all_reduce);
  CHECK(ring.graph.channels.size() == 16);
  for (const auto* hca : {"n0.hca0", "n1.hca5", "n2.hca7"}) CHECK(ring.sent_by(hca) == 2);
  // 24 ranks: a chunk goes round twice less one step each: 2 x 23 hops, 3 of 24 over the network.
  CHECK(ring.hops(TransportKind::nvlink) == test::approx(2.0 * 23 / 24 * 21));
  CHECK(ring.hops(TransportKind::network) == test::approx(2.0 * 23 / 24 * 3));
  const auto gather = made(cluster_of(k_eight_rails, 3), Collective::all_gather);
  CHECK(gather.hops(TransportKind::network) == test::approx(23.0 / 24 * 3));
}

TEST_CASE("fewer channels use the first HCAs only") {
  const auto ring = made(cluster_of(k_eight_rails, 2), Collective::all_reduce, Algorithm::ring, 3);
  CHECK(ring.sent_by("n0.hca2") == 1);
  CHECK(ring.sent_by("n0.hca3") == 0);
}

TEST_CASE("nothing goes back into a broadcast's root nor out of a reduce's: one hop less than a ring has ranks") {
  for (const auto collective : {Collective::broadcast, Collective::reduce}) {
    for (const int root : {0, 5}) {
      CAPTURE(root);
      const auto chain = made(cluster_of({.gpus = 8, .hcas = {}}, 1, "{}", "{benchmark: broadcast_perf}"), collective,
                              Algorithm::ring, 1, root);
      CHECK(chain.hops(TransportKind::nvlink) == 7);
      CHECK(chain.over_nvlink_from("n.gpu" + std::to_string(root)) == (collective == Collective::reduce ? 0 : 1));
    }
  }
}

TEST_CASE("trees of two hosts: each channel goes up and down once, the chain inside both ways") {
  const auto tree = made(cluster_of(k_eight_rails, 2), Collective::all_reduce, Algorithm::tree);
  int up = 0;
  for (int h = 0; h < 8; ++h) up += tree.sent_by("n1.hca" + std::to_string(h));
  CHECK(up == 16);
  CHECK(tree.hops(TransportKind::nvlink) == 2 * 7);
  CHECK(tree.hops(TransportKind::network) == 2);
  CHECK(made(cluster_of(k_eight_rails, 5), Collective::all_reduce, Algorithm::tree).hops(TransportKind::network) == 6);
}

TEST_CASE("all-to-all: every HCA sends an eighth of what leaves the host, by PXN in its own rail") {
  for (const char* nccl : {"{}", "{pxn: off}", "{version: \"2.17\"}", "{version: \"2.11\"}"}) {
    CAPTURE(nccl);
    const auto all = made(cluster_of(k_eight_rails, 2, nccl), Collective::all_to_all);
    // 8 GPUs send to 8 others: 64 of the pairs' shares over 8 HCAs.
    for (int h = 0; h < 8; ++h) CHECK(all.sent_by("n0.hca" + std::to_string(h)) == 8);
    CHECK(all.pattern.shares == 1);
  }
}

TEST_CASE("PXN costs NVLink: seven of eight shares pass it on their way out") {
  // Inside the host 7 shares of each GPU cross NVLink; with PXN 7 of the 8 that leave do so too.
  CHECK(made(cluster_of(k_eight_rails, 2), Collective::all_to_all).over_nvlink_from("n0.gpu3") == 7 + 7);
  CHECK(made(cluster_of(k_eight_rails, 2, "{pxn: off}"), Collective::all_to_all).over_nvlink_from("n0.gpu3") == 7);
}

TEST_CASE("with PXN all-to-all over rails never meets the spines, without it seven of eight shares do") {
  const auto over_spines = [](const std::string& nccl) {
    const auto all = made(
        cluster_of(k_eight_rails, 8, nccl, "{benchmark: alltoall_perf}", "rail_optimized: {switch: qm9700, rails: 8}"),
        Collective::all_to_all);
    int times = 0;
    const auto& topology = all.setup.loaded->topology;
    for (const auto& crossing : all.pattern.crossings) {
      if (!all.setup.resources->is_link(crossing.resource)) continue;
      const auto link = topology.link(LinkId{crossing.resource});
      const bool is_up = topology.kind(link.from) == DeviceKind::network_switch &&
                         topology.kind(link.to) == DeviceKind::network_switch;
      if (is_up) times += crossing.times;
    }
    return times;
  };
  CHECK(over_spines("{}") == 0);
  // 64 ranks send to 56 remote ones, 7/8 of them in another rail; each crosses one link up and one down.
  CHECK(over_spines("{pxn: off}") == 2 * 64 * 49);
}

TEST_CASE("a GPU with four HCAs of its own sends a pair's channels over them, and the flow is a share of the pair") {
  const PairedHost host{.gpus = 1, .hcas = {4, {"connectx-6-hdr100", "sw0"}}, .has_nvswitch = false};
  const auto wide = made(cluster_of(host, 2, "{version: \"2.28\"}"), Collective::send_receive);
  CHECK(wide.pattern.shares == 4);  // four of 12.5 GB/s fill the slot of 48
  for (int h = 0; h < 4; ++h) CHECK(wide.sent_by("n0.hca" + std::to_string(h)) == 1);
  const auto narrow = made(cluster_of(host, 2, "{version: \"2.18\"}"), Collective::send_receive);
  CHECK(narrow.pattern.shares == 2);  // two channels per pair
  CHECK(narrow.sent_by("n0.hca0") + narrow.sent_by("n0.hca1") == 2);
  CHECK(made(cluster_of(host, 2, "{version: \"2.17\"}"), Collective::send_receive).pattern.shares == 1);
}

TEST_CASE("before 2.12 the pairs of a GPU take its HCAs in turn") {
  const PairedHost host{.gpus = 1, .hcas = {2, {"connectx-6-hdr100", "sw0"}}, .has_nvswitch = false};
  const auto all = made(cluster_of(host, 5, "{version: \"2.11\"}"), Collective::all_to_all);
  CHECK(all.sent_by("n0.hca0") == 2);
  CHECK(all.sent_by("n0.hca1") == 2);
}

TEST_CASE("send-receive goes round the ranks: one share leaves the host, by the HCA of its receiver's counterpart") {
  const auto around = made(cluster_of(k_eight_rails, 2), Collective::send_receive);
  int leaves = 0;
  for (int h = 0; h < 8; ++h) leaves += around.sent_by("n0.hca" + std::to_string(h));
  CHECK(leaves == 1);
  CHECK(around.sent_by("n0.hca0") == 1);  // GPU 7 sends to GPU 0 of the next host
  CHECK(made(cluster_of(k_eight_rails, 2, "{pxn: off}"), Collective::send_receive).sent_by("n0.hca7") == 1);
}

TEST_CASE("a process that sends for others and receives counts what its thread moves") {
  const auto all = made(cluster_of(k_eight_rails, 3), Collective::all_to_all);
  for (const auto& hops : all.pattern.hops)
    if (is_network(hops.kind)) CHECK(hops.duplex_uses == 16);  // 8 GPUs x 2 other hosts
  const auto around = made(cluster_of(k_eight_rails, 2), Collective::send_receive);
  for (const auto& hops : around.pattern.hops)
    if (is_network(hops.kind)) CHECK(hops.duplex_uses == 1);  // GPU 0 sends for GPU 7 and receives
}

TEST_CASE("in trees of four and more hosts a proxy serves two hosts below it and one above it, then one above it") {
  const auto proxy = [](int hosts, std::size_t channels) {
    const auto tree = made(cluster_of(k_eight_rails, hosts), Collective::all_reduce, Algorithm::tree, channels);
    for (const auto& hops : tree.pattern.hops)
      if (is_network(hops.kind)) return std::tuple(hops.process_uses, hops.process_both_ways, hops.process_meeting);
    return std::tuple(0, 0, 0);
  };
  // Sixteen channels, two by every GPU, one of each tree. Counted by hand, sends and receives.
  CHECK(proxy(2, 16) == std::tuple(2 * (1 + 1), 4, 2));
  CHECK(proxy(3, 16) == std::tuple(2 * (2 + 1), 6, 2));
  CHECK(proxy(4, 16) == std::tuple(2 * (3 + 1), 8, 4));
  CHECK(proxy(8, 16) == std::tuple(2 * (3 + 1), 8, 4));
  // One channel is one tree.
  CHECK(proxy(2, 1) == std::tuple(2, 2, 1));
  CHECK(proxy(8, 1) == std::tuple(2 * 3, 6, 2));
}

TEST_CASE("the busiest process is the one whose thread needs longest, both directions together more than one") {
  const auto busiest = [](const std::map<int, ProcessUse>& processes, double cost) {
    Hops hops;
    set_process_uses(processes, cost, false, hops);
    return std::pair(hops.process_uses, hops.process_both_ways);
  };
  CHECK(busiest({{0, {2, 0}}, {1, {0, 2}}}, 1.5) == std::pair(2, 0));
  CHECK(busiest({{0, {2, 0}}, {1, {1, 1}}}, 1.5) == std::pair(2, 2));
  CHECK(busiest({{0, {5, 0}}, {1, {2, 2}}}, 1) == std::pair(5, 0));
  CHECK(busiest({{0, {5, 0}}, {1, {2, 2}}}, 1.5) == std::pair(4, 4));
  CHECK(busiest({{0, {3, 1}}}, 1.5) == std::pair(4, 2));
  CHECK(busiest({}, 1.5) == std::pair(0, 0));
}
